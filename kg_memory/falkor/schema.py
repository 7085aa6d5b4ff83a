"""Prepare a graph before its first write: create its indices and relation types, and the node with its version.

The vector indices are created later, before the first vector is written or searched for, when its length is known. So a
message can be saved while the embedding model is unavailable.

The ``(:Meta)`` node records that a graph is prepared. Indices and relation types come first: a MERGE on a label that
does not exist yet makes duplicates under concurrency, and a MATCH on an unknown relation type finds nothing. There are
no unique constraints: with one, a server that loads its append-only file records the constraint again, even for a graph
that was deleted since, and crashes at every later load (FalkorDB 4.22.1). A MERGE on an indexed key is unique without a
constraint.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import redis
from redis.lock import Lock

from kg_memory.errors import EmbeddingMismatch, QueryError, SchemaError
from kg_memory.falkor.connect import KEY_PREFIX, Database
from kg_memory.falkor.wire import Row
from kg_memory.text import tokenise

EMBEDDED = ("Episode", "Fact", "Meaning", "Community")
"""The labels of nodes with a vector. An entity's vector is on a node of its own, which the entity MEANS: setting any
property of a node indexes its vector anew, and every mention of an entity sets one."""
RANGE = {
    "Meta": ("id",),
    "Episode": ("id", "thread_key", "status", "created_at", "expires_at"),
    "Entity": ("id", "key", "stale", "evicted"),
    "Alias": ("key",),
    "Fact": ("id", "evicted"),
    "Belief": ("id", "created_at", "expired_at"),
    "Verdict": ("id", "ruling"),
    "Decision": ("id",),
    "Identity": ("id", "state"),
    "Predicate": ("name",),
    "Community": ("id",),
    "Term": ("s",),
    "Spent": ("day",),
}
ITEMS_RANGE = {"Meta": ("id",), "Namespace": ("id", "prefixes"), "Item": ("id", "marks", "expires_at")}
RELATIONS = tuple(
    """
    SUBJECT_OF OBJECT_IS RESTS_ON STATES HELD PROPOSED JUDGED DECIDED MENTIONS NEXT NAMES MEANS SIMILAR_TO HAS_MEMBER
    PART_OF DISTINCT_FROM ABOUT MOVED IN_EPISODE IN_FACT IN_ENTITY IN_COMMUNITY
    """.split()
)
# A query planned before a relation type exists never finds it, not even relations made while the query waits to write.
MAKE_RELATIONS = f"CREATE (m:Meta), {', '.join(f'(m)-[:{relation}]->(m)' for relation in RELATIONS)} DELETE m"
DROP_VECTOR_INDEX = "DROP VECTOR INDEX FOR (n:{label}) ON (n.embedding)"
HNSW = "M: 8, efConstruction: 100, efRuntime: 400"


def _range_indices(range_: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"CREATE INDEX FOR (n:{label}) ON (n.{name})" for label, names in range_.items() for name in names)


@dataclass(frozen=True, slots=True)
class Schema:
    """A kind of graph: the prefix of its Redis keys, the version of its format, and the queries that prepare it."""

    prefix: str
    version: int
    statements: tuple[str, ...]
    embedded: tuple[str, ...] = ()
    """The labels of nodes with a vector."""
    words: int | None = None
    """The version of the word index; None for a kind without one."""
    added: int = 0
    """The number of dimensions that a stored vector has beyond those of the model."""
    remedy: str = ""
    """The remedy that `EmbeddingMismatch` shows for vectors of another model."""


MEMORY = Schema(
    KEY_PREFIX,
    9,
    (*_range_indices(RANGE), MAKE_RELATIONS),
    EMBEDDED,
    tokenise.VERSION,
    remedy="open it with that model, or run `kg-memory reembed` to embed it with another one",
)
"""The schema of a namespace's graph."""
ITEMS = Schema(
    "kg-items:",
    1,
    (
        *_range_indices(ITEMS_RANGE),
        # A query planned before a label or a relation type exists never finds it.
        "CREATE (m:Meta), (v:Vector), (m)-[:IN]->(m), (m)-[:HAS]->(m) DELETE m, v",
    ),
    ("Vector",),
    added=1,  # see `kg_memory.adapters.store.driver`
    remedy="open it with that model or with index=False, or give the store another name",
)
"""The schema of the graph that holds the items of a LangGraph store."""

READ_META = """
MATCH (m:Meta {id: 'schema'})
RETURN m.version AS version, m.dimension AS dimension, m.model AS model, m.words AS words
"""
WRITE_META = """
MERGE (m:Meta {id: 'schema'})
ON CREATE SET m.version = $version, m.words = $words
"""
WRITE_MODEL = "MATCH (m:Meta {id: 'schema'}) SET m.model = $model, m.dimension = $dimension"
INDEX_STATES = "CALL db.indexes() YIELD label, status RETURN label, status"
UNDER_WAY = "(being embedded anew)"
"""The stored model name while a graph is re-embedded: it matches no model, so that none can open the graph."""
ANY_MODEL = "(any)"
"""The model name of a memory that embeds nothing: it may read every graph."""
WAIT = 0.02
LOCK = "kg-memory:making"
LOCK_SECONDS = 10.0
"""Seconds after which the index lock of a killed process expires; a live holder renews the lock."""
ALREADY = ("already indexed", "already exists", "no such index")


def ensure(database: Database, key: str, dimension: int | None, model: str, schema: Schema = MEMORY) -> bool:
    """Prepare the graph *key* for writing: create it with its indices if necessary. Always return True.

    Errors: `EmbeddingMismatch` for vectors of another *model*; `SchemaError` for another version than *schema*.
    """
    if not check(database, key, dimension, model, schema):
        with index_lock(database, key):
            _run_all(database, key, schema.statements)
            wait_for_indices(database, key)
        database.query(key, WRITE_META, {"version": schema.version, "words": schema.words}, write=True)
        check(database, key, dimension, model, schema)
    return True


