"""The execution plans of all queries on items use an index."""

import re
from typing import Any

import pytest
from langgraph.store.base import PutOp

from kg_memory.adapters.store import cypher, write
from kg_memory.adapters.store.driver import open_item_driver
from kg_memory.falkor import schema
from kg_memory.falkor.schema import ITEMS
from kg_memory.memory.open import open_driver
from tests.scripted import HashEmbeddings, Scripted

FRAGMENTS = {"ITEM", "FITTING", "UNDER", "MARKED", "PAGE", "JOINED", "IDS", "NEAREST_IDS", "COMPARISON"}
QUERIES = {
    **{f"items.{name}": text for name, text in vars(cypher).items() if name.isupper() and name not in FRAGMENTS},
    **{f"schema.{name}": getattr(schema, name) for name in ("READ_META", "WRITE_META", "WRITE_MODEL")},
}
COUNTED = {"items.COUNT_VECTORS"}
"""Counting all nodes of a label needs no index."""
ID = "0" * 32
VECTOR = [0.1] * 64
PARAMS: dict[str, Any] = {
    **dict.fromkeys(("prefix", "mark", "after", "model"), ID),
    **{each: [ID] for each in ("ids", "marks", "changed", "deleted", "left")},
    **dict.fromkeys(("alive", "before", "now", "limit", "skip", "version", "words", "dimension"), 1),
    "unranked": False,
    "vector": VECTOR,
    "puts": [{"id": ID, "namespace": ID, "path": "[]", "prefixes": [ID], "vectors": [VECTOR], "at": 1}],
}


@pytest.fixture(scope="module")
def plans(database):
    memory = open_driver(Scripted(), HashEmbeddings(), database)
    items = open_item_driver(memory, ITEMS)
    puts = [write.to_item_change(PutOp(("a", str(each)), "k", {"x": each}), ["$"]) for each in range(3)]
    items.run(write.apply_changes(puts), "plans")

    def plan(name):
        used = set(re.findall(r"\$(\w+)", QUERIES[name]))
        assert used <= PARAMS.keys(), "give the test typical parameters"
        return database.explain(items.key("plans"), QUERIES[name], {each: PARAMS[each] for each in used})

    yield plan
    for driver in (items, memory):
        driver.close()


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - COUNTED))
def test_item_query_starts_at_an_index_without_scans(plans, name):
    told = plans(name)
    assert "Label Scan" not in told, told
    assert "All Node Scan" not in told, told
    assert "Cartesian Product" not in told, told
    assert ("ProcedureCall" if name == "items.NEAREST" else "Node By Index Scan") in told, told


STARTS = {
    "(n:Namespace)": ["LIST", "LIST_IDS", "RANK_IDS", "COMPARE", "NAMESPACES_ALIVE"],
    "(i:Item)": ["LIST_MARKED", "LIST_IDS_MARKED", "RANK_IDS_MARKED", "COMPARE_MARKED", "COUNT_MARKED"],
}


@pytest.mark.parametrize(("start", "name"), [(start, name) for start, names in STARTS.items() for name in names])
def test_query_starts_at_the_namespace_or_at_rare_items(plans, start, name):
    first = plans(f"items.{name}").strip().splitlines()[-1]
    assert start in first, first


def test_item_queries_return_no_embedding():
    for name, text in QUERIES.items():
        assert "embedding" not in re.split(r"\bRETURN\b", text)[-1] or name == "items.CHANGE"
