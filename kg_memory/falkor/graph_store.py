"""The graphs of a database as the driver uses them: the indices of each graph are checked before its first query."""

from __future__ import annotations

import logging
import time
from copy import copy
from functools import partial
from typing import Any, Self

import redis

from kg_memory.errors import DatabaseError, DatabaseUnavailable, EmbeddingMismatch, QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.wire import NamespaceAsleep
from kg_memory.runtime.driver import Driver, Embedder
from kg_memory.runtime.effects import Query, Reads, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error

READY_SECONDS = 60.0
"""Seconds for which a graph counts as prepared; then it is checked again: another process may have re-embedded it."""
VECTOR_SEARCH = "db.idx.vector"
REFUSALS = (QueryError, EmbeddingMismatch)
"""Errors of a query on a graph that has changed since it was prepared, such as one that was deleted."""
RETRY_AFTER = 30.0
"""Seconds for which a replica that failed gets no queries."""
REPLICA_ERRORS = (DatabaseUnavailable, QueryError, EmbeddingMismatch)
"""The errors of a replica that is down, or whose indices or vectors lag behind: the primary answers then."""

log = logging.getLogger("kg_memory")


class Replica:
    """A read replica of the database that answers queries. Its data may be some moments older than the primary's."""

    def __init__(self, replica: Database) -> None:
        self._database = replica
        replica.wakes = False  # it accepts no writes
        self._retry_at = 0.0
        """Until when it gets no queries, in seconds of `time.monotonic`."""

    def answer(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Return the result rows of *query* on the replica, or None if the primary must be asked instead."""
        if time.monotonic() < self._retry_at:
            return None
        _, absences = self._database.change_counters(key)
        try:
            result = yield from _send(self._database, key, query)
        except NamespaceAsleep:
            return None
        except REPLICA_ERRORS as error:
            self._retry_at = time.monotonic() + RETRY_AFTER
            log.warning("the replica failed and gets no queries for %g s: %s", RETRY_AFTER, describe_error(error))
            return None
        return result if self._database.change_counters(key)[1] == absences else None


class GraphStore:
    """Runs queries on the graphs of *database*, and creates the indices of each graph before its first query."""

    def __init__(self, database: Database, vectors: Embedder) -> None:
        self.database, self.vectors = database, vectors
        self._replica = None if database.replica is None else Replica(database.replica)
        self.replica: Replica | None = None
        """The replica that this store's reads go to first; None reads from the primary."""
        self._ready: dict[str, tuple[tuple[int, ...], float]] = {}
        """The `change_counters` when each graph was prepared, and until when that counts (as `time.monotonic`)."""

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self.database.closed

    def for_reads(self) -> Self:
        """Return a copy of this store that sends reads to the replica first, or this store if there is no replica."""
        if self._replica is None:
            return self
        store = copy(self)
        store.replica = self._replica
        return store

    def key(self, namespace: str) -> str:
        """Return the Redis key of the graph of *namespace*, such as ``kg:team``."""
        return graph_key(namespace)

    def perform(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Run *query* on the graph *key* and return its rows; for a batch of reads, return a list of rows for each."""
        first = query.queries[0] if isinstance(query, Reads) else query
        yield from self.database.connect()  # first: a new connection means that the graph must be prepared again
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
        try:
            return (yield from _send(self.database, key, query))
        except QueryError as error:
            if VECTOR_SEARCH not in str(error):
                raise
            raise EmbeddingMismatch("the graph has no vector index; run `kg-memory reembed` to create it") from error

    def command(self, *words: str | int, at: str, replica: bool = False) -> Flow[Any]:
        """Send a Redis command, given as *words*, to the server that holds the key *at*, and return the reply.

        With *replica*, send it to the replica; the result is None if there is no replica.
        """
        database = self.database.replica if replica else self.database
        return None if database is None else (yield from database.command_flow(*words, at=at))

    def fit(self, key: str, *, write: bool) -> bool:
        """Check or create the indices of the graph *key*, and return whether the graph exists.

        With *write*, a missing graph is created. Errors: `EmbeddingMismatch` for vectors of another model,
        `SchemaError` for a graph of another version.
        """
        dimension, name = self.vectors.length or None, self.vectors.name
        try:
            if write and name != schema.ANY_MODEL:
                return schema.ensure(self.database, key, dimension, name)
            return schema.check(self.database, key, dimension, name)
        except EmbeddingMismatch:
            self.vectors.length = 0  # the next vector tells it, if the model answered wrongly once
            self.vectors.vectors.clear()
            raise
        except DatabaseError as error:
            if not isinstance(error.__cause__, redis.ReadOnlyError):
                raise
            # A replica accepts no writes. The graph has no vectors yet, so it can be read without vector indices.
            return schema.check(self.database, key, None, name)

    def change_counters(self, key: str) -> tuple[int, ...]:
        """Return counters of reconnections and schema changes: if one changes, the schema must be checked again."""
        return (*self.database.change_counters(key), self.vectors.length)

    def _is_ready(self, key: str) -> bool:
        counters, until = self._ready.get(key, (None, 0.0))
        return counters == self.change_counters(key) and time.monotonic() < until

    def _prepare(self, key: str, *, write: bool) -> None:
        length = self.vectors.length  # read before: if another thread sets it meanwhile, the indices are still missing
        if not self._is_ready(key) and self.fit(key, write=write):
            counters = (*self.database.change_counters(key), length)
            self._ready[key] = counters, time.monotonic() + READY_SECONDS

    def _prepare_again(self, key: str, query: Query, refused: DatabaseError | EmbeddingMismatch) -> None:
        """Check or create the indices of the graph *key* again; raise *refused* if repeating *query* cannot help."""
        self._ready.pop(key, None)
        # It can help if the graph was deleted, has no ``(:Meta)`` node yet, or got new vectors.
        meta = self.database.query(key, schema.READ_META, {}, write=False)
        if meta and VECTOR_SEARCH not in str(refused) and not isinstance(refused, EmbeddingMismatch):
            raise refused
        self._prepare(key, write=query.write or not meta)


FalkorDriver = Driver[GraphStore]


def _send(database: Database, key: str, query: Query | Reads) -> Flow[Any]:
    if isinstance(query, Reads):
        return database.read_all_flow(key, [(part.cypher, part.params) for part in query.queries])
    return database.query_flow(key, query.cypher, query.params, write=query.write)
