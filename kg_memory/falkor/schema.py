"""Prepare the graph of a namespace before its first write: indices, relations, a version; migrate older graphs.

The vector indices follow once the dimension is known, before the first vector is written or searched for: a message is
saved although the embedding model is away.

The ``(:Meta)`` node records that a graph is prepared. Indices and relations come first because a MERGE on a label that
does not exist yet makes duplicates under concurrency, and a MATCH on an unknown relation finds nothing. There are no
unique constraints: with one, a server that loads its append-only file records the constraint again, also for a graph
that was deleted since, and crashes whenever it loads that (FalkorDB 4.22.1). A MERGE on an indexed key is unique
without.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import redis
from redis.lock import Lock

from kg_memory.errors import EmbeddingMismatch, QueryError, SchemaError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.wire import Row
from kg_memory.temporal.interval import OPEN_START
from kg_memory.text import tokenise

VERSION = 8  # 8: a posting without `f` is of a word that a text has once
EMBEDDED = ("Episode", "Fact", "Meaning", "Community")
"""The labels of nodes with a vector. An entity's is on a node of its own, which it MEANS: setting any property of a
node indexes its vector anew, and every mention of an entity sets one.
"""
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
    "Answer": ("key",),
    "Term": ("s",),
    "Spent": ("day",),
}
RANGE_INDICES = tuple(f"CREATE INDEX FOR (n:{label}) ON (n.{name})" for label, names in RANGE.items() for name in names)
RELATIONS = tuple(
    """
    SUBJECT_OF OBJECT_IS RESTS_ON STATES HELD PROPOSED JUDGED DECIDED MENTIONS NEXT NAMES MEANS SIMILAR_TO HAS_MEMBER
    PART_OF DISTINCT_FROM ABOUT MOVED IN_EPISODE IN_FACT IN_ENTITY IN_COMMUNITY
    """.split()
)
# A query planned before a relation exists finds none of it, not even those made while the query waits to write.
MAKE_RELATIONS = f"CREATE (m:Meta), {', '.join(f'(m)-[:{relation}]->(m)' for relation in RELATIONS)} DELETE m"
DROP_VECTOR_INDEX = "DROP VECTOR INDEX FOR (n:{label}) ON (n.embedding)"
HNSW = "M: 8, efConstruction: 100, efRuntime: 400"
MIGRATIONS: dict[int, tuple[str, ...]] = {
    2: (
        f"""
MATCH (b:Belief)
WHERE b.known_from IS NULL
SET b.precision = 'instant', b.end_precision = 'instant',
  b.known_from = CASE WHEN b.valid_at = {OPEN_START} AND b.invalid_at > b.said_at THEN b.said_at ELSE b.valid_at END
""",
        """
MATCH (e:Episode)
WHERE e.trust IS NULL
SET e.trust = 1.0, e.offset = 0
WITH e
MATCH (e)-[s:STATES]->(f:Fact)
SET s.latest = s.valid_at, s.precision = 'instant', s.end_precision = 'instant', s.confidence = f.confidence,
  s.corrects = false
""",
        """
MATCH (e:Episode)-[:STATES]->(f:Fact)
WHERE f.told_at IS NULL
WITH f, e ORDER BY e.at, e.id
WITH f, collect(e)[0] AS e
SET f.told_at = e.at, f.told_by = e.id, f.told_end = false
""",
        """
MATCH (f:Fact)-[c:CONTRADICTS]->(other:Fact)
MERGE (v:Verdict {id: f.id + ' ' + other.id})
ON CREATE SET v.new = f.id, v.known = other.id, v.kind = 'supersedes', v.ruling = 'supersedes', v.confidence = 1.0,
  v.reason = 'found by an earlier version', v.created_at = f.created_at
MERGE (f)-[:JUDGED]->(v)
MERGE (other)-[:JUDGED]->(v)
DELETE c
""",
    ),
    5: (
        "DROP VECTOR INDEX FOR (n:Entity) ON (n.embedding)",
        """
