"""``kg-memory worker``: processes that extract facts from the episodes that servers save. Start as many as needed.

For each saved episode, a server adds a hint to a Redis stream: the name of its namespace. All workers follow the
stream. The worker that gets the lease (an expiring lock) on the namespace reads its episodes. The other workers retry,
so they take over if that worker is killed. Hints only save time: the graphs themselves show which episodes are unread,
and each worker checks them regularly.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from kg_memory.cli.command import open_memory, run
from kg_memory.cli.output import Screen
from kg_memory.contrib.leases import SECONDS, Leases
from kg_memory.contrib.server.reader import BackgroundReader, pause_after
from kg_memory.errors import DatabaseUnavailable, KGMemoryError
from kg_memory.falkor.connect import Database
from kg_memory.maintenance.forgetting.erase import clear_all_caches
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.caches import clear_with_all
from kg_memory.runtime.telemetry import describe_error
from kg_memory.validation import validate_count

logger = logging.getLogger("kg_memory.contrib.server")

SPAWN = multiprocessing.get_context("spawn")
STREAM, FIELD = "kg-saved", "namespace"
FORGOTTEN = ""
"""The hint that data was forgotten: each worker then clears its caches, which may hold deleted texts."""
FIRST = "0-0"
"""The stream id before that of the first hint."""
LONGEST, KEPT_SECONDS = 10_000, 600
"""The approximate number of hints that the stream keeps, and the seconds after the last hint when it is deleted."""
AT_ONCE = 100
"""The most hints that a worker reads at once."""
LOOK_SECONDS, LOOK_WITHOUT_HINTS = 60.0, 5.0
"""Seconds between two checks of all namespaces for unread episodes: usually, and while there are no hints."""
ANSWERED_IN = 15.0
"""Seconds within which the server of the hint stream must answer."""
LOOKING = 10
"""While the hint stream is unavailable, the pause between two checks is at least this many times their duration."""
STOP_SECONDS = 30.0
"""Seconds that a worker gets to finish its episodes when it is stopped."""
RESTART_SECONDS, LOWER_PRIORITY = 2.0, 10
"""Seconds between two checks whether the worker process of a server runs, and how much it lowers its priority."""


class Outbox:
    """Notifies worker processes of new episodes and deletions, in a server that reads no episodes itself.

    It replaces `BackgroundReader`. All methods but `clear` must be called from one event loop.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Notify the workers, from now on, when this process deletes data of users, so that they clear their caches."""
        self._loop = asyncio.get_running_loop()
        clear_with_all(self)

    def clear(self) -> None:
        """Tell all workers to clear their caches; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.wake, FORGOTTEN)

    def wake(self, namespace: str) -> None:
        """Add a hint that *namespace* has new episodes to the Redis stream of the workers, in the background."""
        self._due[namespace] = None
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def stop(self, seconds: float) -> None:
        """Wait up to *seconds* until the remaining hints are in the workers' Redis stream, then stop sending."""
        if self._sending is not None:
            await asyncio.wait((self._sending,), timeout=seconds)
            self._sending.cancel()

    async def _send(self) -> None:
        """Add each namespace with new messages to the Redis stream of the workers; retry while the database is away."""
        failures = 0
        while self._due:
            namespace = next(iter(self._due))
            del self._due[namespace]
            try:
                await self._database.acommand("XADD", STREAM, "MAXLEN", "~", LONGEST, "*", FIELD, namespace, at=STREAM)
                await self._database.acommand("EXPIRE", STREAM, KEPT_SECONDS, at=STREAM)
            except DatabaseUnavailable as error:
                failures += 1
                logger.warning("could not notify workers, retrying: %s", describe_error(error))
                self._due[namespace] = None
                await asyncio.sleep(pause_after(failures))
            except KGMemoryError as error:
                logger.warning("could not notify workers; they find the episodes later: %s", describe_error(error))


class ReadingProcess(Outbox):
    """Reads the episodes that ``kg-memory serve`` saves, in a worker process: threads would delay the requests."""

    def __init__(self, database: Database, arguments: Namespace) -> None:
        super().__init__(database)
        self._arguments = Namespace(**{**vars(arguments), "run": f"{__name__}:run_worker", "at_once": 4})

    def start(self) -> None:
        """Start the process, which first reads the episodes that an earlier process left unread."""
        super().start()
        self._process = SPAWN.Process(target=run, args=(self._arguments,), daemon=True)
        self._process.start()
        self._restarting = asyncio.create_task(self._restart())

    async def stop(self, seconds: float) -> None:
        """Stop the process; its work on the current episodes may take *seconds* more, then it is killed."""
        await super().stop(seconds)
        self._restarting.cancel()
        self._process.terminate()
        await asyncio.to_thread(self._process.join, seconds)
        self._process.kill()

    async def _restart(self) -> None:
        while self._process.is_alive():  # noqa: ASYNC110 - nothing reports it
            await asyncio.sleep(RESTART_SECONDS)
        logger.warning("the process that reads episodes has ended; starting it again")
        self.start()


