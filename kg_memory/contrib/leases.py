"""Leases: only one of the processes that share a database reads, and one maintains, a namespace at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from kg_memory.errors import KGMemoryError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.interrupted import READER

READING, MAINTAINING = "kg-reading:", "kg-maintaining:"
"""Key prefixes of leases in Redis. The value of a key is the holder, and the key expires."""
SECONDS = 10.0
"""Seconds after which a lease expires unless it is renewed, as when its process was killed."""
RENEWALS = 3
"""How often a lease is renewed within its duration."""
TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
"""Takes a lease, also one that this holder has: the answer of an earlier call, or its release, may have been lost."""
RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
GIVE_BACK = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


def lease_key(namespace: str, prefix: str = READING) -> str:
    """Return the Redis key of the lease on *namespace*.

    The graph's key is in braces, so that a cluster stores the lease on the graph's server.
    """
    return f"{prefix}{{{graph_key(namespace)}}}"


@dataclass(slots=True)
class Lease:
    """A lease that this process holds. `lost` becomes true if it expired before it was renewed."""

    lost: bool = False


class Leases:
    """Takes and renews leases on namespaces of *database*, so that only one process works on a namespace at a time.

    *prefix* is the kind of work: `READING` or `MAINTAINING`. *seconds* is how long a lease lasts without renewal.
    """

    def __init__(self, database: Database, seconds: float = SECONDS, prefix: str = READING) -> None:
        self._database, self._seconds, self._prefix = database, seconds, prefix
        self._holder = f"{READER.id}/{id(self)}"

    @asynccontextmanager
    async def hold(self, namespace: str) -> AsyncIterator[Lease | None]:
        """Context manager that takes the lease on *namespace*, renews it, and releases it at the end.

        Yields the `Lease`, or ``None`` if another process holds it.
        """
        key, lease = lease_key(namespace, self._prefix), Lease()
        if not await self._database.acommand("EVAL", TAKE, 1, key, self._holder, self._milliseconds, at=key):
            yield None
            return
        renewing = asyncio.create_task(self._renew(key, lease))
        try:
            yield lease
        finally:
            renewing.cancel()
            with suppress(KGMemoryError):  # the lease expires anyway
                await asyncio.shield(self._database.acommand("EVAL", GIVE_BACK, 1, key, self._holder, at=key))

    @property
    def _milliseconds(self) -> int:
        return int(self._seconds * 1000)

    async def _renew(self, key: str, lease: Lease) -> None:
        """Extend *lease*, stored under the Redis key *key*, at regular intervals until it is lost."""
        while not lease.lost:
            await asyncio.sleep(self._seconds / RENEWALS)
            with suppress(KGMemoryError):  # the next renewal may succeed
                words = ("EVAL", RENEW, 1, key, self._holder, self._milliseconds)
                lease.lost = not await self._database.acommand(*words, at=key)
