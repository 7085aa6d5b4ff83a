"""The background reader: extracts facts from saved episodes (messages or texts), in the order of their arrival."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext

from kg_memory import errors
from kg_memory.contrib.leases import Lease, Leases
from kg_memory.contrib.sleeping import has_unread
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeStatus
from kg_memory.runtime.flow import TURN
from kg_memory.runtime.telemetry import describe_error

logger = logging.getLogger("kg_memory.contrib.server")

DATABASE_AWAY = (errors.DatabaseUnavailable, errors.DatabaseStartError)
OUTAGES = (*DATABASE_AWAY, errors.ModelUnavailable, errors.EmbeddingUnavailable, errors.SettingsError)
"""Errors after which reading is retried, because a service is away or refuses all requests until it is mended."""
LONGEST_PAUSE = 60.0
GATHERING = 0.05
"""Seconds to wait so that episodes saved together are read together; the plan ``economy`` waits longer."""
TAKEN = 1.0
"""Seconds after which a namespace whose lease another process holds is tried again."""
AT_A_TIME = 200
"""The most episodes of a namespace that are read before other namespaces get their turn."""


def pause_after(failures: int, first: float = 0.375, growth: float = 1.5) -> float:
    """Return how many seconds to wait before a retry, after *failures* failed attempts."""
    return min(LONGEST_PAUSE, first * growth ** min(failures - 1, 20))


class _StoppedError(Exception):
    """Raised to stop reading when the server stops or the lease (an expiring lock) is lost.

    Unread episodes stay saved.
    """


class BackgroundReader:
    """Extracts facts from saved episodes in the background, in up to *at_once* namespaces at a time.

    A lease lets only one process at a time read a namespace. Call all methods from one event loop.
    """

    def __init__(self, memory: GraphMemory, at_once: int = 4, leases: Leases | None = None) -> None:
        self._memory, self._slots = memory, asyncio.Semaphore(at_once)
        self._leases = leases or Leases(memory.driver.store.database)
        self._due: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._start: asyncio.Task[None] | None = None
        self._started = self._stopping = False

    def start(self, only: str | None = None) -> None:
        """Start reading: first the episodes that an earlier process left unread."""
        self._started = True
        self._start = asyncio.create_task(self.look(only))

    def wake(self, namespace: str) -> None:
        """Schedule *namespace*, which has unread episodes, to be read in the background."""
        if not self._started or self._stopping:
            return
        self._due.add(namespace)
        if namespace not in self._tasks:
            self._tasks[namespace] = asyncio.create_task(self._read(namespace))

    async def stop(self, seconds: float) -> None:
        """Stop reading. Work on the current episodes may take *seconds* more; then it is cancelled.

        Unread episodes stay saved for the next start.
        """
        self._stopping = True
        tasks = [*self._tasks.values(), *([self._start] if self._start else [])]
        for task in (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else ():
            task.cancel()
        left = [error for error in await asyncio.gather(*tasks, return_exceptions=True) if error is not None]
        if left:
            logger.warning("stopped while reading %d namespaces; the next reader continues", len(left))

    async def look(self, only: str | None = None) -> None:
        """Find the namespaces with unread episodes, and schedule them to be read; with *only*, check only that one."""
        database = self._memory.driver.store.database
        try:
            names = [only] if only else await asyncio.to_thread(database.namespaces, "awake", reachable=True)
        except errors.KGMemoryError as error:
            logger.warning("could not search for unread episodes: %s", describe_error(error))
            return
        for namespace in names:
            if self._stopping:
                return
            try:
                if await asyncio.to_thread(has_unread, database, namespace):
                    self.wake(namespace)
            except errors.KGMemoryError as error:
                logger.warning("could not search a namespace for unread episodes: %s", describe_error(error))

    async def _read(self, namespace: str) -> None:
        """Extract facts from the unprocessed messages of *namespace* until none is left."""
        TURN.set(nullcontext)  # reading takes none of the turns of the API key that saved the episodes
        settings, failures = self._memory.settings, 0
        pause = settings.window_seconds if settings.plan == "economy" else GATHERING
        try:
            while namespace in self._due and not self._stopping:
                await asyncio.sleep(pause)
                self._due.discard(namespace)
                try:
                    pause = await self._take_turn(namespace)
                except OUTAGES as error:
                    failures += 1
                    pause = pause_after(failures) if isinstance(error, DATABASE_AWAY) else pause_after(failures, 2, 2)
                    logger.warning("could not read episodes, retrying in %.1f s: %s", pause, describe_error(error))
                    self._due.add(namespace)
                except _StoppedError:
                    if self._stopping:
                        raise
                    self._due.add(namespace)
                except Exception as error:  # noqa: BLE001 - the episodes stay saved, and the next `wake` retries
                    logger.warning("could not read episodes, which stay saved and unread: %s", describe_error(error))
                else:
                    failures = 0
        finally:
            self._tasks.pop(namespace, None)

    async def _take_turn(self, namespace: str) -> float:
        """Extract facts from up to 200 messages of *namespace*; return the seconds to wait before the next call."""
        async with self._slots, self._leases.hold(namespace) as lease:
            if lease is None:
                self._due.add(namespace)
                return TAKEN
            read = await self._memory.episodes.aresume(
                namespace=namespace, limit=AT_A_TIME, progress=lambda _: self._check(lease)
            )
        if len(read) == AT_A_TIME > sum(result.status == EpisodeStatus.WAITING for result in read):
            self._due.add(namespace)
        return GATHERING

    def _check(self, lease: Lease) -> None:
        if self._stopping or lease.lost:
            raise _StoppedError
