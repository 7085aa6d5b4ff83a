"""A database with a replica, which answers what may be some moments old."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch, QueryError
from kg_memory.falkor.connect import Database, Host
from kg_memory.falkor.wire import QueryBatch, QueryRunner, Row
from kg_memory.runtime.telemetry.failures import reason

LEFT_ALONE = 30.0
"""Seconds for which a replica that failed is not asked again."""
EXCUSED = (DatabaseUnavailable, QueryError, EmbeddingMismatch)
"""How a replica fails that is down, or behind in its indices or vectors: the primary will know."""

log = logging.getLogger("kg_memory")


class Replicated(Database):
    """A database whose reads that may be stale go to *replica*, and to itself where the replica fails.

    The replica copies the server of *host*, as ``REPLICAOF`` makes it; that it does is not checked.
    """

    def __init__(self, host: Host, replica: Host, *, allow_old: bool = False) -> None:
        super().__init__(host, allow_old=allow_old)
        self._replica = Database(replica, allow_old=allow_old)
        self._stale = _Stale(self, self._replica)

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


class _Stale:
    """Asks the replica first, and the primary what the replica cannot answer: also what is not there yet."""

    def __init__(self, primary: Database, replica: Database) -> None:
        self._primary = primary
        self._replica = replica
        self._again = 0.0
        """From when on the replica is asked, by the monotonic clock."""

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        if self._asks(write=write):
            with self._excused():
                known = self._replica.state(key)
                rows = self._replica.query(key, cypher, params, write=False)
                if self._had(key, known):
                    return rows
        return self._primary.query(key, cypher, params, write=write)

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        if self._asks(write=write):
            with self._excused():
                known = self._replica.state(key)
                rows = await self._replica.aquery(key, cypher, params, write=False)
                if self._had(key, known):
                    return rows
        return await self._primary.aquery(key, cypher, params, write=write)

    def read_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        if self._asks(write=False):
            with self._excused():
                known = self._replica.state(key)
                found = self._replica.read_all(key, queries)
                if self._had(key, known):
                    return found
        return self._primary.read_all(key, queries)

    async def aread_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        if self._asks(write=False):
            with self._excused():
                known = self._replica.state(key)
                found = await self._replica.aread_all(key, queries)
                if self._had(key, known):
                    return found
        return await self._primary.aread_all(key, queries)

    def _asks(self, *, write: bool) -> bool:
        return not write and time.monotonic() >= self._again

    def _had(self, key: str, known: tuple[int, int]) -> bool:
        """Tell whether the replica has the graph *key*, by how often it was absent before."""
        return self._replica.state(key)[1] == known[1]

    @contextmanager
    def _excused(self) -> Iterator[None]:
        try:
            yield
        except EXCUSED as error:
            self._again = time.monotonic() + LEFT_ALONE
            log.warning("the replica is not asked for %g s: %s", LEFT_ALONE, reason(error))
