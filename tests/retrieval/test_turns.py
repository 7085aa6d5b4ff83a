"""Questions and answers on one line of a context, and messages without a line."""

from typing import Any

import pytest

from kg_memory.models.graph import Asked
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.construct import find_question, pair_turns
from kg_memory.retrieval.context.packing import EMPTY, FILLER, WEAK
from kg_memory.retrieval.context.templates import render
from tests.retrieval.findings import episode, fact, source

PLENTY = 2000


def turns(*episodes: Any, question: str = "Where does Ann run?") -> list[str]:
    context = render(SearchResults(question=question, episodes=episodes), PLENTY)
    return [line.text for line in context.lines]


def reasons(**given: Any) -> dict[str, str]:
    context = render(SearchResults(**{"question": "Where does Ann run?", **given}), PLENTY)
    return {each.id: each.left_out or "" for each in context.left_out}


RUNS = Asked(episode="q", speaker="Bob", question="Where do you run?")


def test_short_answer_and_its_question_share_a_line():
    asked = Asked(episode="q", speaker="Bob", question="Where do you run with Mia?")
    answer = episode("By the river.", id="a", asked=asked)
    asks = episode("Nice. Where do you run with Mia?", id="q", speaker="Bob")
    assert turns(answer, asks) == ["- [a, q] Bob: Where do you run with Mia? / Ann: By the river."]


def test_question_turn_with_other_content_has_its_own_line():
    answer = episode("By the river.", id="a", asked=RUNS)
    asks = episode("I bought new shoes in Rome. Where do you run?", id="q", speaker="Bob")
    assert len(turns(answer, asks)) == 2


def test_self_contained_answer_omits_its_question():
    answer = episode("I run along the old river with my sister Mia and two dogs.", id="a", asked=RUNS)
    assert turns(answer) == ["- [a] Ann: I run along the old river with my sister Mia and two dogs."]


@pytest.mark.parametrize("text", ["Where does she run?", "Thanks, bye!", "Hello"])
def test_turn_without_content_has_no_line(text):
    assert turns(episode(text, id="e")) == []
    assert reasons(episodes=(episode(text, id="e"),)) == {"e": FILLER}


def test_irrelevant_turns_are_omitted_after_the_first_five():
    scores = [1.0] * 3 + [0.1] * 5
    episodes = [episode(f"I saw thing number {n}", id=str(n), score=score) for n, score in enumerate(scores)]
    assert len(turns(*episodes)) == 5
    assert reasons(episodes=episodes) == dict.fromkeys("567", WEAK)


def test_denial_is_not_merged_with_turn_that_lacks_it():
    denied = fact("Ann: not in Oslo", sources=(source("e", quote="not in Oslo"),))
    found = SearchResults(question="x", facts=(denied,), episodes=(episode("I live in Oslo.", id="e"),))
    context = render(found, PLENTY)
    assert len(context.lines) == 2
    assert EMPTY not in context


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("Where do you run?", "Where do you run?"),
        ("I am back. What did you cook for Mia?", "What did you cook for Mia?"), ("What? I never said that.", ""),
        ("Why?", ""), ("你住在哪里？", "你住在哪里？"), ("", ""),
    ],
)  # fmt: skip
def test_find_question_returns_last_sentence_if_it_asks(content, question):
    assert find_question(content) == question


def test_pair_turns_uses_turns_before_and_after():
    said = episode("Where do you run?", id="q", speaker="Bob")
    beside = {"q": {"before": None, "after": {"id": "a", "content": "By the river.", "speaker": "Ann"}}}
    assert pair_turns([said], beside) == {"a": RUNS}
    answer = episode("By the river.", id="a")
    row = {"id": "q", "source_id": None, "speaker": "Bob", "content": "Where do you run?"}
    assert pair_turns([answer], {"a": {"before": row, "after": None}}) == {"a": RUNS}
    assert pair_turns([answer], {}) == {}


def test_context_has_question_beside_its_answer(talk):
    talk.tell("Ann", "I am training for a marathon.", "2024-05-01T10:00:00Z")
    talk.tell("Bob", "Great! Where do you run?", "2024-05-01T10:01:00Z")
    talk.tell("Ann", "Along the river.", "2024-05-01T10:02:00Z")
    context = talk.ask("Where does Ann run?", max_tokens=400)["context"]
    assert "Bob: Where do you run? / Ann: Along the river." in context
    assert context.count("Where do you run?") == 1


def test_bare_acknowledgement_is_stored_and_not_found(talk):
    said = (
        ("Ann", "I moved to Oslo."), ("Bot", "Noted."), ("Ann", "My sister lives in Rome."), ("Bot", "Sure!"),
        ("Ann", "Can you book a table for Tuesday?"), ("Bot", "Sure!"), ("Ann", "Do you like fish?"), ("Bot", "No"),
    )  # fmt: skip
    for minute, (speaker, content) in enumerate(said):
        talk.tell(speaker, content, f"2024-05-01T10:{minute:02}:00Z")
    found = talk.ask("What did Ann and Bot say?", limit=20)["results"]["episodes"]
    assert sorted(one["content"] for one in found if one["speaker"] == "Bot") == ["No", "Sure!"]
    [sure] = [one for one in found if one["content"] == "Sure!"]
    assert sure["at"].startswith("2024-05-01T10:05")


def test_turn_without_content_uses_no_place_of_limit(talk):
    for minute in range(3):
        talk.tell("Ann", f"I saw {('Oslo', 'Rome', 'Bergen')[minute]}.", f"2024-05-01T1{minute}:00:00Z")
        talk.tell("Bot", "Got it, thanks.", f"2024-05-01T1{minute}:01:00Z")
    found = talk.ask("Got it, thanks: what did Ann see?", limit=3)["results"]["episodes"]
    assert sorted(one["content"] for one in found) == ["I saw Bergen.", "I saw Oslo.", "I saw Rome."]
