"""Concurrent writes: an export is of one moment, and an import overwrites nothing that was written meanwhile."""

import io
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from kg_memory.errors import InputError, SchemaError
from kg_memory.falkor import graph_swap
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.servers import CONNECTIONS
from tests.transfer import exported, left_aside, whole


def meanwhile(monkeypatch: pytest.MonkeyPatch, begin: str, work: Any) -> None:
    """Run *work* once, before the first query that starts with *begin*."""
    query, done = Database.query, []

    def with_work(self: Database, key: str, cypher: str, params: Any, *, write: bool) -> Any:
        if cypher.strip().startswith(begin) and not done:
            done.append(key)
            work()
        return query(self, key, cypher, params, write=write)

    monkeypatch.setattr(Database, "query", with_work)


def test_an_export_is_of_one_moment_while_others_write(memory, namespace, monkeypatch):
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    before = exported(memory, namespace)
    add = partial(memory.add, "I moved to Paris", speaker="Ann", at="2024-01-02", namespace=namespace)
    meanwhile(monkeypatch, "MATCH (n:Fact)", add)
    during = exported(memory, namespace)
    assert during != before
    assert during == exported(memory, namespace), "it was done once more, from a copy, and a copy says the same"
    assert left_aside(memory.driver.store.database) == []


@pytest.mark.timeout(60)
def test_exports_leave_connections_to_others(memory, namespace):
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    database, key = memory.driver.store.database, graph_key(namespace)
    with ExitStack() as opened:
        for _ in range(CONNECTIONS):
            opened.enter_context(graph_swap.shadow_graph(database, key))
        assert [each.sentence for each in memory.facts.list(namespace=namespace)] == ["Ann lives in Oslo"]


def test_import_raises_if_namespace_was_written_meanwhile(memory, namespace, monkeypatch):
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    data, other = exported(memory, namespace), f"{namespace} other"
    meanwhile(monkeypatch, "UNWIND $rows", lambda: memory.add("I moved to Rome", speaker="Bob", namespace=other))
    with pytest.raises(InputError, match="was written meanwhile; choose another namespace, or replace it"):
        memory.data.import_(io.BytesIO(data), namespace=other)
    assert [each.content for each in memory.episodes.list(namespace=other)] == ["I moved to Rome"]
    assert left_aside(memory.driver.store.database) == []


def test_replace_is_atomic_for_readers(memory, namespace, monkeypatch):
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    data, seen = exported(memory, namespace), []
    memory.add("I moved to Paris", speaker="Ann", at="2024-01-02", namespace=namespace)
    old = whole(memory, namespace)
    replace = graph_swap.ShadowGraph.replace

    def watched(self: graph_swap.ShadowGraph, key: str) -> bool:
        seen.append(whole(memory, namespace))
        taken = replace(self, key)
        seen.append(whole(memory, namespace))
        return taken

    monkeypatch.setattr(graph_swap.ShadowGraph, "replace", watched)
    memory.data.import_(io.BytesIO(data), replace=True)
    assert seen[0] == old
    assert exported(memory, namespace) == data
    assert seen[1] == whole(memory, namespace)


def test_export_raises_for_unknown_label(memory, namespace):
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    look, key = memory.driver.store.database.query, memory.driver.key(namespace)
    look(key, "CREATE (:Soul {id: 'x'})", {}, write=True)
    with pytest.raises(SchemaError, match="the graph has 'Soul', which this package does not support; upgrade"):
        exported(memory, namespace)


def test_extra_fields_and_links_survive_a_round_trip(memory, namespace):
    memory.add("Ann moved to Oslo with Bob", speaker="Ann", at="2024-01-01", namespace=namespace)
    memory.communities.refresh(namespace=namespace)
    look, key = memory.driver.store.database.query, memory.driver.key(namespace)
    for more in (
        "MATCH (n:Entity) SET n.stars = 5, n.tags = ['a', 'b']",
        "MATCH (f:Fact) SET f.used = 1.5, f.used_at = 1700000000000000, f.n = NULL",
        "MATCH (a:Entity {name: 'Ann'}), (b:Entity {name: 'Bob'}) CREATE (a)-[:SIMILAR_TO {similarity: 0.9}]->(b)",
        "MATCH (c:Community) CREATE (c)-[:PART_OF]->(:Community {id: 'up', name: 'All', summary: '', level: 1, n: 0})",
        "MATCH (m:Meta {id: 'schema'}) SET m.refreshed_at = 1700000000000000",
        "CREATE (:Spent {day: 20000, calls: 3, input_tokens: 5})",
    ):
        look(key, more, {}, write=True)
    before, data = whole(memory, namespace), exported(memory, namespace)
    assert b'"similarity":0.9' in data
    memory.data.import_(io.BytesIO(data), replace=True)
    assert whole(memory, namespace) == before
