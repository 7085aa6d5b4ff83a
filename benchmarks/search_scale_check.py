"""Check that synthetic memories have the form of real ones: the same properties and types on the same labels."""

from __future__ import annotations

from benchmarks.search_scale_data import Data, Prepared
from benchmarks.search_scale_load import Texts, load
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings

LABELS = ["Alias", "Belief", "Community", "Entity", "Episode", "Fact", "Meta", "Term"]
SAID = (
    ("Ann", "I moved to Oslo in May 2020 and I work at Acme."),
    ("Bob", "I live in Oslo too. I work at Acme with Ann."),
    ("Ann", "Bob likes tea. I moved to Bergen in June 2021."),
)
NODES = """
MATCH (n)
WITH labels(n)[0] AS label, properties(n) AS told
UNWIND keys(told) AS name
RETURN DISTINCT label, name, typeOf(told[name]) AS type
"""
RELATIONS = """
MATCH (a)-[r]->(b)
WITH labels(a)[0] + ' ' + type(r) + ' ' + labels(b)[0] AS label, properties(r) AS told
UNWIND CASE WHEN size(keys(told)) = 0 THEN [''] ELSE keys(told) END AS name
RETURN DISTINCT label, name, typeOf(told[name]) AS type
"""
TWICE = ("Term IN_FACT Fact", "f", "Integer")
"""A property that only real sentences have, in which a word may occur twice."""
Form = set[tuple[str, str, str]]


def check(url: str, dimension: int = 16) -> None:
    """Compare a small synthetic memory with one that was read from messages; exit if they differ."""
    data = Data(200, dimension)
    with GraphMemory(Settings(url=url), model="offline", embeddings=Prepared(dimension)) as memory:
        for number, (speaker, content) in enumerate(SAID):
            where = {"thread": "chat", "source": "chat", "source_id": str(number), "namespace": "real"}
            memory.add(content, speaker=speaker, at=f"2022-05-01T10:0{number}:00Z", **where)
        memory.communities.refresh(namespace="real")
        database = memory.driver.store.database
        schema.ensure(database, graph_key("synthetic"), dimension, Prepared.name)
        load(database, "synthetic", data, Texts(data), lambda _: None)
        real, synthetic = (_form(memory, namespace) for namespace in ("real", "synthetic"))
    real.discard(TWICE)
    if real != synthetic:
        raise SystemExit(
            f"synthetic memories are not as ingestion writes them, adapt search_scale_load.py: only real ones have "
            f"{sorted(real - synthetic)}, only synthetic ones {sorted(synthetic - real)}"
        )


def _form(memory: GraphMemory, namespace: str) -> Form:
    rows = [
        row
        for query in (NODES, RELATIONS)
        for row in memory.driver.store.database.query(graph_key(namespace), query, {}, write=False)
    ]
    return {
        (row["label"], row["name"], row["type"])
        for row in rows
        if all(label in LABELS for label in row["label"].split()[::2])
    }
