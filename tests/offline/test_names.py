"""A name outside the word lists is known by the verb after it; an ordinary word is no name."""

import pytest

from kg_memory.contrib.offline.names import find_mentions
from tests.offline.asking import entities, facts

PEOPLE = [
    ("Kay lives in Oslo.", "Kay", "LIVES_IN", "Oslo"),
    ("Nils lives in Oslo.", "Nils", "LIVES_IN", "Oslo"),
    ("Aarav lives in Oslo and likes tea.", "Aarav", "LIVES_IN", "Oslo"),
    ("Thandiwe now works for Acme.", "Thandiwe", "WORKS_AT", "Acme"),
    ("Kofi no longer lives in Accra.", "Kofi", "LIVES_IN", "Accra"),
    ("Zed lived in Rome until May.", "Zed", "LIVES_IN", "Rome"),
    ("Zed Young lives in Rome.", "Zed Young", "LIVES_IN", "Rome"),
    ("Yuki doesn't like tea.", "Yuki", "DISLIKES", "tea"),
    ("Xavi prefers tea.", "Xavi", "PREFERS", "tea"),
    # Listed names that are also ordinary words.
    ("Mark lives in Rome.", "Mark", "LIVES_IN", "Rome"),
    ("May likes tea.", "May", "LIKES", "tea"),
    ("Will lives in Rome.", "Will", "LIVES_IN", "Rome"),
    ("Hope moved to Rome.", "Hope", "LIVES_IN", "Rome"),
]
PEOPLE_OR_GROUPS = [
    ("Xavi is from Spain.", "Xavi", "IS_FROM", "Spain"),
    ("Bjørn uses Vim.", "Bjørn", "USES", "Vim"),
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
def test_unlisted_name_at_start_of_sentence_is_known_by_verb(said, name, predicate, object_, speaker):
    assert (name, predicate, [object_]) in [tuple(fact)[:3] for fact in facts(said, speaker)]


@pytest.mark.parametrize(("said", "name", "_predicate", "_object"), PEOPLE)
def test_subject_of_a_human_verb_is_a_person(said, name, _predicate, _object):
    assert (name, "Person") in entities(said, None)


@pytest.mark.parametrize("said", ORDINARY)
def test_ordinary_word_at_start_of_sentence_is_no_name(said):
    assert said.split()[0] not in {name for name, _ in entities(said, None)}


@pytest.mark.parametrize("said", [said for said, *_ in PEOPLE + PEOPLE_OR_GROUPS] + ORDINARY)
def test_topic_name_contains_no_verb(said):
    verbs = {"lives", "lived", "works", "moved", "likes", "loves", "prefers", "uses"}
    assert not [name for name, _ in entities(said, None) if verbs & set(name.casefold().split())]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I live in the US and work at WHO.", {"US", "WHO"}),
        ("Hope works at IT support.", {"Hope", "IT"}),
        ("I met May and Will in Oslo.", {"Will", "May", "Oslo"}),
        ("May lives in Bergen.", {"May", "Bergen"}),
        ("She told us who it was, in May.", set()),
        ("Will you come? May I ask?", set()),
        ("TELL US WHO IT WAS", set()),
        ("I will go on May 5, and WE all may.", set()),
    ],
)
def test_find_mentions_separates_names_from_equal_words(text, names):
    assert {each.name for each in find_mentions(text, "Ann") if each.named} == names


WORDS_AND_NAMES = [
    ("We switched from React to Solid.", ["React", "Solid"], "USES"),
    ("We moved from Jira to Linear.", ["Jira", "Linear"], "USES"),
    ("I use React and Solid.", ["React", "Solid"], "USES"),
    ("I switched from Python to Go.", ["Python", "Go"], "USES"),
    ("I use Notion for notes.", ["Notion"], "USES"),
    ("I'm using Flask 2.3.1.", ["Flask"], "USES"),
    ("I met Will in May.", ["Will"], "MET"),
    ("Hope is my sister.", ["Hope"], "HAS_SISTER"),
    ("I'm learning Rust.", ["Rust"], "LEARNS"),
    ("I live in the US and work at WHO.", ["US", "WHO"], None),
    ("I moved from the US to the UK.", ["US", "UK"], "LIVES_IN"),
    ("我用React。", ["React"], "USES"),
    ("我喜欢React。", ["React"], "LIKES"),
    ("张伟在用Linear", ["Linear"], "USES"),
]
NO_NAMES = [
    "May I use it?", "I will go to work in May.", "I hope you may come.", "Let us go.", "Who is it?", "WHO IS IT FOR, US?",
    "We go to the park in May and June.", "It rains in spring and May.", "It was between March and May.", "React to it, please.",
]  # fmt: skip


