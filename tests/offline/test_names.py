"""A name that no list holds is known by what follows it; an ordinary word in its place is none."""

from __future__ import annotations

import pytest

from kg_memory.offline.names import find_mentions
from tests.offline.asking import entities, facts

PEOPLE = [
    ("Kay lives in Oslo.", "Kay", "LIVES_IN", "Oslo"),
    ("Nils lives in Oslo.", "Nils", "LIVES_IN", "Oslo"),
    ("Aarav lives in Oslo and likes tea.", "Aarav", "LIVES_IN", "Oslo"),
    ("Thandiwe now works for Acme.", "Thandiwe", "WORKS_AT", "Acme"),
    ("Kofi no longer lives in Accra.", "Kofi", "LIVES_IN", "Accra"),
    ("Zed lived in Rome until May.", "Zed", "LIVES_IN", "Rome"),
    ("Zed Young lives in Rome.", "Zed Young", "LIVES_IN", "Rome"),
    ("Kay van Dyk lives in Rome.", "Kay van Dyk", "LIVES_IN", "Rome"),
    ("Kay works at Acme.", "Kay", "WORKS_AT", "Acme"),
    ("Zed likes tea.", "Zed", "LIKES", "tea"),
    ("Yuki doesn't like tea.", "Yuki", "DISLIKES", "tea"),
    ("Xavi prefers tea.", "Xavi", "PREFERS", "tea"),
    ("It rains. Yuki loves jazz.", "Yuki", "LIKES", "jazz"),
    # Listed, and words of other kinds too.
    ("Mark lives in Rome.", "Mark", "LIVES_IN", "Rome"),
    ("Rose likes tea.", "Rose", "LIKES", "tea"),
]
PEOPLE_OR_GROUPS = [
    ("Xavi is from Spain.", "Xavi", "IS_FROM", "Spain"),
    ("Bjørn uses Vim.", "Bjørn", "USES", "Vim"),
    ("Kay moved to Oslo.", "Kay", "LIVES_IN", "Oslo"),
    ("Globex is based in Oslo.", "Globex", "LIVES_IN", "Oslo"),
]
ORDINARY = [
    "Coffee makes me happy.", "Coffee works for me.", "Coffee is from Ethiopia.", "Lunch works for me.",
    "Work is hard.", "Nobody lives in Rome.", "Everyone likes tea.", "Snow covers Oslo.",
    "Mum lives in Rome.", "Dogs lived in Rome.", "Prices moved to Oslo.", "Previously lived in Rome.",
    "Moved to Rome last week.", "Management uses Slack.", "Documentation lives in Notion.", "Data lives in Oslo.",
    "Running is from Rome.", "Potato is from Peru, and I grow potato.",
]  # fmt: skip


@pytest.mark.parametrize("speaker", [None, "Ann"])
@pytest.mark.parametrize(("said", "name", "predicate", "object_"), PEOPLE + PEOPLE_OR_GROUPS)
def test_an_unlisted_name_that_opens_a_sentence_is_known_by_its_verb(said, name, predicate, object_, speaker):
    assert (name, predicate, [object_]) in [tuple(fact)[:3] for fact in facts(said, speaker)]


@pytest.mark.parametrize(("said", "name", "_predicate", "_object"), PEOPLE)
def test_who_does_what_only_people_do_is_a_person(said, name, _predicate, _object):
    assert (name, "Person") in entities(said, None)


@pytest.mark.parametrize("said", ORDINARY)
def test_an_ordinary_word_that_opens_a_sentence_is_no_name(said):
    opening = said.split()[0]
    assert opening not in {name for name, _ in entities(said, None)}


@pytest.mark.parametrize("said", [said for said, *_ in PEOPLE + PEOPLE_OR_GROUPS] + ORDINARY)
def test_a_topic_never_holds_what_somebody_does(said):
    verbs = {"lives", "lived", "works", "moved", "likes", "loves", "prefers", "uses"}
    assert not [name for name, _ in entities(said, None) if verbs & set(name.casefold().split())]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I live in the US and work at WHO.", {"US", "WHO"}),
        ("Hope works at IT support.", {"Hope", "IT"}),
        ("I met Will and May in Oslo.", {"Will", "May", "Oslo"}),
        ("May lives in Bergen.", {"May", "Bergen"}),
        ("She told us who it was, in May.", set()),
        ("Will you come? May I ask?", set()),
        ("TELL US WHO IT WAS", set()),
        ("I will go on May 5, and WE all may.", set()),
    ],
)
def test_names_that_are_spelt_like_words_are_found_and_the_words_are_not(text, names):
    assert {each.name for each in find_mentions(text, "Ann") if each.named} == names
