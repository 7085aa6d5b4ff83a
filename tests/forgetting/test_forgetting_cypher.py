"""The plan of every query of forgetting: which index it uses."""

from typing import Any

import pytest

from kg_memory.contrib import residue
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.graph import build
from kg_memory.maintenance.forgetting import cypher, selection
from kg_memory.maintenance.forgetting.forget import forget
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.memory.open import open_driver
from kg_memory.runtime.effects import Query
from kg_memory.settings import Settings
from tests.queries import queries
from tests.scripted import HashEmbeddings, Scripted

ELSEWHERE = {"WHOLE_EPISODE", "EVERYTHING", "TERMS_LEFT"}
QUERIES = {
    text: name
    for name, text in vars(cypher).items()
    if name.isupper() and not name.startswith("_") and name not in ELSEWHERE
}
SCANS = {
    "LEARNED_PREDICATES": ["(p:Predicate)"],
    "FORGET": ["(f:Fact)", "(gone:Identity)", "(gone:Term)", "(i:Identity)"],
}
"""The labels that are scanned: no index has the users of a predicate, or terms without postings.

There are few decisions about identities.
"""


def test_forget_queries_use_an_index(database):
    settings = Settings(url="falkor://elsewhere")
    driver, used = open_driver(Scripted(), HashEmbeddings(), database), dict[str, Query]()
    graph = build(driver, Settings()).compile()
    for place in ("Oslo", "Paris"):
        state = graph.invoke({"content": f"I moved to {place}.", "speaker": "Ann", "namespace": "forgetting plans"})
    key = graph_key("forgetting plans")
    flows = [forget(ForgetRequest("episode", state["episode"]["id"]), settings, "forgetting plans")]
    [fact] = database.query(key, "MATCH (f:Fact {sentence: 'Ann lives in Oslo'}) RETURN f.id AS id", {}, write=False)
    flows.append(forget(ForgetRequest("fact", fact["id"]), settings, "forgetting plans"))
    for flow in flows:
        for query in queries(flow, driver, key):
            if query.cypher in QUERIES:
                used[QUERIES[query.cypher]] = query
    driver.close()
    assert used.keys() == set(QUERIES.values())
    for name, query in used.items():
        plan = database.explain(key, query.cypher, query.params)
        scans = [line.split("|")[1].strip() for line in plan.splitlines() if "Label Scan" in line]
        assert sorted(scans) == sorted(SCANS.get(name, [])), plan
        assert "All Node Scan" not in plan, plan
        assert name in SCANS or "Node By Index Scan" in plan, plan


SCANNED = {
    "SPEAKERS": ["(e:Episode)"], "EPISODES_BY_KIND.speaker": ["(e:Episode)"],
    "EPISODES_BY_KIND.source": ["(e:Episode)"], "ALL_THREADS": ["(e:Episode)"], "LAST_EPISODE": ["(n:Episode)"], "EVERYTHING": ["(e:Episode)", "(f:Fact)", "(n:Entity)"],
    "OTHER_REASONS": ["(v:Verdict)"], "RELATIONS": ["(f:Fact)"], "LAST": ["(n)"],
}  # fmt: skip
"""The labels that `forget` scans, because no index has them."""
PARAMETERS: dict[str, Any] = {
    "source": "session summary",
    **dict.fromkeys(("id", "key", "alias", "target", "name"), "a"),
    **{name: ["a"] for name in ("ids", "keys", "words", "facts", "entities", "gone", "coded")},
    "first": 0, "end": 10, "shortest": 32, "since": 0, "until": 1, "limit": 3, "same": 0.1, "vectors": [[0.1] * 64],
}  # fmt: skip


@pytest.mark.parametrize("module", [selection, residue, cypher], ids=lambda module: module.__name__)
def test_selection_and_search_queries_use_an_index_or_pages(memory, database, namespace, module):
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    constants = [(name, text) for name, text in vars(module).items() if name.isupper()]
    for name, texts in [constant for constant in constants if isinstance(constant[1], dict)]:
        constants += [(f"{name}.{key}", text) for key, text in texts.items()]
    for name, text in constants:
        if not isinstance(text, str) or not text.startswith("\n") or (module is cypher and name not in ELSEWHERE):
            continue
        plan = database.explain(graph_key(namespace), text, PARAMETERS)
        scanning = [line for line in plan.splitlines() if "Label Scan" in line or "All Node" in line]
        scans = [line.split("|")[1].strip() for line in scanning]
        assert sorted(scans) == SCANNED.get(name, []), (name, plan)
