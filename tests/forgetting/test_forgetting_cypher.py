"""The plan of every query of forgetting: which index it uses."""

from __future__ import annotations

from kg_memory.driver import Driver
from kg_memory.effects import Query
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.forgetting import cypher
from kg_memory.forgetting.forget import Asked, forget
from kg_memory.ingestion.graph import build
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted

QUERIES = {text: name for name, text in vars(cypher).items() if name.isupper() and not name.startswith("_")}
SCANS = {
    "LEARNED_PREDICATES": ["(p:Predicate)"],
    "FORGET": ["(f:Fact)", "(gone:Term)"],
}
"""The labels that are looked through: who uses a predicate and what has no word any more is kept nowhere."""


def test_each_query_finds_what_it_needs_by_an_index(database: Database):
    driver, found = Driver(Scripted(), HashEmbeddings(), database), dict[str, Query]()
    graph = build(driver, Settings()).compile()
    for place in ("Oslo", "Paris"):
        state = graph.invoke({"content": f"I moved to {place}.", "speaker": "Ann", "namespace": "forgetting plans"})
    key = graph_key("forgetting plans")
    flows = [forget(Asked(state["episode"]["id"], None, "user", "", dry_run=False), Settings(), "forgetting plans")]
    [fact] = database.query(key, "MATCH (f:Fact {sentence: 'Ann lives in Oslo'}) RETURN f.id AS id", {}, write=False)
    flows.append(forget(Asked(None, fact["id"], "user", "", dry_run=False), Settings(), "forgetting plans"))
    for flow in flows:
        answer = None
        try:
            while True:
                effect = flow.send(answer)
                if isinstance(effect, Query) and effect.cypher in QUERIES:
                    found[QUERIES[effect.cypher]] = effect
                answer = driver._perform(key, effect)
        except StopIteration:
            pass
    driver.close()
    assert found.keys() == set(QUERIES.values())
    for name, query in found.items():
        told = database.explain(key, query.cypher, query.params)
        scans = [each.split("|")[1].strip() for each in told.splitlines() if "Label Scan" in each]
        assert sorted(scans) == sorted(SCANS.get(name, [])), told
        assert "All Node Scan" not in told, told
        assert name in SCANS or "Node By Index Scan" in told, told
