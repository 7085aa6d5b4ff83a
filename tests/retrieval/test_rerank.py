"""One order a kind, from words, meaning and graph."""

from __future__ import annotations

from typing import Any

import pytest

from kg_memory.retrieval.rerank import rerank
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
