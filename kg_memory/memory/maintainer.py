"""The maintenance of an open memory: expiry, eviction and communities, in the background (`Settings.maintenance`).

A thread with an event loop of its own looks after all namespaces of the database. A lease in each graph, which is
renewed while the work goes on, keeps two processes from doing the same; the lease of one that was killed runs out.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from kg_memory.falkor.queries import maintenance as cypher
from kg_memory.ingestion.interrupted import READER
from kg_memory.maintenance.eviction import EvictionRequest, evict
from kg_memory.memory._verb import Engine
from kg_memory.memory.communities import Communities
from kg_memory.memory.data import Data
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Maintenance

logger = logging.getLogger("kg_memory")

SECOND = 1_000_000
SOON = 1.0
"""Seconds after the memory was opened in which nothing is done: most commands are over by then."""
STOPPING = 10.0
"""Seconds in which work under way must end: a server may answer nobody, and the process is to end all the same."""
RENEWALS = 3
"""The times that a lease is renewed before it would end."""


class Maintainer:
    """Maintains the namespaces of *engine* until it is stopped; errors are logged, and the next time tries again."""

    def __init__(self, engine: Engine, maintenance: Maintenance) -> None:
        self._engine, self._maintenance = engine, maintenance
        self._holder = f"{READER.id}/{id(self)}"
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kg-memory maintenance", daemon=True)
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Stop, in the middle of the work if need be: each part of it is whole by itself, and the rest is due again."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        with suppress(RuntimeError):  # the loop ended by itself
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(STOPPING)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._maintain_all())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _maintain_all(self) -> None:
        pause = min(SOON, self._maintenance.every_seconds)
        while not self._stopped.is_set():
            await asyncio.sleep(pause)
            pause = min(self._maintenance.every_seconds, self._maintenance.lease_seconds)
            try:
                namespaces = await Data(self._engine).anamespaces()
            except Exception as error:  # noqa: BLE001 - it is no call of a user's, and the next time tries again
                logger.warning("maintenance could not list the namespaces: %s", describe_error(error))
                continue
            for namespace in namespaces:
                await self._maintain(namespace)

    async def _maintain(self, namespace: str) -> None:
        """Maintain one namespace, if it is due and no other process is at it."""
        run, done = self._engine.driver.arun, False
        try:
            if not await run(self._claim(), namespace):
                return
            try:
                work = asyncio.ensure_future(self._work(namespace))
                try:
                    done = await self._renew_until(work, namespace)
                finally:
                    work.cancel()
            finally:
                await asyncio.shield(run(self._write_if_held(cypher.RELEASE, done=done), namespace))
        except Exception as error:  # noqa: BLE001 - as above
            logger.warning("maintenance of a namespace failed, and is tried again: %s", describe_error(error))

    async def _renew_until(self, work: asyncio.Future[None], namespace: str) -> bool:
        """Wait for *work*, and renew the lease meanwhile; return whether it ended before the lease was lost."""
        pause = self._maintenance.lease_seconds / RENEWALS
        while not (await asyncio.wait((work,), timeout=pause))[0]:
            seconds = int(self._maintenance.lease_seconds * SECOND)
            if not await self._engine.driver.arun(self._write_if_held(cypher.RENEW, seconds=seconds), namespace):
                logger.warning("maintenance of a namespace stops: another process has taken it over")
                return False
        work.result()
        return True

    async def _work(self, namespace: str) -> None:
        """Forget what has expired, evict what is over, then find the communities of what is left."""
        chosen = self._maintenance
        eviction = EvictionRequest(chosen.expired_days, chosen.orphans, chosen.max_entities, chosen.expired_episodes)
        if not eviction.is_empty():
            await self._engine.driver.arun(evict(eviction, self._engine.settings, namespace), namespace)
        if chosen.communities:
            await Communities(self._engine).arefresh(namespace=namespace)

    def _claim(self) -> Flow[bool]:
        chosen = self._maintenance
        fields = {"holder": self._holder, "now": (yield from now()), "every": int(chosen.every_seconds * SECOND)}
        if not (yield from read(cypher.DUE, **fields)):
            return False
        return bool((yield from write(cypher.CLAIM, **fields, seconds=int(chosen.lease_seconds * SECOND))))

    def _write_if_held(self, query: str, **fields: object) -> Flow[bool]:
        """Run *query*, which changes the lease, and return whether this process has it.

        It is read first, as a write would make the graph again of a namespace that was forgotten meanwhile.
        """
        if not (yield from read(cypher.HELD, holder=self._holder)):
            return False
        return bool((yield from write(query, holder=self._holder, now=(yield from now()), **fields)))


def start_maintenance(engine: Engine) -> Callable[[], None]:
    """Start the maintenance that the settings ask for, if any, and return what stops it."""
    chosen = engine.settings.maintenance
    return _nothing if chosen is None else Maintainer(engine, chosen).stop


def _nothing() -> None:
    """Stop nothing."""
