"""Every query of retrieval begins at an index, on a real FalkorDB."""

from __future__ import annotations

import pytest

from kg_memory.falkor import search_cypher
from kg_memory.falkor.connect import graph_key
from tests.retrieval.conftest import DIMENSION, Talk

PARAMETERS = {
    "ids": ["1"], "keys": ["1"], "terms": [{"term": "ann", "idf": 1.0}], "entities": ["1"], "thread_key": "1",
    "since": 1, "until": 2, "believed_at": 1, "lenient": False, "unreviewed": False, "facts": ["1"], "episodes": ["1"],
    "subjects": ["1"], "predicate": "LIVES_IN", "object": "1", "limit": 5, "depth": 5, "sources": 5, "k1": 0.9, "b": 0.4, "average": 10.0,
    "share": 0.3, "gap": 1, "vector": [0.1] * DIMENSION,
}  # fmt: skip


def constants() -> dict[str, str]:
    found = {name: text for name, text in vars(search_cypher).items() if name.isupper() and not name.startswith("_")}
    return {name: text for name, text in found.items() if name not in ("ENTITY_MAP", "EPISODE_MAP", "FACT_MAP")}


@pytest.mark.parametrize("name", sorted(constants()))
def test_a_query_begins_at_an_index_and_scans_no_label(story: Talk, name: str) -> None:
    parameters = PARAMETERS | ({"terms": ["ann"]} if name == "TERMS" else {})
    plan = story.driver.database.explain(graph_key(story.namespace), constants()[name], parameters)
    if name == "SIZES":
        assert plan.count("Limit") == plan.count("Node By Label Scan") == 4
    else:
        assert "Node By Index Scan" in plan or "ProcedureCall" in plan
        assert "Label Scan" not in plan
        assert "All Node Scan" not in plan


@pytest.mark.parametrize("name", sorted(constants()))
def test_a_query_sends_no_embedding_back(story: Talk, name: str) -> None:
    ids = {
        "FACTS": "MATCH (n:Fact) RETURN collect(n.id) AS ids",
        "EPISO": "MATCH (n:Episode) RETURN collect(n.id) AS ids",
    }.get(name[:5], "MATCH (n:Entity) RETURN collect(n.id) AS ids")
    key = graph_key(story.namespace)
    [row] = story.driver.database.query(key, ids, {}, write=False)
    parameters = PARAMETERS | ({"terms": ["ann"]} if name == "TERMS" else {}) | row
    for each in story.driver.database.query(key, constants()[name], parameters, write=False):
        assert "embedding" not in str(each)
        assert not any(isinstance(value, list) and len(value) == DIMENSION for value in each.values())