MATCH (n:Entity)
WHERE n.embedding IS NOT NULL
CREATE (n)-[:MEANS]->(:Meaning {embedding: n.embedding})
SET n.embedding = NULL
""",
    ),
}
"""Queries that migrate a graph from version n - 1 to n, beside new indices and relations; each may run again."""
FACTS_BY_PREDICATE = 7
"""The version since which the word index has the words of predicates, see `tokenise.count_fact_terms`."""
PAGE = 1000
FACTS_PAGE = """
MATCH (f:Fact)
WHERE f.id > $after AND f.evicted IS NULL
WITH f ORDER BY f.id LIMIT $limit
RETURN f.id AS id, f.sentence AS sentence, f.predicate AS predicate
"""
ADD_FACT_TERMS = """
UNWIND $rows AS row
MATCH (f:Fact {id: row.id})
SET f.n = row.n
WITH f, row
UNWIND row.terms AS term
MERGE (t:Term {s: term})
MERGE (t)-[:IN_FACT]->(f)
"""

READ_META = """
MATCH (m:Meta {id: 'schema'})
RETURN m.version AS version, m.dimension AS dimension, m.model AS model, m.words AS words
"""
WRITE_META = """
MERGE (m:Meta {id: 'schema'})
ON CREATE SET m.version = $version, m.words = $words
"""
WRITE_MODEL = "MATCH (m:Meta {id: 'schema'}) SET m.model = $model, m.dimension = $dimension"
RAISE_VERSION = "MATCH (m:Meta {id: 'schema'}) SET m.version = $version"
INDEX_STATES = "CALL db.indexes() YIELD label, status RETURN label, status"
UNDER_WAY = "(being embedded anew)"
"""The name of the model while all vectors are replaced: no model has it, so none can open the graph meanwhile."""
ANY_MODEL = "(any)"
"""The name of what stands in for a model where nothing is embedded: it may look into each graph."""
WAIT = 0.02
LOCK = "kg-memory:making"
LOCK_SECONDS = 10.0
"""Seconds for which an index lock outlives a process that was killed; a live holder renews it."""
ALREADY = ("already indexed", "already exists", "no such index")


def ensure(database: Database, key: str, dimension: int | None, model: str) -> None:
    """Prepare the graph *key* for writing, and for vectors of *dimension* by the embedding *model* once it is known.

    Errors: `EmbeddingMismatch` when it has those of another; `SchemaError` when it is newer than this package.
    """
    if not check(database, key, dimension, model):
        with index_lock(database, key):
            _run_all(database, key, (*RANGE_INDICES, MAKE_RELATIONS))
            wait(database, key)
        database.query(key, WRITE_META, {"version": VERSION, "words": tokenise.VERSION}, write=True)
        check(database, key, dimension, model)


def check(database: Database, key: str, dimension: int | None, model: str) -> bool:
    """Return whether the graph *key* exists, once it is ready to be read; migrate an older one.

    Errors: as `ensure`.
    """
    rows = database.query(key, READ_META, {}, write=False)
    if not rows:
        return False
    meta = rows[0]
    refuse_newer(meta)
    refuse_other_vectors(meta, model, dimension)
    migrate(database, key, meta)
    if meta["dimension"] is None and dimension is not None:
        refuse_other_vectors(_index_vectors(database, key, dimension, model), model, dimension)
    wait(database, key)
    return True


def _index_vectors(database: Database, key: str, dimension: int, model: str) -> Row:
    """Create the vector indices of the graph *key*, unless another process was first; return its Meta node."""
    with index_lock(database, key):
        meta = database.query(key, READ_META, {}, write=False)
        if not meta or meta[0]["dimension"] is not None:
            return meta[0] if meta else {"dimension": None}  # another process deleted it
        for label in EMBEDDED:  # a process that was killed may have left an index of another dimension
            _run_all(database, key, (DROP_VECTOR_INDEX.format(label=label), vector_index(label, dimension)))
        wait(database, key)
        database.query(key, WRITE_MODEL, {"model": model, "dimension": dimension}, write=True)
    return {"model": model, "dimension": dimension}


def refuse_newer(meta: Row) -> None:
    """Raise `SchemaError` if the graph with that *meta* is newer than this package."""
    if meta["version"] > VERSION:
        raise SchemaError(f"the graph has schema {meta['version']}, this package supports {VERSION}; upgrade kg-memory")
    if meta["words"] > tokenise.VERSION:
        raise SchemaError("the graph's word index was made by a newer kg-memory; upgrade kg-memory")


def refuse_other_vectors(meta: Row, model: str, dimension: int | None = None) -> None:
    """Raise `EmbeddingMismatch` if the graph with that *meta* has vectors of another embedding *model* or *dimension*.

    It is also raised while the graph is being re-embedded.
    """
    if meta["dimension"] is None:
        return  # it has no vectors yet
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
            f"({dimension or 'unknown'}); open it with that model, or run `kg-memory reembed` to change it"
        )


def wait(database: Database, key: str) -> None:
    """Wait until every index of *key* is in use: a vector search fails while its index is being built."""
    while any(row["status"] != "OPERATIONAL" for row in database.query(key, INDEX_STATES, {}, write=False)):
        time.sleep(WAIT)


def vector_index(label: str, dimension: int) -> str:
    """Return the query that creates the vector index of *label*."""
    options = f"dimension: {dimension}, similarityFunction: 'cosine', {HNSW}"
    return f"CREATE VECTOR INDEX FOR (n:{label}) ON (n.embedding) OPTIONS {{{options}}}"


def migrate(database: Database, key: str, meta: Row) -> None:
    """Migrate the graph *key* with that *meta* to the present version."""
    if meta["version"] == VERSION:
        return
    with index_lock(database, key):
        now = database.query(key, READ_META, {}, write=False)
        if not now or now[0]["version"] == VERSION:
            return  # another process was first, or deleted it
        _run_all(database, key, (*RANGE_INDICES, MAKE_RELATIONS))
        for newer in range(now[0]["version"] + 1, VERSION + 1):
            _run_all(database, key, MIGRATIONS.get(newer, ()))
            if newer == FACTS_BY_PREDICATE:
                _add_words_of_predicates(database, key)
        # Last: vectors that are there by then are indexed at once, not one after another.
        if (dimension := now[0]["dimension"]) is not None:
            _run_all(database, key, (vector_index(label, dimension) for label in EMBEDDED))
        wait(database, key)
        database.query(key, RAISE_VERSION, {"version": VERSION}, write=True)


def _add_words_of_predicates(database: Database, key: str) -> None:
    """Let facts be found by the words of their predicates; one that has them already stays as it is."""
    after = ""
    while page := database.query(key, FACTS_PAGE, {"after": after, "limit": PAGE}, write=False):
        rows: list[Row] = []
        for fact in page:
            counts = tokenise.count_fact_terms(fact["sentence"], fact["predicate"])
            new = counts.keys() - tokenise.count_terms(fact["sentence"]).keys()
            rows.append({"id": fact["id"], "n": counts.total(), "terms": sorted(new)})
        database.query(key, ADD_FACT_TERMS, {"rows": rows}, write=True)
        after = page[-1]["id"]


def _run_all(database: Database, key: str, statements: Iterable[str]) -> None:
    for statement in statements:
        with unless_there():
            database.query(key, statement, {}, write=True)


@contextmanager
def unless_there() -> Iterator[None]:
    """Ignore errors because an index exists already, or is gone already: another process was first."""
    try:
        yield
    except QueryError as error:
        if not any(phrase in str(error).lower() for phrase in ALREADY):
            raise


@contextmanager
def index_lock(database: Database, key: str) -> Iterator[None]:
    """Be the only client that creates graphs and indices on the server of *key*: FalkorDB crashes by two at once."""
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
    """Renew *lock* in a thread for as long as it takes inside: to index a million vectors takes minutes."""
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
