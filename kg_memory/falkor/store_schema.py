"""Prepare the graphs of a store's items before their first write.

The vector index is created with the first vector, when the dimension is known. It is one more than the embedding
model's, see `kg_memory.adapters.store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kg_memory.errors import EmbeddingMismatch, SchemaError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.schema import WRITE_MODEL, index_lock, unless_there, vector_index, wait

VERSION = 1
READ_META = """
MATCH (m:Meta {id: 'schema'})
RETURN m.version AS version, m.model AS model, m.dimension AS dimension
"""
WRITE_META = """
MERGE (m:Meta {id: 'schema'})
ON CREATE SET m.version = $version
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """The prefix of the keys of one kind of graph, and the statements that prepare it."""

    prefix: str
    statements: Sequence[str]


ITEMS = Schema(
    "kg-items:",
    (
        "CREATE INDEX FOR (m:Meta) ON (m.id)",
        "CREATE INDEX FOR (n:Namespace) ON (n.id)",
        "CREATE INDEX FOR (n:Namespace) ON (n.prefixes)",
        "CREATE INDEX FOR (i:Item) ON (i.id)",
        "CREATE INDEX FOR (i:Item) ON (i.marks)",
        "CREATE INDEX FOR (i:Item) ON (i.expires_at)",
        # A query planned before a label or a relation exists finds none of it.
        "CREATE (m:Meta), (v:Vector), (m)-[:IN]->(m), (m)-[:HAS]->(m) DELETE m, v",
    ),
)


def ensure(database: Database, key: str, schema: Schema) -> None:
    """Prepare the graph *key* for writing.

    Errors: `SchemaError` when it is newer than this package.
    """
    if not check(database, key):
        with index_lock(database, key):
            for statement in schema.statements:
                with unless_there():
                    database.query(key, statement, {}, write=True)
            wait(database, key)
        database.query(key, WRITE_META, {"version": VERSION}, write=True)


def check(database: Database, key: str) -> bool:
    """Return whether the graph *key* exists, once it is ready to be read.

    Errors: `SchemaError` when it is newer than this package.
    """
    rows = database.query(key, READ_META, {}, write=False)
    if rows and rows[0]["version"] > VERSION:
        raise SchemaError(
            f"the store has schema {rows[0]['version']}, this package supports {VERSION}; upgrade kg-memory"
        )
    if rows:
        wait(database, key)
    return bool(rows)


def fit_vectors(database: Database, key: str, model: str, dimension: int | None) -> None:
    """Check that the vectors of the graph *key* are of *model*; create their index once *dimension* is known.

    Errors: `EmbeddingMismatch` when they are of another model or dimension.
    """
    meta = database.query(key, READ_META, {}, write=False)[0]
    if meta["model"] is None and dimension is not None:
        with index_lock(database, key):
            meta = database.query(key, READ_META, {}, write=False)[0]
            if meta["model"] is None:  # else another process was first, perhaps with another model
                with unless_there():
                    database.query(key, vector_index("Vector", dimension + 1), {}, write=True)
                wait(database, key)
                database.query(key, WRITE_MODEL, {"model": model, "dimension": dimension}, write=True)
                meta = {"model": model, "dimension": dimension}
    if meta["model"] is not None and (meta["model"], meta["dimension"]) != (model, dimension or meta["dimension"]):
        raise EmbeddingMismatch(
            f"the store's vectors are of {meta['model']!r} ({meta['dimension']} dimensions), not of {model!r} "
            f"({dimension or 'unknown'}); open it with that model or with index=False, or give the store another name"
        )
