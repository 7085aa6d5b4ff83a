"""Plans of the queries of export and import: pages use internal ids, references use an index."""

import pytest

from kg_memory import GraphMemory
from kg_memory.adapters.store.store import KGStore
from kg_memory.contrib.drawings import graphs
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.schema import ITEMS
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.records import INSIDE, INSIDE_RELATIONS, NODES, RECORDS, RELATIONS

PAGE = {"first": 0, "end": 10, "embeddings": True}
READ = {**cypher.READ, "entities drawn": graphs.ENTITIES, "facts drawn": graphs.FACTS}
WRITE = {**cypher.WRITE, **{f"words of {name}": query for name, query in cypher.WRITE_WORDS.items()}}


@pytest.fixture
def key(memory: GraphMemory, namespace: str) -> str:
    memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
    return memory.driver.key(namespace)


def test_export_queries_read_pages_by_internal_ids(memory, key):
    for name, query in READ.items():
        used = {each: value for each, value in PAGE.items() if f"${each}" in query}
        plan = memory.driver.store.database.explain(key, query, used)
        assert plan.count("Scan") == 1, (name, plan)
        assert "Label and ID Scan" in plan, (name, plan)


def test_import_queries_find_references_by_an_index(memory, key):
    KGStore(memory, name=key).put(("a",), "k", {"n": 1}, index=False)
    for name, query in WRITE.items():
        place = graph_key(key, ITEMS.prefix) if name in RECORDS["items"] else key
        plan = memory.driver.store.database.explain(place, query, {"rows": []})
        scans = [line.strip() for line in plan.splitlines() if "Scan" in line]
        assert all(line.startswith("Node By Index Scan") for line in scans), (name, plan)
    assert "Node By Index Scan" in memory.driver.store.database.explain(key, cypher.TERMS, {"terms": []})


def test_record_tables_cover_the_schema():
    assert {*schema.RANGE, "Meaning"} == {*NODES, *INSIDE} - {"Namespace", "Item", "Vector"}
    assert {*schema.RELATIONS} == {*RELATIONS, *INSIDE_RELATIONS} - {"IN", "HAS"}
