"""Graphiti's edges become declared facts and its episodes messages; no model is asked about the edges."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.models.operations import ImportResult
from tests.faults.whole import flaws
from tests.transfer import graphiti_graph

GRAPH = "of graphiti"


@pytest.fixture
def there(memory: GraphMemory) -> Iterator[GraphMemory]:
    """A memory beside which Graphiti has its graph."""
    database = memory.driver.store.database
    database.client().delete(GRAPH)
    graphiti_graph.put(lambda cypher, **params: database.query(GRAPH, cypher, params, write=True))
    yield memory
    database.delete(GRAPH)


def bring(memory: GraphMemory, source: Any, namespace: str, **options: Any) -> ImportResult:
    return memory.data.import_from("graphiti", source, namespace=namespace, read=False, **options)


def facts_about_ann(memory: GraphMemory, namespace: str, **when: Any) -> list[tuple[str, Any, Any]]:
    return [
        (each.sentence, each.valid_at and each.valid_at.month, each.invalid_at and each.invalid_at.month)
        for each in memory.facts.about("Ann", namespace=namespace, **when)
    ]


def test_import_gives_edges_their_dates(there, server, namespace):
    asked = len(there.driver.model.asked)
    done = bring(there, f"{server.url}#{GRAPH}", namespace)
    assert len(there.driver.model.asked) == asked
    assert done.records == {"message": 3, "declared fact": 6}
    homes = [("Ann lives in Paris", 2, None), ("Ann lives in Oslo", 1, 2)]
    assert facts_about_ann(there, namespace) == [("Ann works at Acme", None, None), *homes]
    [was] = there.facts.about("Acme", namespace=namespace, as_of="2020-06-01")
    stated = {source.at for source in was.sources}
    assert (was.sentence, datetime(2025, 1, 1, 10, 3, tzinfo=UTC) in stated) == ("Acme was in Oslo", True)
    first = there.episodes.list(namespace=namespace, where={"kind": "message"})[-1]
    assert (first.speaker, first.content, first.source_id) == ("Ann", "I live in Oslo, undated", "e1")
    found = there.search("Where does Ann live?", namespace=namespace)
    assert found.facts[0].sentence == "Ann lives in Paris"
    assert flaws(lambda cypher: there.driver.store.database.query(graph_key(namespace), cypher, {}, write=False)) == []


def test_a_new_statement_ends_an_imported_fact(there, server, namespace):
    bring(there, f"{server.url}#{GRAPH}", namespace)
    there.add("I moved to Rome", speaker="Ann", at="2024-06-01", namespace=namespace)
    assert ("Ann lives in Paris", 2, 6) in facts_about_ann(there, namespace)


def test_neo4j_dump_imports_the_same_as_the_graph(there, server, namespace, tmp_path):
    bring(there, f"{server.url}#{GRAPH}", namespace)
    facts = facts_about_ann(there, namespace)
    graphiti_graph.dump(tmp_path / "neo4j.json")
    again = bring(there, tmp_path / "neo4j.json", namespace)
    assert again.repeated == sum(again.records.values()) == 9
    assert facts_about_ann(there, namespace) == facts


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"created_at": "2025', '"created_at": "last year', r"neo4j.json, record 11: created_at is not a time"),
        ('"name": "Ann"', '"name": ["Ann"]', r"neo4j.json, record 1: name must be a text"),
        ("", "nonsense\n", r"neo4j.json:1: not JSON .*fix or remove the line"),
        (None, "", "neo4j.json has no records"),
        ('"group_id": "ann"', '"group_id": "bob"', r"2 groups; choose one with --group, such as one of \['ann', 'bob"),
    ],
)
def test_wrong_dump_raises_with_advice_and_changes_nothing(memory, namespace, tmp_path, right, wrong, said):
    path = tmp_path / "neo4j.json"
    graphiti_graph.dump(path)
    good = path.read_text("utf-8")
    path.write_text(wrong if right is None else f"{wrong}{good}" if not right else good.replace(right, wrong), "utf-8")
    if right == '"group_id": "ann"':
        path.write_text(good.replace(right, wrong, 1), "utf-8")
    with pytest.raises(InputError, match=said):
        bring(memory, path, namespace)
    assert namespace not in memory.data.namespaces()


def test_import_raises_for_unknown_group_or_graph(there, server, namespace):
    with pytest.raises(InputError, match="no group 'eve'"):
        bring(there, f"{server.url}#{GRAPH}", namespace, group="eve")
    with pytest.raises(InputError, match="no graph 'none' on that server"):
        bring(there, f"{server.url}#none", namespace)
