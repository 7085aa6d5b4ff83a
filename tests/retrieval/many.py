"""A graph of many facts and episodes, made at once: as many as a test of search needs, without reading any."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from uuid import uuid4

from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.ranking import Instants
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from tests.scripted import HashEmbeddings, Scripted

NOW = 1000
INSTANTS = Instants(NOW, NOW + 1, NOW, unreviewed=False)
DIMENSIONS = 4
FACTS = """
UNWIND $rows AS row
CREATE (d:Fact {id: row.id, n: row.n, predicate: row.predicate, embedding: vecf32(row.vector)})
CREATE (d)-[:HELD]->(:Belief {id: row.id, valid_at: $start, known_from: 0, invalid_at: row.until,
  created_at: 0, expired_at: $end})
"""
EPISODES = """
UNWIND $rows AS row
CREATE (d:Episode {id: row.id, n: row.n, speaker: row.speaker, at: row.at, embedding: vecf32(row.vector)})
"""
POSTINGS = """
UNWIND $rows AS row
MERGE (t:Term {s: row.term})
WITH t, row
MATCH (d:LABEL {id: row.id})
CREATE (t)-[:IN_LABEL {f: row.f}]->(d)
"""
NEXT = """
UNWIND $rows AS row
MATCH (a:Episode {id: row[0]})
MATCH (b:Episode {id: row[1]})
CREATE (a)-[:NEXT]->(b)
"""


class Many:
    """One namespace of a real database, written row by row."""

    def __init__(self, database: Database) -> None:
        self.driver = open_driver(Scripted(), HashEmbeddings(DIMENSIONS), database)
        self.namespace = f"many-{uuid4()}"
        schema.ensure(database, graph_key(self.namespace), DIMENSIONS, "hash")

    def facts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store facts that hold, or are `over`, at an `angle` to the question, with so often `terms`."""
        given = [
            {"id": row["id"], "n": row.get("n", 1), "predicate": row.get("predicate", "P"),
             "vector": vector(row.get("angle", 0.0)), "until": 500 if row.get("over") else OPEN_END}
            for row in rows
        ]  # fmt: skip
        self._write(FACTS, given, start=OPEN_START, end=OPEN_END)
        self._post("Fact", rows)

    def episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store episodes of one conversation, said one after another."""
        given = [
            {"id": row["id"], "n": row.get("n", 1), "speaker": row.get("speaker"), "at": row.get("at", place),
             "vector": vector(row.get("angle", 0.0))}
            for place, row in enumerate(rows)
        ]  # fmt: skip
        self._write(EPISODES, given)
        self._write(NEXT, [[one["id"], other["id"]] for one, other in pairwise(given)])
        self._post("Episode", rows)

    def forget_vector(self, id_: str) -> None:
        """Leave the fact *id_* without a vector, as one that is not embedded yet."""
        self._write("UNWIND $rows AS id MATCH (d:Fact {id: id}) SET d.embedding = NULL", [id_])

    def run(self, flow: Flow[Any]) -> Any:
        """Drive *flow* in the namespace."""
        return self.driver.run(flow, self.namespace)

    def _post(self, label: str, rows: Sequence[Mapping[str, Any]]) -> None:
        postings = [
            {"term": term, "id": row["id"], "f": times} for row in rows for term, times in row.get("terms", {}).items()
        ]
        self._write(POSTINGS.replace("IN_LABEL", f"IN_{label.upper()}").replace("LABEL", label), postings)

    def _write(self, cypher: str, rows: Sequence[Any], **params: Any) -> None:
        key = graph_key(self.namespace)
        self.driver.store.database.query(key, cypher, {"rows": list(rows), **params}, write=True)  # type: ignore[attr-defined]


def vector(angle: float) -> list[float]:
    """Return a vector at *angle* to `QUESTION`."""
    return [math.cos(angle), math.sin(angle), 0.0, 0.0]


QUESTION = vector(0.0)
