"""The reader: what a server has saved is read in the background, in its order in each namespace."""

from __future__ import annotations

import asyncio
import logging

from kg_memory.errors import DatabaseUnavailable, EmbeddingUnavailable, KGMemoryError, ModelUnavailable
from kg_memory.memory.adding import Progress
from kg_memory.memory.episodes import UNREAD
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.telemetry import describe_error

logger = logging.getLogger("kg_memory.server")

OUTAGES = (DatabaseUnavailable, ModelUnavailable, EmbeddingUnavailable)
"""Errors after which reading is tried again."""
LONGEST_PAUSE = 60.0
GATHERING = 0.05
"""Seconds in which what is saved together is read together, where no plan waits for longer."""


class _StoppedError(Exception):
    """The server stops: what is not read yet stays saved."""


class Reader:
    """Reads what is saved and not read yet, in so many namespaces at once.

    Whatever stops it, episodes stay saved: the next start reads the rest. Its methods belong to one event loop.
    """

    def __init__(self, memory: GraphMemory, at_once: int = 4) -> None:
        self._memory, self._slots = memory, asyncio.Semaphore(at_once)
        self._due: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._start: asyncio.Task[None] | None = None
        self._started = self._stopping = False

    def start(self, only: str | None = None) -> None:
        """Begin to read, first what earlier servers left unread, in any namespace or in that *only*.

        Until then `wake` does nothing.
        """
        self._started = True
        self._start = asyncio.create_task(self._wake_all(only))

    def wake(self, namespace: str) -> None:
        """Read what is unread in *namespace*, soon."""
        if not self._started or self._stopping:
            return
        self._due.add(namespace)
        if namespace not in self._tasks:
            self._tasks[namespace] = asyncio.create_task(self._read(namespace))

    async def stop(self, seconds: float) -> None:
        """Finish the episode of each namespace that is being read, within so many seconds; all others stay saved."""
        self._stopping = True
        tasks = [*self._tasks.values(), *([self._start] if self._start else [])]
        for task in (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else ():
            task.cancel()
        left = [error for error in await asyncio.gather(*tasks, return_exceptions=True) if error is not None]
        if left:
            logger.warning("the server stopped while it read %d namespaces: the next start reads the rest", len(left))

    async def _wake_all(self, only: str | None) -> None:
        try:
            for namespace in [only] if only else await self._memory.data.anamespaces():
                if self._stopping:
                    return
                if await self._memory.episodes.alist(namespace=namespace, status=UNREAD, limit=1):
                    self.wake(namespace)
        except KGMemoryError as error:
            logger.warning("could not look for unread episodes: %s", describe_error(error))

    async def _read(self, namespace: str) -> None:
        settings, failures = self._memory.settings, 0
        pause = settings.window_seconds if settings.plan == "economy" else GATHERING
        try:
            while namespace in self._due and not self._stopping:
                await asyncio.sleep(pause)
                self._due.discard(namespace)
                try:
                    async with self._slots:
                        await self._memory.episodes.aresume(namespace=namespace, progress=self._check)
                except OUTAGES as error:
                    failures += 1
                    pause = min(LONGEST_PAUSE, 2.0**failures)
                    logger.warning("reading is tried again in %.0f s: %s", pause, describe_error(error))
                    self._due.add(namespace)
                except _StoppedError:
                    raise
                except Exception as error:  # noqa: BLE001 - they stay saved, and the next call tries again
                    logger.warning("episodes stay saved and unread: %s", describe_error(error))
                else:
                    pause, failures = GATHERING, 0
        finally:
            self._tasks.pop(namespace, None)

    def _check(self, _: Progress) -> None:
        if self._stopping:
            raise _StoppedError
