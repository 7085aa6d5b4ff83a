"""``kg-memory worker``: processes that read what servers save, as many as are needed.

A stream in the database has a hint for each namespace in which something was saved. The workers are one consumer group:
each hint goes to one of them, and to another one if it ends before the namespace is read. Hints only make it fast: what
is unread is known by the graphs themselves, and each worker looks through them now and then.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kg_memory.cli.command import open_memory
from kg_memory.cli.output import Screen
from kg_memory.contrib.leases import SECONDS, Leases
from kg_memory.contrib.server.reader import Reader, pause_after
from kg_memory.errors import DatabaseUnavailable, KGMemoryError, QueryError
from kg_memory.falkor.connect import Database
from kg_memory.ingestion.interrupted import READER
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.telemetry import describe_error
from kg_memory.validation import validate_count

logger = logging.getLogger("kg_memory.contrib.server")

STREAM, GROUP, FIELD = "kg-saved", "workers", "namespace"
LONGEST = 100_000
"""Hints that the stream keeps, about."""
AT_ONCE = 100
"""Hints that a worker takes at once."""
LOOK_SECONDS, LOOK_WITHOUT_HINTS = 60.0, 5.0
"""Seconds after which a worker looks through all namespaces again, and while the server of the hints is away."""
ANSWERED_IN = 15.0
"""Seconds in which the server of the hints must answer."""
LOOKING = 10
"""It waits at least so many times as long as looking took."""
STOP_SECONDS = 30.0
"""Seconds in which a worker finishes what it reads when it is stopped."""


class Outbox:
    """Tells the workers in which namespaces something is saved; it stands in for a `Reader`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def start(self, only: str | None = None) -> None:
        """Do nothing: workers look for what is unread by themselves."""

    def wake(self, namespace: str) -> None:
        """Tell the workers that something is saved in *namespace*."""
        self._due[namespace] = None
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def stop(self, seconds: float) -> None:
        """Send what is not sent yet."""
        if self._sending is not None:
            await asyncio.wait((self._sending,), timeout=seconds)
            self._sending.cancel()

    async def _send(self) -> None:
        failures = 0
        while self._due:
            namespace = next(iter(self._due))
            del self._due[namespace]
            try:
                await self._database.acommand("XADD", STREAM, "MAXLEN", "~", LONGEST, "*", FIELD, namespace, at=STREAM)
            except DatabaseUnavailable as error:
                if not failures:
                    logger.warning("workers are told later: %s", describe_error(error))
                failures += 1
                self._due[namespace] = None
                await asyncio.sleep(pause_after(failures))
            except KGMemoryError as error:
                logger.warning("workers read what is saved when they look next: %s", describe_error(error))
            else:
                failures = 0


class Worker:
    """Reads what is saved in any namespace of *memory*'s database, *at_once* namespaces at a time, until stopped."""

    def __init__(
        self,
        memory: GraphMemory,
        at_once: int = 4,
        *,
        lease_seconds: float = SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._database: Database = memory.driver.store.database
        self._reader = Reader(memory, at_once, Leases(self._database, lease_seconds), self._settle)
        self._hints: defaultdict[str, list[str]] = defaultdict(list)
        """The ids of the hints by namespace, until what they tell of is read."""
        self._read: list[str] = []
        """The ids of hints of what is read."""
        self._patience = int(lease_seconds * 1000)
        self._look_seconds = look_seconds
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin to stop."""
        self._stopping.set()

    async def run(self) -> None:
        """Read until `stop`, then finish what is being read."""
        self._reader.start()
        following = asyncio.create_task(self._follow())
        await self._stopping.wait()
        await self._reader.stop(STOP_SECONDS)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        with suppress(KGMemoryError):
            await self._take_off()
            if not any(self._hints.values()):  # a consumer that is removed takes its hints along
                await self._do("XGROUP", "DELCONSUMER", STREAM, GROUP, READER.id)

    async def _follow(self) -> None:
        looked, took, failures = time.monotonic(), 0.0, 0
        grouped = False
        while not self._stopping.is_set():
            pause = max(LOOK_WITHOUT_HINTS, LOOKING * took) if failures else self._look_seconds
            if time.monotonic() - looked >= min(pause, self._look_seconds):
                began = time.monotonic()
                await self._reader.look()
                looked = time.monotonic()
                took = looked - began
            try:
                if not grouped:
                    await self._make_group()
                    grouped = True
                await self._take_off()
                left = await self._do("XAUTOCLAIM", STREAM, GROUP, READER.id, self._patience, "0-0", "COUNT", AT_ONCE)
                self._take(left[1])
                told = await self._do(
                    "XREADGROUP", "GROUP", GROUP, READER.id, "COUNT", AT_ONCE, "BLOCK", 500, "STREAMS", STREAM, ">"
                )
                for _, hints in _pairs(told):
                    self._take(hints)
                failures = 0
            except KGMemoryError as error:
                grouped = False  # the stream may be gone with the database
                failures += 1
                logger.warning("the worker looks again in %.1f s: %s", pause_after(failures), describe_error(error))
                await asyncio.sleep(pause_after(failures))

    async def _make_group(self) -> None:
        try:
            await self._do("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
        except QueryError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def _do(self, *words: str | int) -> Any:
        """Do a command on the stream, at the server that has it."""
        try:
            async with asyncio.timeout(ANSWERED_IN):
                return await self._database.acommand(*words, at=STREAM)
        except TimeoutError:
            raise DatabaseUnavailable("the server of the workers' stream does not answer; see that it runs") from None

    def _take(self, hints: Any) -> None:
        for id_, fields in hints:
            if fields is None:  # it was deleted meanwhile
                continue
            namespace = dict(_pairs(fields))[FIELD]
            if id_ not in self._hints[namespace]:
                self._hints[namespace].append(id_)
            self._reader.wake(namespace)

    @contextmanager
    def _settle(self, namespace: str) -> Iterator[None]:
        """Have the hints of *namespace* that came before it was read taken off the stream after that."""
        hints = self._hints.pop(namespace, [])
        try:
            yield
        except BaseException:
            self._hints[namespace] = [*hints, *self._hints[namespace]]
            raise
        self._read += hints

    async def _take_off(self) -> None:
        """Take hints of what is read off the stream."""
        while read := self._read[:AT_ONCE]:
            await self._do("XACK", STREAM, GROUP, *read)
            await self._do("XDEL", STREAM, *read)
            del self._read[: len(read)]


def _pairs(answer: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of a map, however the client or the version of the protocol gives it."""
    if isinstance(answer, Mapping):
        yield from answer.items()
    elif answer and isinstance(answer[0], str):
        yield from zip(answer[::2], answer[1::2], strict=True)
    else:
        yield from answer or ()


def run(arguments: Namespace, screen: Screen) -> int:
    """Read what is saved until the process is told to stop."""
    at_once = validate_count("at_once", arguments.at_once)
    with open_memory(arguments, screen) as memory:
        screen.note("Reading what is saved in any namespace; Ctrl-C ends it.")
        asyncio.run(_work(memory, at_once))
    screen.note("Stopped. What is not read yet stays saved.")
    return 0


async def _work(memory: GraphMemory, at_once: int) -> None:
    worker = Worker(memory, at_once)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, worker.stop)
    await worker.run()
