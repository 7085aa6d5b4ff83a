"""One order a kind, from words, meaning and graph."""

from __future__ import annotations

from typing import Any

import pytest

from kg_memory.effects import Query
from kg_memory.falkor import search_cypher
from kg_memory.flow import run
from kg_memory.retrieval.rerank import DAY, rerank
from kg_memory.settings import Settings


def ranked(**state: Any) -> dict[str, Any]:
    flow = rerank(state, Settings())  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as end:
        next(flow)
    return end.value.value["ranked"]


def hits(words: list[Any] = (), meaning: list[Any] = (), graph: list[Any] = ()) -> dict[str, Any]:  # type: ignore[assignment]
    return {"words": list(words), "meaning": list(meaning), "graph": list(graph)}


def test_words_count_more_than_meaning_for_episodes() -> None:
    found = ranked(hits={"episodes": hits(words=[["a", 3.0]], meaning=[["b", 0.9]])})
    assert [name for name, _ in found["episodes"]] == ["a", "b"]


def test_a_named_entity_comes_before_one_that_only_sounds_alike() -> None:
    found = ranked(hits={"entities": hits(words=[["b", 3.0], ["a", 1.0]], graph=[["a", 1.0], ["b", 0.2]])})
    assert found["entities"][0][0] == "a"


def test_what_is_first_everywhere_scores_one() -> None:
    arm = [["a", 1.0], ["b", 0.5]]
    assert ranked(hits={"facts": hits(arm, arm, arm)})["facts"][0] == ["a", 1.0]


def test_only_the_best_are_kept() -> None:
    arm = [[f"n{number:03}", -number] for number in range(100)]
    assert len(ranked(hits={"facts": hits(arm)})["facts"]) == 10
    assert [name for name, _ in ranked(hits={"facts": hits(arm)}, limit=3)["facts"]] == ["n000", "n001", "n002"]
    assert ranked(hits={"facts": hits(arm)}, limit=0)["facts"] == []


def test_nothing_found_is_nothing_ranked() -> None:
    assert ranked(hits={"facts": hits()}) == {"facts": []}


NOW = 1_700_000_000_000_000
INSTANTS = {"since": NOW, "until": NOW + 1, "believed_at": NOW, "lenient": False, "unreviewed": False}


def decayed(rate: float, ages: dict[str, float], **state: Any) -> tuple[dict[str, Any], list[Query]]:
    """Rank with a decay; *ages* are in days, and what has none is not stored any more."""
    asked: list[Query] = []

    def perform(effect: Query) -> Any:
        asked.append(effect)
        ids = [*effect.params["facts"], *effect.params["episodes"]]
        return [{"id": id_, "at": NOW - int(ages[id_] * DAY)} for id_ in ids if id_ in ages]

    found = run(rerank({"instants": INSTANTS, **state}, Settings(temporal_decay_rate=rate)), perform)  # type: ignore[typeddict-item]
    return found["ranked"], asked


ARMS = {kind: hits(words=[["old", 3.0], ["new", 2.9]]) for kind in ("facts", "episodes", "entities", "communities")}


def test_without_a_decay_nothing_is_asked_and_nothing_changes() -> None:
    assert decayed(0.0, {}, hits=ARMS) == (ranked(hits=ARMS), [])


def test_with_a_decay_newer_facts_and_episodes_come_first_and_other_kinds_stay() -> None:
    found, [asked] = decayed(10.0, {"old": 400.0, "new": 0.0}, hits=ARMS)
    assert asked.cypher == search_cypher.LAST_SAID
    assert not asked.write
    for kind in ("facts", "episodes"):
        assert [name for name, _ in found[kind]] == ["new", "old"]
    for kind in ("entities", "communities"):
        assert found[kind] == ranked(hits=ARMS)[kind]


def test_a_decay_chooses_before_the_limit_and_leaves_out_what_is_gone() -> None:
    arm = [[f"n{number:02}", -float(number)] for number in range(30)]
    ages = {f"n{number:02}": 1000.0 for number in range(29)} | {"n29": 0.0}
    found, _ = decayed(10.0, ages, hits={**ARMS, "facts": hits(words=arm)}, limit=15)
    assert len(found["facts"]) == 15
    assert "n29" in [name for name, _ in found["facts"]]
    assert "n29" not in [name for name, _ in ranked(hits={"facts": hits(words=arm)}, limit=15)["facts"]]
    assert decayed(10.0, {"new": 1.0}, hits=ARMS)[0]["facts"][0][0] == "new"
    assert len(decayed(10.0, {"new": 1.0}, hits=ARMS)[0]["facts"]) == 1


def test_nothing_found_is_decayed_to_nothing() -> None:
    assert decayed(1.0, {}, hits={}) == ({}, [])
