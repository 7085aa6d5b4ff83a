"""Graphiti's graph comes with both clocks, evidence and what ended what; no model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.embedded import Server
from tests.faults.whole import flaws
from tests.transfer import exported, graphiti_graph, left_aside

GRAPH = "of graphiti"


@pytest.fixture
def there(memory: GraphMemory) -> Iterator[GraphMemory]:
    """A memory beside which Graphiti has its graph."""
    database = memory.driver.store.database
    database.client().delete(GRAPH)
    graphiti_graph.put(lambda cypher, **params: database.query(GRAPH, cypher, params, write=True))
    yield memory
    database.delete(GRAPH)


def told(memory: GraphMemory, namespace: str, **when: Any) -> list[tuple[str, Any, Any]]:
    found = memory.facts.about("Ann", namespace=namespace, **when)
    return [
        (each.sentence, each.valid_at and each.valid_at.month, each.invalid_at and each.invalid_at.month)
        for each in found
    ]


def test_facts_come_with_both_clocks_and_evidence(there: GraphMemory, server: Server, namespace: str):
    asked = len(there.driver.model.asked)
    done = there.data.import_graphiti(server.url, graph=GRAPH, namespace=namespace)
    assert len(there.driver.model.asked) == asked
    assert done.left_out == {"Entity": 1}
    assert (done.records["entity"], done.records["fact"], done.records["verdict"]) == (4, 4, 1)
    assert told(there, namespace) == [
        ("Ann works at Acme", None, None),
        ("Ann lives in Paris", 2, None),
        ("Ann lives in Oslo", 1, 2),
    ]
    before = datetime(2025, 1, 1, 10, 0, 30, tzinfo=UTC)
    assert told(there, namespace, believed_at=before) == [("Ann lives in Oslo", 1, None)]
    oslo = next(each for each in there.facts.about("Ann", namespace=namespace) if "Oslo" in each.sentence)
    assert (oslo.created_at, oslo.sources[0].quote) == (
        datetime(2025, 1, 1, 10, 1, tzinfo=UTC),
        "I live in Oslo, undated",
    )
    assert oslo.sources[0].speaker == "Ann"
    [was] = there.facts.about("Acme", namespace=namespace, as_of="2020-06-01")
    assert (was.sentence, was.sources[0].quote) == ("Acme was in Oslo", "Acme was in Oslo")
    assert [each.name for each in there.communities.list(namespace=namespace)] == ["Ann's places"]
    found = there.search("Where does Ann live?", namespace=namespace)
    assert found.facts[0].sentence == "Ann lives in Paris"
    assert flaws(lambda cypher: there.driver.store.database.query(graph_key(namespace), cypher, {}, write=False)) == []


def test_what_ended_a_fact_can_be_forgotten_and_a_new_one_ends_it_too(
    there: GraphMemory, server: Server, namespace: str
):
    there.data.import_graphiti(server.url, graph=GRAPH, namespace=namespace)
    there.add("I moved to Rome", speaker="Ann", at="2024-06-01", namespace=namespace)
    assert ("Ann lives in Paris", 2, 6) in told(there, namespace)
    [paris] = [each for each in there.episodes.list(namespace=namespace) if each.content == "I moved to Paris"]
    there.privacy.forget(episode=paris.id, namespace=namespace)
    assert ("Ann lives in Oslo", 1, 6) in told(there, namespace), "it had been ended by what is forgotten"


def test_a_dump_of_neo4j_says_the_same_as_the_graph(there: GraphMemory, server: Server, namespace: str, tmp_path: Path):
    there.data.import_graphiti(server.url, graph=GRAPH, namespace=namespace)
    data = exported(there, namespace)
    graphiti_graph.dump(tmp_path / "neo4j.json")
    there.data.import_graphiti(tmp_path / "neo4j.json", namespace=namespace, replace=True)
    assert exported(there, namespace) == data
    assert left_aside(there.driver.store.database) == []


async def test_it_comes_as_well_on_an_event_loop(there: GraphMemory, server: Server, namespace: str):
    done = await there.data.aimport_graphiti(server.url, graph=GRAPH, namespace=namespace, progress=lambda *_: None)
    assert done.records["episode"] == 4


def test_a_wrong_dump_changes_nothing_and_says_what_to_do(
    there: GraphMemory, server: Server, namespace: str, tmp_path: Path
):
    path = tmp_path / "neo4j.json"
    graphiti_graph.dump(path)
    good = path.read_text("utf-8")
    for wrong, said in (
        (
            good.replace('"created_at": "2025', '"created_at": "last year', 1),
            r"neo4j.json:1: created_at: .*fix or remove",
        ),
        (good.replace('"name": "Ann"', '"name": ["Ann"]', 1), r"neo4j.json:1: name: .*fix or remove"),
        (
            f"{good}nonsense\n",
            r"neo4j.json:\d+: the line must be a node or relationship in JSON; use apoc.export.json.all",
        ),
        ("", "no entities and no episodes of Graphiti's; check"),
        (good.replace('"group_id": "ann"', '"group_id": "bob"', 1), r"2 groups, such as \['ann', 'bob'\]; choose one"),
    ):
        path.write_text(wrong, "utf-8")
        with pytest.raises(InputError, match=said):
            there.data.import_graphiti(path, namespace=namespace)
    with pytest.raises(InputError, match="no group 'eve'"):
        there.data.import_graphiti(server.url, graph=GRAPH, group="eve", namespace=namespace)
    with pytest.raises(InputError, match="no graph 'none' on that server"):
        there.data.import_graphiti(server.url, graph="none", namespace=namespace)
    assert namespace not in there.data.namespaces()
