"""One order from several ways of searching."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.graph import KINDS
from kg_memory.retrieval.fuse import RETRIEVERS, Hits
from kg_memory.retrieval.recipe import DEFAULT, RECIPES, Recipe, Weights

SCORED = st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 30), max_size=6).map(
    lambda found: sorted(found.items(), key=lambda one: -one[1])
)
HITS = st.builds(Hits, SCORED, SCORED, SCORED)
ONLY_FACTS = DEFAULT.with_(kinds=("facts",))


def hits(words: Any = (), meaning: Any = (), graph: Any = ()) -> Any:
    return Hits(list(words), list(meaning), list(graph))


@given(HITS, st.sampled_from(list(RECIPES.values())), st.sampled_from(KINDS))
def test_all_that_counting_ways_found_is_there_once_in_order_with_scores_from_0_to_1(
    given: Any, recipe: Recipe, kind: Any
) -> None:
    weights = recipe.weights(kind)
    found = recipe.fuse(kind, given)
    assert {id_ for id_, _ in found} == {id_ for way in RETRIEVERS if getattr(weights, way) for id_, _ in given.of(way)}
    assert len({id_ for id_, _ in found}) == len(found)
    assert all(0 <= score <= 1 for _, score in found)
    assert found == sorted(found, key=lambda one: (-one[1], one[0]))


@pytest.mark.parametrize("fusion", ["scores", "rrf"])
def test_what_is_first_in_every_way_has_1_and_ties_are_in_order_of_id(fusion: Any) -> None:
    recipe = DEFAULT.with_(fusion=fusion)
    one = [("b", 3.0), ("z", 2.0), ("a", 2.0), ("c", 1.0)]
    found = recipe.fuse("facts", hits(one, one, one))
    assert found[0] == ("b", 1.0)
    assert [id_ for id_, _ in found] == ["b", "a", "z", "c"]


@pytest.mark.parametrize("fusion", ["scores", "rrf"])
def test_a_way_that_counts_more_decides(fusion: Any) -> None:
    words, meaning = [("a", 9.0), ("b", 1.0)], [("b", 0.9), ("a", 0.1)]
    for weights, first in ((Weights(words=2), "a"), (Weights(meaning=2), "b")):
        recipe = DEFAULT.with_(fusion=fusion, facts=weights)
        assert recipe.fuse("facts", hits(words, meaning))[0][0] == first


def test_a_way_that_does_not_count_and_a_kind_that_is_left_out_give_nothing() -> None:
    found = hits([("a", 1.0)], graph=[("g", 1.0)])
    assert RECIPES["words"].fuse("facts", found) == [("a", 1.0)]
    assert ONLY_FACTS.fuse("episodes", found) == []
    assert DEFAULT.with_(facts=Weights(words=0, meaning=0, graph=0), fusion="rrf").fuse("facts", found) == []