@pytest.mark.parametrize(("said", "names", "predicate"), WORDS_AND_NAMES)
def test_name_spelt_like_a_common_word_is_a_name(said, names, predicate):
    stated = facts(said, "Ann")

    assert [name for fact in stated for name in fact.objects] == names
    assert predicate is None or {fact.predicate for fact in stated} == {predicate}


@pytest.mark.parametrize("said", NO_NAMES)
def test_common_word_spelt_like_a_name_is_no_name(said):
    names = {name.casefold() for name, _ in entities(said, "Ann")}

    assert names.isdisjoint({"may", "will", "hope", "go", "us", "who", "it", "june", "react"})


@pytest.mark.parametrize(
    ("said", "subject", "predicate", "object_", "sentence"),
    [
        ("Qdrant runs on the NAS.", "Qdrant", "RUNS_ON", "NAS", "Qdrant runs on the NAS"),
        ("Redis is hosted on Fly.", "Redis", "RUNS_ON", "Fly", "Redis runs on Fly"),
        ("My memory-system runs on Qdrant.", "memory-system", "RUNS_ON", "Qdrant", None),
        ("Our memory-system uses Go.", "memory-system", "USES", "Go", None),
    ],
)
def test_thing_is_subject_of_verbs_of_things(said, subject, predicate, object_, sentence):
    (fact,) = facts(said, None)

    assert (fact.subject, fact.predicate, fact.objects) == (subject, predicate, [object_])
    assert sentence in (None, fact.raw.sentence)


@pytest.mark.parametrize(("speaker", "name"), [(None, "User"), ("user", "user"), ("Ann", "Ann")])
def test_note_about_the_user_is_about_the_speaker(speaker, name):
    for said in ("User prefers dark mode.", "The user prefers dark mode."):
        (fact,) = facts(said, speaker)
        assert (fact.subject, fact.predicate, fact.objects) == (name, "PREFERS", ["dark mode"])


TRANSCRIPT = """Ann: I live in Bergen and work at Fjord Labs.
Bo: Nice! I moved to Oslo last month.

Ann: My sister Lily lives there.
Assistant: Paris is nice too."""


@pytest.mark.parametrize("kind", ["message", "text"])
def test_a_transcript_has_the_facts_of_each_speaker(kind):
    stated = facts(TRANSCRIPT, None, kind)

    homes = [("Ann", "LIVES_IN", "Bergen"), ("Ann", "WORKS_AT", "Fjord Labs"), ("Bo", "LIVES_IN", "Oslo")]
    found = [(fact.subject, fact.predicate, *fact.objects) for fact in stated]
    assert found == [*homes, ("Ann", "HAS_SISTER", "Lily")]
    assert all(fact.raw.quote in TRANSCRIPT for fact in stated)
    assert {("Ann", "Person"), ("Bo", "Person"), ("Paris", "Place")} <= set(entities(TRANSCRIPT, None, kind))


def test_a_chinese_transcript_has_the_facts_of_each_speaker():
    stated = facts("张伟：我住在上海。\n李娜：我在腾讯工作。", None)
    assert [tuple(fact)[:3] for fact in stated] == [("张伟", "LIVES_IN", ["上海"]), ("李娜", "WORKS_AT", ["腾讯"])]


def test_a_transcript_with_times_is_read_to_its_end():
    text = "\n".join(f"[10:{n}] {'Ann' if n % 2 else 'Bo'}: I moved to City{n}." for n in range(10, 80))
    assert len({fact.raw.quote for fact in facts(text, None, "text")}) > 60


FIELDS = [
    "Name: Ann\nCity: Oslo\nJob: nurse", "Note: call Bo.\nTodo: buy milk.", "City: Oslo\nSize: big", "http://x.y: z",
]  # fmt: skip


@pytest.mark.parametrize("text", FIELDS)
def test_fields_are_no_transcript(text):
    assert ("City", "Person") not in entities(text, None)
    assert {fact.predicate for fact in facts(text, None)} <= {"RELATES_TO"}
