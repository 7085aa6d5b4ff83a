"""Background maintenance of an open memory (`Settings.maintenance`): expiry, eviction and communities.

A thread with its own event loop maintains all namespaces of the database. A lease (an expiring lock) on each namespace
prevents two processes from maintaining it at the same time.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from contextlib import suppress

from kg_memory.contrib.eviction import evict
from kg_memory.contrib.leases import MAINTAINING, RENEWALS, Lease, Leases, lease_key
from kg_memory.memory._verb import Engine
from kg_memory.memory.communities import Communities
from kg_memory.memory.data import Data
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Maintenance

logger = logging.getLogger("kg_memory")

SOON = 1.0
"""Seconds after opening the memory before maintenance starts: most command-line calls end sooner."""
STOPPING = 10.0
"""Seconds that running maintenance gets to end: the process must be able to exit even if a server does not answer."""
MAINTAINED = "kg-maintained:"
"""The prefix of a Redis key that exists for `every_seconds` after a namespace was maintained. It is no part of the
graph: to read it is no use of the namespace, which may then go to sleep."""


class Maintainer:
    """Background thread that regularly deletes expired data and refreshes communities in all namespaces."""

    def __init__(self, engine: Engine, maintenance: Maintenance) -> None:
        """Start the thread, which is also stopped when the process exits."""
        self._engine, self._maintenance = engine, maintenance
        self._database = engine.driver.store.database
        self._leases = Leases(self._database, maintenance.lease_seconds, MAINTAINING)
        self._task: asyncio.Task[None] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kg-memory maintenance", daemon=True)
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, even in the middle of a run.

        This is safe: every single write is atomic, and the next run completes the work.
        """
        if self._stopped.is_set():
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        if self._task is not None:
            with suppress(RuntimeError):  # the loop has already ended
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        self._thread.join(STOPPING)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._maintain_all())

    async def _maintain_all(self) -> None:
        """Maintain each namespace once every `every_seconds`, until the thread is stopped."""
        self._task = asyncio.current_task()
        pause = min(SOON, self._maintenance.every_seconds)
        while not self._stopped.is_set():
            await asyncio.sleep(pause)
            # `_maintain` does nothing in a namespace that was maintained within `every_seconds`: see `MAINTAINED`.
            pause = min(self._maintenance.every_seconds, self._maintenance.lease_seconds)
            try:
                namespaces = await Data(self._engine).anamespaces("awake")
            except Exception as error:  # noqa: BLE001 - no caller could handle it, and the next time retries
                logger.warning("maintenance could not list the namespaces, retrying later: %s", describe_error(error))
                continue
            for namespace in namespaces:
                await self._maintain(namespace)

    async def _maintain(self, namespace: str) -> None:
        """Maintain *namespace*, unless a process has done so in the last `every_seconds`, or is doing so now.

        Errors are logged, not raised.
        """
        command, key, done = self._database.acommand, lease_key(namespace, MAINTAINED), False
        try:
            if await command("EXISTS", key, at=key):
                return
            async with self._leases.hold(namespace) as lease:
                period = int(self._maintenance.every_seconds * 1000)
                if lease is None or not await command("SET", key, "1", "NX", "PX", max(period, 1), at=key):
                    return
                try:
                    done = await self._work_while(lease, namespace)
                finally:
                    if not (done or lease.lost):
                        await asyncio.shield(command("DEL", key, at=key))
        except Exception as error:  # noqa: BLE001 - as above
            logger.warning("maintenance of a namespace failed, retrying later: %s", describe_error(error))

    async def _work_while(self, lease: Lease, namespace: str) -> bool:
        """Run `_work` for *namespace*; return True when it ends, or False if *lease* is lost before.

        If the lease is lost, the work is cancelled.
        """
        work = asyncio.ensure_future(self._work(namespace))
        try:
            while not (await asyncio.wait((work,), timeout=self._maintenance.lease_seconds / RENEWALS))[0]:
                if lease.lost:
                    logger.warning("maintenance of a namespace stopped: another process took over its lease")
                    return False
            work.result()
        finally:
            work.cancel()
        return True

    async def _work(self, namespace: str) -> None:
        chosen = self._maintenance
        selected = {
            name: getattr(chosen, name) for name in ("expired_days", "orphans", "max_entities", "expired_episodes")
        }
        if any(value is not None and value is not False for value in selected.values()):
            await self._engine.driver.arun(evict(self._engine.settings, namespace, **selected), namespace)
        if chosen.communities:
            await Communities(self._engine).arefresh(namespace=namespace)
