"""Leases: of all processes that share a database, one at a time reads a namespace, and one maintains it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from kg_memory.errors import KGMemoryError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.interrupted import READER

READING, MAINTAINING = "kg-reading:", "kg-maintaining:"
"""The prefixes of the keys of leases. The value of such a key is the holder, and the key expires."""
SECONDS = 10.0
"""Seconds after which a lease expires that is not renewed, as that of a killed process."""
RENEWALS = 3
"""The times that a lease is renewed before it would run out."""
TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
"""A holder takes its own lease again: it may not have learned that it got it, or may have failed to give it back."""
RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
GIVE_BACK = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


def lease_key(namespace: str, prefix: str = READING) -> str:
    """Return the key of the lease on *namespace*, which is on the server of its graph, as that one is in braces."""
    return f"{prefix}{{{graph_key(namespace)}}}"


@dataclass(slots=True)
class Lease:
    """A lease on a namespace, which is `lost` where it ran out before it was renewed."""

    lost: bool = False


class Leases:
    """The leases of this object on namespaces of *database*, for what *prefix* says."""

    def __init__(self, database: Database, seconds: float = SECONDS, prefix: str = READING) -> None:
        self._database, self._seconds, self._prefix = database, seconds, prefix
        self._holder = f"{READER.id}/{id(self)}"

    @asynccontextmanager
    async def hold(self, namespace: str) -> AsyncIterator[Lease | None]:
        """Hold the lease on *namespace*, and renew it meanwhile; ``None`` where another process holds it."""
        key, lease = lease_key(namespace, self._prefix), Lease()
        if not await self._database.acommand("EVAL", TAKE, 1, key, self._holder, self._milliseconds, at=key):
            yield None
            return
        renewing = asyncio.create_task(self._renew(key, lease))
        try:
            yield lease
        finally:
            renewing.cancel()
            with suppress(KGMemoryError):  # it runs out
                await asyncio.shield(self._database.acommand("EVAL", GIVE_BACK, 1, key, self._holder, at=key))

    @property
    def _milliseconds(self) -> int:
        return int(self._seconds * 1000)

    async def _renew(self, key: str, lease: Lease) -> None:
        while not lease.lost:
            await asyncio.sleep(self._seconds / RENEWALS)
            with suppress(KGMemoryError):  # the database may be back at the next time
                words = ("EVAL", RENEW, 1, key, self._holder, self._milliseconds)
                lease.lost = not await self._database.acommand(*words, at=key)
