"""Vector search on a real FalkorDB: by index, by exact comparison, and with filters."""

import math
from typing import Any

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries import search as cypher
from kg_memory.models.filters import parse_filter
from kg_memory.models.graph import Kind
from kg_memory.retrieval.ranking import Scored
from kg_memory.retrieval.retrievers import FEW, MOST_NEIGHBOURS, NEIGHBOUR_SHARE, Scope, narrow_scope, search_meaning
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import SESSION_GAP
from tests.queries import queries
from tests.retrieval.many import INSTANTS, QUESTION, Many

ALL = 3000
THROUGH_INDEX = 10_000
"""A count above the limit of exact comparison."""


def scope(kind: Kind = "facts", count: int = ALL, wanted: int = 10, where: Any = None) -> Scope:
    return Scope(kind, count, wanted, INSTANTS, parse_filter(where))


def nearest(scope: Scope) -> Flow[list[Scored]]:
    """Return what is found, after it was looked how many pass."""
    chosen = yield from narrow_scope(scope)
    found = yield from search_meaning(chosen, QUESTION)
    return found


def asked(flow: Flow[Any], many: Many) -> list[str]:
    """Run *flow* and return the queries that it made."""
    return [query.cypher for query in queries(flow, many.driver, graph_key(many.namespace))]


def test_vector_index_agrees_with_exact_comparison(many):
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


def test_search_meaning_of_empty_scope_runs_no_query():
    with pytest.raises(StopIteration) as ended:
        next(search_meaning(scope(count=0), QUESTION))
    assert ended.value.value == []


def test_search_meaning_skips_facts_without_vector(many):
    many.facts([{"id": "with"}, {"id": "without"}])
    many.forget_vector("without")
    assert [id_ for id_, _ in many.run(search_meaning(scope(count=2), QUESTION))] == ["with"]


@pytest.fixture(scope="module")
def crowd(driver: Any) -> Any:
    """Many facts near the question. Few are current or have the rare predicate, and those are the farthest."""
    made = Many(driver.store.database)
    made.facts(
        [
            {"id": f"f{i:04}", "angle": i / ALL, "over": i < ALL - 5, "predicate": "RARE" if i >= ALL - 3 else "P"}
            for i in range(ALL)
        ]
    )
    yield made
    made.driver.close()


def test_search_meaning_is_not_starved_by_ended_facts(crowd):
    assert [id_ for id_, _ in crowd.run(nearest(scope()))] == [f"f{i}" for i in range(2995, 3000)]


def test_search_meaning_finds_all_facts_of_selective_filter(crowd):
    found = crowd.run(nearest(scope(where={"predicate": "RARE"})))
    assert [id_ for id_, _ in found] == ["f2997", "f2998", "f2999"]


def test_search_meaning_finds_all_matches_of_uncounted_filter(crowd):
    where = {"$or": [{"predicate": "RARE"}, {"predicate": "RARER"}]}
    assert crowd.run(narrow_scope(scope(where=where))).matching_step is None
    assert [id_ for id_, _ in crowd.run(nearest(scope(where=where)))] == ["f2997", "f2998", "f2999"]


def test_search_meaning_returns_current_facts_of_broad_filter(crowd):
    assert crowd.run(narrow_scope(scope(where={"predicate": "P"}))).matching_step is None
    assert ALL - 3 > FEW
    assert [id_ for id_, _ in crowd.run(nearest(scope(where={"predicate": "P"})))] == ["f2995", "f2996"]


def test_search_meaning_examines_more_and_finally_all(crowd):
    *indexed, last = asked(nearest(scope()), crowd)
    assert 1 < len(indexed) < 6
    assert all("db.idx.vector" in each for each in indexed)
    assert last == cypher.exact_vector_search("facts", scope().post_filter_step(*cypher.CARRIED).cypher)
    assert MOST_NEIGHBOURS < ALL


def test_search_meaning_adds_share_of_neighbouring_episodes(many):
    far = math.pi / 2
    many.episodes([{"id": "a", "angle": far}, {"id": "b"}, {"id": "c", "angle": far}, {"id": "d", "angle": far}])
    found = dict(many.run(search_meaning(scope("episodes", 4), QUESTION)))
    share = NEIGHBOUR_SHARE
    assert found == pytest.approx({"b": 1.0, "a": share, "c": share, "d": 0.0}, abs=1e-5)


def test_search_meaning_ignores_neighbour_of_other_session(many):
    many.episodes([{"id": "a", "angle": math.pi / 2, "at": 0}, {"id": "b", "at": SESSION_GAP + 1}])
    found = dict(many.run(search_meaning(scope("episodes", 2), QUESTION)))
    assert found == pytest.approx({"a": 0.0, "b": 2.0}, abs=1e-5)
