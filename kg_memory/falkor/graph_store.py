"""The graphs of a database as the driver uses them: each is made ready before its first query."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Self

import redis

from kg_memory.errors import DatabaseError, DatabaseUnavailable, EmbeddingMismatch, QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.runtime.driver import Driver, Embedder
from kg_memory.runtime.effects import Query, Reads, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error

READY_SECONDS = 60.0
"""Seconds for which a graph counts as ready: another process may have embedded all of it with another model."""
VECTOR_SEARCH = "db.idx.vector"
REFUSALS = (QueryError, EmbeddingMismatch)
"""Errors of a query whose graph is not what it was when it was ready."""
RETRY_AFTER = 30.0
"""Seconds for which a replica that failed gets no queries."""
REPLICA_ERRORS = (DatabaseUnavailable, QueryError, EmbeddingMismatch)
"""The errors of a replica that is down, or behind in its indices or vectors: the primary answers then."""

log = logging.getLogger("kg_memory")


class Replica:
    """Answers reads that may be some moments old by the *replica* of a database."""

    def __init__(self, replica: Database) -> None:
        self._database = replica
        self._retry_at = 0.0
        """When it gets queries again, by the monotonic clock."""

    def answer(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Return the answer to *query*; None if it fails, is not asked now, or lacks the graph *key*."""
        if time.monotonic() < self._retry_at:
            return None
        _, absences = self._database.state(key)
        try:
            result = yield from _send(self._database, key, query)
        except REPLICA_ERRORS as error:
            self._retry_at = time.monotonic() + RETRY_AFTER
            log.warning("the replica is not asked for %g s: %s", RETRY_AFTER, describe_error(error))
            return None
        return result if self._database.state(key)[1] == absences else None


class GraphStore:
    """The graphs of *database*, with vectors of one model."""

    def __init__(self, database: Database, vectors: Embedder) -> None:
        self.database, self.vectors = database, vectors
        self._replica = None if database.replica is None else Replica(database.replica)
        self.replica: Replica | None = None
        """The replica that is asked first by the reads of this store."""
        self._ready: dict[str, tuple[tuple[int, ...], float]] = {}
        """The state of the database in which a graph was there and ready, and until when it counts."""

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self.database.closed

    def for_reads(self) -> Self:
        """Return a store like this one whose reads go to the replica; this one where there is none."""
        if self._replica is None:
            return self
        store = copy(self)
        store.replica = self._replica
        return store

    def key(self, namespace: str) -> str:
        """Return the Redis key of the graph of *namespace*."""
        return graph_key(namespace)

    def perform(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Run *query* on the graph *key*, and return its rows."""
        first = query.queries[0] if isinstance(query, Reads) else query
        yield from self.database.connect()  # first, as it tells whether the server is still the one that was ready
        if not self._is_ready(key):
            yield in_thread(partial(self._prepare, key, write=first.write))
        if self.replica is not None and not first.write:
            rows = yield from self.replica.answer(key, query)
            if rows is not None:
                return rows
        try:
            return (yield from _send(self.database, key, query))
        except REFUSALS as error:
            yield in_thread(partial(self._prepare_again, key, first, error))
        with _require_vector_index():
            return (yield from _send(self.database, key, query))

    def command(self, *words: str | int, at: str, replica: bool = False) -> Flow[Any]:
        """Run a command of the server that holds the key *at*, or of its *replica*: None where there is none."""
        database = self.database.replica if replica else self.database
        return None if database is None else (yield from database.command_flow(*words, at=at))

    def fit(self, key: str, *, write: bool) -> bool:
        """Return whether the graph *key* exists, made before the first *write*; a read of a missing one finds nothing.

        Errors: `EmbeddingMismatch`, `SchemaError`.
        """
        dimension, name = self.vectors.length or None, self.vectors.name
        if write and name != schema.ANY_MODEL:
            schema.ensure(self.database, key, dimension, name)
            return True
        try:
            return schema.check(self.database, key, dimension, name)
        except DatabaseError as error:
            if not isinstance(error.__cause__, redis.ReadOnlyError):
                raise
            # A replica takes no writes: the graph stays without the indices of its vectors, as it has none.
            return schema.check(self.database, key, None, name)

    def state(self, key: str) -> tuple[int, ...]:
        """Return what changes when the graph *key* must be made ready again, as when its vectors' length is known."""
        return (*self.database.state(key), self.vectors.length)

    def _is_ready(self, key: str) -> bool:
        state, until = self._ready.get(key, (None, 0.0))
        return state == self.state(key) and time.monotonic() < until

    def _prepare(self, key: str, *, write: bool) -> None:
        """Make the graph *key* ready."""
        length = self.vectors.length  # another thread may learn it meanwhile: then the indices are still to be made
        if not self._is_ready(key) and self.fit(key, write=write):
            state = (*self.database.state(key), length)
            self._ready[key] = state, time.monotonic() + READY_SECONDS

    def _prepare_again(self, key: str, query: Query, refused: DatabaseError | EmbeddingMismatch) -> None:
        """Return once *query*, which was refused and so changed nothing, may be run again; raise if it may not.

        It may after somebody deleted the graph, and after its vectors were made anew. A graph that has no Meta node
        is one that was deleted and written again, or is just being made: here it is made whole, even for a read.
        """
        self._ready.pop(key, None)
        meta = self.database.query(key, schema.READ_META, {}, write=False)
        if meta and VECTOR_SEARCH not in str(refused) and not isinstance(refused, EmbeddingMismatch):
            raise refused
        self._prepare(key, write=query.write or not meta)


FalkorDriver = Driver[GraphStore]


def _send(database: Database, key: str, query: Query | Reads) -> Flow[Any]:
    if isinstance(query, Reads):
        return database.read_all_flow(key, [(part.cypher, part.params) for part in query.queries])
    return database.query_flow(key, query.cypher, query.params, write=query.write)


@contextmanager
def _require_vector_index() -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        if VECTOR_SEARCH not in str(error):
            raise
        raise EmbeddingMismatch("the graph has no index of its vectors: run `kg-memory reembed` to make it") from error
