"""Reads that may be some moments old: from a replica, and from its primary where the replica cannot answer."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch, QueryError
from kg_memory.falkor.wire import Params, QueryBatch, Row
from kg_memory.runtime.flow import Flow, T
from kg_memory.runtime.telemetry import describe_error

if TYPE_CHECKING:
    from kg_memory.falkor.connect import Database

RETRY_AFTER = 30.0
"""Seconds for which a replica that failed gets no queries."""
ANSWERED_IN = 5.0
"""Seconds in which a replica answers a read, else the primary does: it may be frozen."""
REPLICA_ERRORS = (DatabaseUnavailable, QueryError, EmbeddingMismatch)
"""The errors of a replica that is down, or behind in its indices or vectors: the primary answers then."""

log = logging.getLogger("kg_memory")


class ReplicaFirst:
    """Runs queries on the replica, and on the primary what the replica cannot answer or does not have yet."""

    def __init__(self, primary: Database, replica: Database) -> None:
        self._primary = primary
        self._replica = replica
        self._retry_at = 0.0
        """When the replica gets queries again, by the monotonic clock."""

    def query_flow(self, key: str, cypher: str, params: Params, *, write: bool) -> Flow[list[Row]]:
        if not write:
            rows = yield from self._try_replica(key, self._replica.query_flow(key, cypher, params, write=False))
            if rows is not None:
                return rows
        return (yield from self._primary.query_flow(key, cypher, params, write=write))

    def read_all_flow(self, key: str, queries: QueryBatch) -> Flow[list[list[Row]]]:
        results = yield from self._try_replica(key, self._replica.read_all_flow(key, queries))
        if results is not None:
            return results
        return (yield from self._primary.read_all_flow(key, queries))

    def _try_replica(self, key: str, flow: Flow[T]) -> Flow[T | None]:
        """Return the result of *flow* on the replica; None if it fails, or is not asked at present."""
        if time.monotonic() < self._retry_at:
            return None
        state = self._replica.state(key)
        try:
            result = yield from flow
        except REPLICA_ERRORS as error:
            self._retry_at = time.monotonic() + RETRY_AFTER
            log.warning("the replica is not asked for %g s: %s", RETRY_AFTER, describe_error(error))
            return None
        return result if self._has_graph(key, state) else None

    def _has_graph(self, key: str, before: tuple[int, int]) -> bool:
        """Return whether the replica has the graph *key*: whether it was absent no oftener than in state *before*."""
        return self._replica.state(key)[1] == before[1]