class Worker:
    """Extracts facts from saved episodes in all namespaces, *at_once* of them at a time, until it is stopped."""

    def __init__(
        self,
        memory: GraphMemory,
        at_once: int = 4,
        *,
        lease_seconds: float = SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._database: Database = memory.driver.store.database
        self._reader = BackgroundReader(memory, at_once, Leases(self._database, lease_seconds))
        self._look_seconds = look_seconds
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Make `run` return as soon as it has finished the messages that are being processed."""
        self._stopping.set()

    async def run(self) -> None:
        """Read episodes until `stop` is called, then finish the episodes being read."""
        self._reader.start()
        following = asyncio.create_task(self._follow())
        await self._stopping.wait()
        await self._reader.stop(STOP_SECONDS)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    async def _follow(self) -> None:
        """Read hints (names of namespaces with new messages) until `stop`, and start processing each namespace."""
        looked, took, failures = time.monotonic(), 0.0, 0
        last = FIRST
        while not self._stopping.is_set():
            pause = max(LOOK_WITHOUT_HINTS, LOOKING * took) if failures else self._look_seconds
            if time.monotonic() - looked >= min(pause, self._look_seconds):
                began = time.monotonic()
                await self._reader.look()
                looked = time.monotonic()
                took = looked - began
            try:
                hints = await self._read_hints(last)
                failures = 0
            except KGMemoryError as error:
                last = FIRST  # the stream may have been deleted and created again
                failures += 1
                logger.warning("cannot read hints; retry in %.1f s: %s", pause_after(failures), describe_error(error))
                await asyncio.sleep(pause_after(failures))
                continue
            for last, namespace in hints:  # noqa: B007 - `last` keeps the id of the last hint
                if namespace == FORGOTTEN:
                    await asyncio.to_thread(clear_all_caches)
                else:
                    self._reader.wake(namespace)

    async def _read_hints(self, last: str) -> list[tuple[str, str]]:
        """Return the entries of the Redis stream after the id *last*: ``[("1715679000000-0", "ann")]``.

        Errors: `DatabaseUnavailable`.
        """
        words = ("XREAD", "COUNT", AT_ONCE, "BLOCK", 500, "STREAMS", STREAM, last)
        try:
            async with asyncio.timeout(ANSWERED_IN):
                answer = await self._database.acommand(*words, at=STREAM)
        except TimeoutError:
            raise DatabaseUnavailable("the database server does not answer: start it, or check its URL") from None
        hints = (hint for _, own in _pairs(answer) for hint in own)
        return [(id_, dict(_pairs(fields))[FIELD]) for id_, fields in hints]


def _pairs(answer: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the (key, value) pairs of *answer*, a map in a Redis reply."""
    if isinstance(answer, Mapping):
        yield from answer.items()
    elif answer and isinstance(answer[0], str):
        yield from zip(answer[::2], answer[1::2], strict=True)
    else:
        yield from answer or ()


def run_worker(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory worker``, which reads queued messages, until SIGINT or SIGTERM; return the exit code."""
    at_once = validate_count("at_once", arguments.at_once)
    with open_memory(arguments, screen, serves=True) as memory:
        screen.note("Reading saved episodes in all namespaces; Ctrl-C stops.")
        asyncio.run(_work(memory, at_once))
    screen.note("Stopped. Unread episodes stay saved.")
    return 0


async def _work(memory: GraphMemory, at_once: int) -> None:
    """Run a worker until SIGINT, SIGTERM, or the end of the server that started this process."""
    worker, loop = Worker(memory, at_once), asyncio.get_running_loop()

    def stop_after(server: BaseProcess) -> None:
        server.join()
        loop.call_soon_threadsafe(worker.stop)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, worker.stop)
    if server := multiprocessing.parent_process():
        os.nice(LOWER_PRIORITY)
        Thread(target=stop_after, args=(server,), daemon=True).start()
    await worker.run()
