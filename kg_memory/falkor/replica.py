"""A database with a replica, which answers reads that may be some moments old."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch, QueryError
from kg_memory.falkor.connect import Database, Host
from kg_memory.falkor.wire import Params, QueryBatch, QueryRunner, Row
from kg_memory.runtime.telemetry import describe_error

RETRY_AFTER = 30.0
"""Seconds for which a replica that failed gets no queries."""
REPLICA_ERRORS = (DatabaseUnavailable, QueryError, EmbeddingMismatch)
"""The errors of a replica that is down, or behind in its indices or vectors: the primary answers then."""

log = logging.getLogger("kg_memory")


class Replicated(Database):
    """A database that sends reads that may be stale to *replica*, and to itself when the replica fails.

    *replica* must be a replica of *host*, as by ``REPLICAOF``; this is not checked.
    """

    def __init__(self, host: Host, replica: Host, *, allow_old: bool = False) -> None:
        super().__init__(host, allow_old=allow_old)
        self._replica = Database(replica, allow_old=allow_old)
        self._stale = _ReplicaFirst(self, self._replica)

    @property
    def stale(self) -> QueryRunner:
        return self._stale

    def close(self) -> None:
        try:
            self._replica.close()
        finally:
            super().close()

    async def aclose(self) -> None:
        self.closed = True
        try:
            await self._replica.aclose()
        finally:
            await super().aclose()


class _ReplicaFirst:
    """Runs queries on the replica, and on the primary what the replica cannot answer or does not have yet."""

    def __init__(self, primary: Database, replica: Database) -> None:
        self._primary = primary
        self._replica = replica
        self._retry_at = 0.0
        """When the replica gets queries again, by the monotonic clock."""

    def query(self, key: str, cypher: str, params: Params, *, write: bool) -> list[Row]:
        if self._is_due(write=write):
            with self._tolerate():
                state = self._replica.state(key)
                rows = self._replica.query(key, cypher, params, write=False)
                if self._has_graph(key, state):
                    return rows
        return self._primary.query(key, cypher, params, write=write)

    async def aquery(self, key: str, cypher: str, params: Params, *, write: bool) -> list[Row]:
        if self._is_due(write=write):
            with self._tolerate():
                state = self._replica.state(key)
                rows = await self._replica.aquery(key, cypher, params, write=False)
                if self._has_graph(key, state):
                    return rows
        return await self._primary.aquery(key, cypher, params, write=write)

    def read_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        if self._is_due(write=False):
            with self._tolerate():
                state = self._replica.state(key)
                results = self._replica.read_all(key, queries)
                if self._has_graph(key, state):
                    return results
        return self._primary.read_all(key, queries)

    async def aread_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        if self._is_due(write=False):
            with self._tolerate():
                state = self._replica.state(key)
                results = await self._replica.aread_all(key, queries)
                if self._has_graph(key, state):
                    return results
        return await self._primary.aread_all(key, queries)

    def _is_due(self, *, write: bool) -> bool:
        return not write and time.monotonic() >= self._retry_at

    def _has_graph(self, key: str, before: tuple[int, int]) -> bool:
        """Return whether the replica has the graph *key*: whether it was absent no oftener than in state *before*."""
        return self._replica.state(key)[1] == before[1]

    @contextmanager
    def _tolerate(self) -> Iterator[None]:
        try:
            yield
        except REPLICA_ERRORS as error:
            self._retry_at = time.monotonic() + RETRY_AFTER
            log.warning("the replica is not asked for %g s: %s", RETRY_AFTER, describe_error(error))