def check(database: Database, key: str, dimension: int | None, model: str, schema: Schema = MEMORY) -> bool:
    """Check the graph *key* and wait until its indices can be used; return whether it exists. Errors: as `ensure`."""
    rows = database.query(key, READ_META, {}, write=False)
    if not rows:
        return False
    meta = rows[0]
    refuse_other_version(meta, schema)
    refuse_other_vectors(meta, model, dimension, schema)
    if schema.embedded and meta["dimension"] is None and dimension is not None:
        refuse_other_vectors(_index_vectors(database, key, dimension, model, schema), model, dimension, schema)
    wait_for_indices(database, key)
    return True


def _index_vectors(database: Database, key: str, dimension: int, model: str, schema: Schema) -> Row:
    """Create the vector indices of the graph *key* if they are missing; return the properties of its ``Meta`` node."""
    with index_lock(database, key):
        meta = database.query(key, READ_META, {}, write=False)
        if not meta or meta[0]["dimension"] is not None:
            return meta[0] if meta else {"dimension": None}  # another process deleted it
        for label in schema.embedded:  # a killed process may have left an index of another dimension
            make = vector_index(label, dimension + schema.added)
            _run_all(database, key, (DROP_VECTOR_INDEX.format(label=label), make))
        wait_for_indices(database, key)
        database.query(key, WRITE_MODEL, {"model": model, "dimension": dimension}, write=True)
    return {"model": model, "dimension": dimension}


def refuse_other_version(meta: Row, schema: Schema = MEMORY) -> None:
    """Raise `SchemaError` if a graph has another version than *schema*.

    *meta* are the properties of the graph's Meta node, which has the version.
    """
    if meta["version"] > schema.version or (meta["words"] or 0) > (schema.words or 0):
        versions = f"schema version {meta['version']} and word index version {meta['words']}"
        supported = f"{schema.version} and {schema.words}"
        raise SchemaError(f"the graph has {versions}, but this package supports {supported}; upgrade kg-memory")
    if meta["version"] < schema.version:
        raise SchemaError(
            f"the graph has schema version {meta['version']}, but this package needs {schema.version}; export it with "
            "the kg-memory version that wrote it, then import the export"
        )


def refuse_other_vectors(meta: Row, model: str, dimension: int | None = None, schema: Schema = MEMORY) -> None:
    """Raise `EmbeddingMismatch` if a graph has vectors of another model or length, or is being re-embedded."""
    if meta["dimension"] is None:
        return  # the graph has no vectors yet
    if meta["model"] == UNDER_WAY:
        raise EmbeddingMismatch(
            "the graph is being re-embedded; try again when `kg-memory reembed` is done, or run it again if it was "
            "interrupted"
        )
    if model == ANY_MODEL:
        return
    if meta["model"] != model or dimension not in (None, meta["dimension"]):
        raise EmbeddingMismatch(
            f"the graph holds vectors of {meta['model']!r} ({meta['dimension']} dimensions), not of {model!r} "
            f"({dimension or 'unknown'}); {schema.remedy}"
        )


def wait_for_indices(database: Database, key: str) -> None:
    """Wait until the database has built all indices of the graph *key*. Before that, vector searches fail."""
    while any(row["status"] != "OPERATIONAL" for row in database.query(key, INDEX_STATES, {}, write=False)):
        time.sleep(WAIT)


def vector_index(label: str, dimension: int) -> str:
    """Return the Cypher query that creates a vector index for nodes with *label* and vectors of length *dimension*."""
    options = f"dimension: {dimension}, similarityFunction: 'cosine', {HNSW}"
    return f"CREATE VECTOR INDEX FOR (n:{label}) ON (n.embedding) OPTIONS {{{options}}}"


def _run_all(database: Database, key: str, statements: Iterable[str]) -> None:
    for statement in statements:
        with unless_there():
            database.query(key, statement, {}, write=True)


@contextmanager
def unless_there() -> Iterator[None]:
    """Ignore, in the body of a ``with``, database errors because an index already exists or was already deleted."""
    try:
        yield
    except QueryError as error:
        if not any(phrase in str(error).lower() for phrase in ALREADY):
            raise


@contextmanager
def index_lock(database: Database, key: str) -> Iterator[None]:
    """Hold a lock in the database while the body of a ``with`` creates indices; two clients at once crash FalkorDB."""
    name = database.name_beside(LOCK, key)
    with database.map_errors(key):
        lock = Lock(database.client(key), name, timeout=LOCK_SECONDS, sleep=0.02, thread_local=False)
        lock.acquire()
    try:
        with _keep_lock(lock):
            yield
    finally:
        with suppress(redis.exceptions.LockError), database.map_errors(key):
            lock.release()


@contextmanager
def _keep_lock(lock: Lock) -> Iterator[None]:
    """Renew *lock* from a thread while the body of the ``with`` runs: creating an index can take minutes."""
    ended = threading.Event()
    renewing = threading.Thread(target=_renew_lock, args=(lock, ended), name="kg-memory-index-lock", daemon=True)
    with suppress(RuntimeError):  # no thread starts while the interpreter ends
        renewing.start()
    try:
        yield
    finally:
        ended.set()
        if renewing.is_alive():
            renewing.join()


def _renew_lock(lock: Lock, ended: threading.Event) -> None:
    while not ended.wait(LOCK_SECONDS / 4):
        with suppress(redis.RedisError, OSError):  # the server may be back the next time
            lock.reacquire()
