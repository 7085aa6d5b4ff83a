from __future__ import annotations

from typing import Any

import pytest

from kg_memory.falkor import cypher
from kg_memory.ingestion.dedupe import dedupe
from kg_memory.prompts.answers import Duplicates
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, OPEN_START
from tests.ingestion.stepping import answered, ended, entity, state

KNOWN = [entity("Ann", known=True), entity("Oslo", "Place", known=True), entity("Bob")]


def fact(id_: str = "new", objects: tuple[int, ...] = (1,)) -> dict[str, Any]:
    return {
        "id": id_, "subject": 0, "predicate": "LIVES_IN", "objects": list(objects), "sentence": "Ann lives in Oslo.",
        "said_from": "2024-01-01", "said_until": None,
    }  # fmt: skip


def stored(id_: str, place: int = 0) -> dict[str, Any]:
    told = {"id": id_, "subject": "Ann", "predicate": "LIVES_IN", "sentence": f"The fact {id_}."}
    beliefs = [{"id": "b", "valid_at": 0, "invalid_at": OPEN_END}, {"id": "c", "valid_at": OPEN_START, "invalid_at": 5}]
    return {"new": place, "fact": told, "objects": ["Oslo"], "beliefs": beliefs}


def test_facts_of_new_entities_are_new_and_nothing_is_looked_up():
    result = ended(dedupe(state(entities=[entity("Ann"), entity("Oslo")], facts=[fact()]), Settings()))
    assert [each["same_as"] for each in result["facts"]] == [None]


def test_a_fact_is_compared_only_with_those_of_its_own_pair():
    _, [asked] = answered(dedupe(state(entities=KNOWN, facts=[fact(objects=(1, 2))]), Settings()), [])
    assert asked.cypher == cypher.FACTS_OF_PAIRS
    assert asked.params["pairs"] == [{"new": 0, "subject": "id Ann", "object": "id Oslo"}]


def test_the_same_words_again_are_the_same_fact_without_asking():
    result, effects = answered(
        dedupe(state(entities=KNOWN, facts=[fact("old")]), Settings()), [stored("x"), stored("old")]
    )
    assert (result["facts"][0]["same_as"], len(effects)) == ("old", 1)


def test_other_words_are_asked_about_and_told_without_the_ids_of_the_graph():
    answer = Duplicates(duplicates=[{"fact": 0, "same_as": 1}])
    rows = [stored("one"), stored("two")]
    result, [_, asked] = answered(dedupe(state(entities=KNOWN, facts=[fact()]), Settings()), rows, answer)
    assert result["facts"][0]["same_as"] == "two"
    [told] = asked.fields["facts"]
    assert (told["subject"], told["objects"], [each["id"] for each in told["existing"]]) == ("Ann", ["Oslo"], [0, 1])
    assert (told["existing"][0]["valid_at"], told["existing"][0]["invalid_at"]) == (None, None)


@pytest.mark.parametrize(
    "verdict",
    [{"fact": 0, "same_as": None}, {"fact": 0, "same_as": 7}, {"fact": 0, "same_as": -1}, {"fact": 3, "same_as": 0}],
)
def test_a_verdict_that_names_no_known_fact_leaves_it_new(verdict):
    result, _ = answered(
        dedupe(state(entities=KNOWN, facts=[fact()]), Settings()), [stored("one")], Duplicates(duplicates=[verdict])
    )
    assert result["facts"][0]["same_as"] is None


def test_only_the_uncertain_ones_are_asked_about_under_their_own_place():
    facts = [fact("old"), fact("new")]
    rows = [stored("old"), stored("old", 1)]
    answer = Duplicates(duplicates=[{"fact": 1, "same_as": 0}])
    result, [_, asked] = answered(dedupe(state(entities=KNOWN, facts=facts), Settings()), rows, answer)
    assert [each["id"] for each in asked.fields["facts"]] == [1]
    assert [each["same_as"] for each in result["facts"]] == ["old", "old"]
