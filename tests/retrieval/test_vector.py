"""Nearest by meaning on a real FalkorDB: by the index, by comparing all, and through filters."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kg_memory.falkor.queries import search as cypher
from kg_memory.models.filters import parse_filter
from kg_memory.models.graph import Kind
from kg_memory.retrieval.ranking import Scored
from kg_memory.retrieval.retrievers import FEW, MOST_NEIGHBOURS, NEIGHBOUR_SHARE, Scope, measure, search_meaning
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import SESSION_GAP
from tests.retrieval.many import INSTANTS, QUESTION, Many

ALL = 3000
THROUGH_INDEX = 10_000
"""More than are compared one by one."""


def scope(kind: Kind = "facts", count: int = ALL, wanted: int = 10, where: Any = None) -> Scope:
    return Scope(kind, count, wanted, INSTANTS, parse_filter(where))


def nearest(scope: Scope) -> Flow[list[Scored]]:
    """Return what is found, after it was looked how many pass."""
    chosen = yield from measure(scope)
    found = yield from search_meaning(chosen, QUESTION)
    return found


def asked(flow: Flow[Any], many: Many) -> list[str]:
    """Run *flow* and return the queries that it made."""
    queries: list[str] = []

    def noted() -> Flow[Any]:
        answer = None
        while True:
            try:
                effect = flow.send(answer)
            except StopIteration as ended:
                return ended.value
            queries.append(effect.cypher)
            answer = yield effect

    many.run(noted())
    return queries


def test_the_index_and_comparing_all_agree(many: Many) -> None:
    """The vector index and an exact comparison return the same items and scores.

    Features: A38.
    """
    many.facts([{"id": f"f{i:02}", "angle": i / 50} for i in range(60)])
    exact = many.run(search_meaning(scope(count=60), QUESTION))
    indexed = many.run(search_meaning(scope(count=THROUGH_INDEX), QUESTION))
    assert [id_ for id_, _ in exact] == [id_ for id_, _ in indexed] == [f"f{i:02}" for i in range(10)]
    assert [score for _, score in exact] == pytest.approx([math.cos(i / 50) for i in range(10)], abs=1e-5)
    assert [score for _, score in exact] == pytest.approx([score for _, score in indexed], abs=1e-5)
    assert "db.idx.vector" in asked(search_meaning(scope(count=THROUGH_INDEX), QUESTION), many)[0]
    assert "vec.cosineDistance(d.embedding" in asked(search_meaning(scope(count=60), QUESTION), many)[0]


def test_nothing_stored_costs_no_query() -> None:
    with pytest.raises(StopIteration) as ended:
        next(search_meaning(scope(count=0), QUESTION))
    assert ended.value.value == []


def test_what_has_no_vector_is_left_out(many: Many) -> None:
    many.facts([{"id": "with"}, {"id": "without"}])
    many.forget_vector("without")
    assert [id_ for id_, _ in many.run(search_meaning(scope(count=2), QUESTION))] == ["with"]


@pytest.fixture(scope="module")
def crowd(driver: Any) -> Any:
    """Many facts near the question, of which few hold or are of a rare kind; those lie farthest."""
    made = Many(driver.store.database)
    made.facts(
        [
            {"id": f"f{i:04}", "angle": i / ALL, "over": i < ALL - 5, "predicate": "RARE" if i >= ALL - 3 else "P"}
            for i in range(ALL)
        ]
    )
    yield made
    made.driver.close()


def test_facts_that_hold_no_longer_do_not_starve_the_search(crowd: Many) -> None:
    assert [id_ for id_, _ in crowd.run(nearest(scope()))] == [f"f{i}" for i in range(2995, 3000)]


def test_the_few_that_pass_a_filter_are_all_found_however_far_they_lie(crowd: Many) -> None:
    found = crowd.run(nearest(scope(where={"predicate": "RARE"})))
    assert [id_ for id_, _ in found] == ["f2997", "f2998", "f2999"]


def test_so_are_they_where_everything_has_to_be_looked_through(crowd: Many) -> None:
    where = {"$or": [{"predicate": "RARE"}, {"predicate": "RARER"}]}
    chosen = crowd.run(measure(scope(where=where)))
    assert chosen.few is None
    assert [id_ for id_, _ in crowd.run(nearest(scope(where=where)))] == ["f2997", "f2998", "f2999"]


def test_of_many_that_pass_only_those_that_hold_are_found(crowd: Many) -> None:
    chosen = crowd.run(measure(scope(where={"predicate": "P"})))
    assert chosen.few is None
    assert ALL - 3 > FEW
    assert [id_ for id_, _ in crowd.run(nearest(scope(where={"predicate": "P"})))] == ["f2995", "f2996"]


def test_more_and_more_are_examined_and_at_last_all(crowd: Many) -> None:
    *indexed, last = asked(nearest(scope()), crowd)
    assert 1 < len(indexed) < 6
    assert all("db.idx.vector" in each for each in indexed)
    assert last == cypher.exact_vector_search("facts", scope().sift_step(*cypher.CARRIED).cypher)
    assert MOST_NEIGHBOURS < ALL


def test_a_line_means_a_share_of_what_its_neighbours_say(many: Many) -> None:
    far = math.pi / 2
    many.episodes([{"id": "a", "angle": far}, {"id": "b"}, {"id": "c", "angle": far}, {"id": "d", "angle": far}])
    found = dict(many.run(search_meaning(scope("episodes", 4), QUESTION)))
    share = NEIGHBOUR_SHARE
    expected = {"b": 1.0, "a": share, "c": share, "d": 0.0}
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_line_of_another_sitting_lends_no_meaning(many: Many) -> None:
    many.episodes([{"id": "a", "angle": math.pi / 2, "at": 0}, {"id": "b", "at": SESSION_GAP + 1}])
    assert dict(many.run(search_meaning(scope("episodes", 2), QUESTION))) == pytest.approx(
        {"a": 0.0, "b": 2.0}, abs=1e-5
    )
