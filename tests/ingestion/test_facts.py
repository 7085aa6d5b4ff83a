from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.support.passage import locate
from kg_memory.llm.prompts.answers import ExtractedFacts
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered, ended, entity, facts, state

PEOPLE = [entity("Ann"), entity("Bob"), entity("Oslo", "Place")]


def stated(**given: Any) -> dict[str, Any]:
    return {
        "subject": 0, "predicate": "lives in", "objects": [2], "sentence": "Ann lives in Oslo.", "quote": "live in Oslo",
        "valid_at": None, "invalid_at": None, "edge_type": "semantic", "confidence": 0.9, **given,
    }  # fmt: skip


def found(*answers: dict[str, Any], content: str = "I live in Oslo.", **settings: Any) -> list[dict[str, Any]]:
    answer = ExtractedFacts(facts=list(answers))
    result, _ = answered(facts(state(content, entities=PEOPLE), Settings(**settings)), answer, [])
    return result["facts"]


def test_fact_has_subject_objects_sentence_and_quote_position():
    """A fact has its subject and objects, its sentence, and the position of its quote in the message.

    Features: A8, C5.
    """
    [fact] = found(stated(valid_at="2024-01-01"))
    assert (fact["subject"], fact["predicate"], fact["objects"]) == (0, "LIVES_IN", [2])
    assert (fact["sentence"], fact["stated_from"], fact["stated_until"]) == ("Ann lives in Oslo.", "2024-01-01", None)
    assert (fact["start"], fact["end"]) == (2, 14)


@pytest.mark.parametrize(
    "odd",
    [
        *({"subject": subject} for subject in (3, -1)), *({"objects": objects} for objects in ([3], [-1], [0, 7])),
        {"sentence": "", "quote": ""}, {"sentence": " \n"},
    ],
)  # fmt: skip
def test_fact_with_unknown_entity_or_no_content_is_dropped(odd):
    """Facts about unknown entities, and facts without content, are dropped.

    Features: A22.
    """
    assert found(stated(**odd), stated()) == found(stated())


@pytest.mark.parametrize(("objects", "kept"), [*((none, []) for none in ([], [0], [0, 0])), ([1, 2, 1, 0, 9], [1, 2])])
def test_fact_has_its_objects_once_and_without_the_subject(objects, kept):
    """Features: A7."""
    [fact] = found(stated(objects=objects, sentence="Ann is a vegan."))
    assert (fact["subject"], fact["objects"], len(fact["object_ids"])) == (0, kept, len(kept))


def test_known_predicate_determines_the_kind_of_a_fact():
    kinds = [found(stated(predicate=name, kind="event"))[0]["kind"] for name in ("moved to", "visited", "was born in")]
    assert kinds == ["state", "event", "event"]


def test_rests_on_indexes_become_premise_ids():
    premise, fact, odd = found(
        stated(sentence="The rent is low.", objects=[]),
        stated(sentence="Ann lives in Oslo.", rests_on=[0, 1, 7]),
        stated(sentence="Ann likes Oslo.", rests_on=[-1]),
    )
    assert (premise["premises"], fact["premises"], odd["premises"]) == ([], [premise["id"]], [])


def test_repeated_sentence_gives_one_fact():
    """Features: B7."""
    assert len(found(stated(), stated(sentence="ann lives in OSLO"), stated(sentence="Ann is of Oslo."))) == 2


def test_facts_prompt_has_names_used_in_the_episode():
    people = [entity("Ann"), entity("Robert", called=("Bob", "Bobby"))]
    _, [asked] = answered(facts(state(entities=people), Settings()), ExtractedFacts(facts=[]))
    assert asked.fields["entities"] == [
        {"id": 0, "name": "Ann", "type": "Person", "called": ["Ann"]},
        {"id": 1, "name": "Robert", "type": "Person", "called": ["Bob", "Bobby"]},
    ]


def test_facts_asks_nothing_without_entities():
    assert ended(facts(state(entities=[]), Settings())) == {"facts": [], "predicates": [], "dropped": []}


@pytest.mark.parametrize(
    ("quote", "content", "span"),
    [
        ("in Oslo", "I live in Oslo.", (7, 14)), ("IN  oslo", "I live in\n Oslo.", (7, 15)),
        (" Oslo\n", "To oslo? Yes, to Oslo.", (17, 21)), ("in Oslo (now)", "I live in Oslo (now).", (7, 20)),
        ("never said", "I live in Oslo.", None), ("", "I live in Oslo.", None), ("  ", "I live in Oslo.", None),
        ("奥斯陆", "我住在奥斯陆。", (3, 6)), (".*", "I live in Oslo.", None),
    ],
)  # fmt: skip
def test_locate_ignores_case_and_whitespace(quote, content, span):
    assert locate(quote, content) == span


@given(st.text(max_size=50), st.text(max_size=50))
def test_locate_returns_a_span_within_the_content(quote, content):
    start, end = locate(quote, content) or (0, 0)
    assert 0 <= start <= end <= len(content)


def test_episode_without_facts_looks_up_no_predicate():
    result, effects = answered(facts(state(entities=PEOPLE), Settings()), ExtractedFacts(facts=[]))
    assert (result, len(effects)) == ({"facts": [], "predicates": [], "dropped": []}, 1)


def test_fact_has_canonical_predicate_and_original_wording():
    """Features: A53."""
    [fact] = found(stated(predicate="resides in"))
    assert (fact["predicate"], fact["wording"]) == ("LIVES_IN", "RESIDES_IN")
    assert (fact["single_valued"], fact["declared"], fact["family"]) == (True, False, "residence")


def test_two_wordings_of_one_predicate_give_one_fact():
    [fact] = found(stated(predicate="resides in"), stated(predicate="lives in"))
    assert fact["wording"] == "RESIDES_IN"


@pytest.mark.parametrize(("given", "kept"), [(float("nan"), 0.5), (9, 1.0), (-1, 0.0)])
def test_the_confidence_of_a_fact_lies_within_0_and_1(given, kept):
    """Features: B9."""
    [fact] = found(stated(confidence=given))
    assert fact["confidence"] == kept
