"""Leases: of all processes that share a database, only one at a time reads, and only one maintains, a namespace.

A lease is a lock in Redis that expires by itself if its process stops renewing it.
"""

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
    """Return the Redis key of the lease (a lock that expires) on *namespace*.

    *prefix*: the kind of work, `READING` or `MAINTAINING`.
    """
    return f"{prefix}{{{graph_key(namespace)}}}"  # braces: a Redis cluster stores the lease beside the graph


@dataclass(slots=True)
class Lease:
    """A lease (an expiring lock) on a namespace, acquired by this process; `lost` if it could not be renewed."""

    lost: bool = False


class Leases:
    """Acquires leases (expiring locks) on namespaces, so that only one process at a time works on a namespace."""

    def __init__(self, database: Database, seconds: float = SECONDS, prefix: str = READING) -> None:
        self._database, self._seconds, self._prefix = database, seconds, prefix
        self._milliseconds = int(seconds * 1000)
        self._holder = f"{READER.id}/{id(self)}"

    @asynccontextmanager
    async def hold(self, namespace: str) -> AsyncIterator[Lease | None]:
        """Context manager that acquires the lease on *namespace*, renews it, and finally releases it.

        It yields None at once if another process has the lease.
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

    async def _renew(self, key: str, lease: Lease) -> None:
        while not lease.lost:
            await asyncio.sleep(self._seconds / RENEWALS)
            with suppress(KGMemoryError):  # the next renewal may succeed
                words = ("EVAL", RENEW, 1, key, self._holder, self._milliseconds)
                lease.lost = not await self._database.acommand(*words, at=key)
