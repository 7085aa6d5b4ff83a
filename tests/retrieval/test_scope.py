"""The scope of a search: how many items pass a filter, and how many are examined to find them."""

from collections.abc import Mapping
from typing import Any

import pytest

from kg_memory.models.filters import parse_filter
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.retrievers import DEEPER, EVERYTHING, FEW, Scope, filter_hits, narrow_scope
from tests.ingestion.stepping import answered
from tests.retrieval.many import INSTANTS

BY_ANN = {"speaker": "Ann"}


def scope(kind: Kind = "episodes", where: Any = None, wanted: int = 10, count: int = 5000) -> Scope:
    return Scope(kind, count, wanted, INSTANTS, parse_filter(where))


def rows(*ids: str) -> list[dict[str, Any]]:
    return [{"id": id_, "score": 1 / 3} for id_ in ids]


def test_measure_without_filter_runs_no_query():
    result, asked = answered(narrow_scope(scope()))
    assert (result, asked) == (scope(), [])
    assert scope().filter_step("d", "score") is EVERYTHING
    assert scope().post_filter_step("d", "score") == EVERYTHING


@pytest.mark.parametrize(("passing", "are_few"), [(0, True), (3, True), (FEW, True), (FEW + 1, False)])
def test_measure_searches_among_matches_if_they_are_few(passing, are_few):
    result, asked = answered(narrow_scope(scope(where=BY_ANN)), [{"n": passing}])
    assert (result.matching_step is not None) is are_few
    assert result.count == (passing if are_few else 5000)
    assert asked[0].params["most"] == FEW + 1
    assert result.is_post_filtered is not are_few


def test_measure_of_deleted_namespace_is_zero():
    result, _ = answered(narrow_scope(scope(where=BY_ANN)), [])
    assert result.count == 0


def test_measure_does_not_count_filter_without_start():
    given = scope(where={"$not": BY_ANN})
    assert answered(narrow_scope(given)) == (given, [])
    assert given.is_post_filtered


@pytest.mark.parametrize("kind", KINDS)
def test_scope_filters_facts_always_and_others_by_filter(kind):
    assert scope(kind).is_post_filtered is (kind == "facts")
    assert scope(kind, {"$not": BY_ANN}).is_post_filtered


def test_best_looks_at_more_as_it_examines_more():
    _, asked = answered(scope("facts", wanted=2).best("q", 1000, min_texts=10), rows("a"), rows("a"), rows("a", "b"))
    assert [each.params["looked"] for each in asked] == [10, 4 * DEEPER, 4 * DEEPER**2]


def test_best_without_post_filter_runs_one_query():
    _, asked = answered(scope(wanted=2).best("q", 1000, extra=1), rows("a"))
    [query] = asked
    assert query.params == {"examined": 2, "limit": 2, "extra": 1, **INSTANTS.params}


def test_filter_hits_runs_no_query_without_filter_or_hits():
    scopes: Mapping[Kind, Scope] = {"episodes": scope(), "facts": scope("facts", BY_ANN)}
    found, asked = answered(filter_hits(scopes, {"episodes": [("a", 1.0)], "facts": []}))
    assert found == {"episodes": [("a", 1.0)], "facts": []}
    assert asked == []
