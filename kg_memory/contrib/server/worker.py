"""``kg-memory worker``: processes that read what servers save, as many as are needed.

A stream in the database has a hint for each namespace in which something was saved. Every worker follows it, and the
one that gets the lease on the namespace reads it; the others try again until the lease is free, so they go on where
that one is killed. Hints only make it fast: what is unread is known by the graphs themselves, and each worker looks
through them now and then.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from kg_memory.cli.command import open_memory
from kg_memory.cli.output import Screen
from kg_memory.contrib.leases import SECONDS, Leases
from kg_memory.contrib.server.reader import Reader, pause_after
from kg_memory.errors import DatabaseUnavailable, KGMemoryError
from kg_memory.falkor.connect import Database
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.telemetry import describe_error
from kg_memory.validation import validate_count

logger = logging.getLogger("kg_memory.contrib.server")

STREAM, FIELD = "kg-saved", "namespace"
FIRST = "0-0"
"""The id before that of any hint."""
LONGEST, KEPT_SECONDS = 10_000, 600
"""Hints that the stream keeps, about, and seconds after the last one in which it is there."""
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
                await self._database.acommand("EXPIRE", STREAM, KEPT_SECONDS, at=STREAM)
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
        self._reader = Reader(memory, at_once, Leases(self._database, lease_seconds))
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

    async def _follow(self) -> None:
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
                last = FIRST  # the stream may be another one by now
                failures += 1
                logger.warning("the worker looks again in %.1f s: %s", pause_after(failures), describe_error(error))
                await asyncio.sleep(pause_after(failures))
                continue
            for last, namespace in hints:  # noqa: B007 - the last one's id
                self._reader.wake(namespace)

    async def _read_hints(self, last: str) -> list[tuple[str, str]]:
        """Return the ids and the namespaces of the hints after *last*, as soon as there are some."""
        words = ("XREAD", "COUNT", AT_ONCE, "BLOCK", 500, "STREAMS", STREAM, last)
        try:
            async with asyncio.timeout(ANSWERED_IN):
                answer = await self._database.acommand(*words, at=STREAM)
        except TimeoutError:
            raise DatabaseUnavailable("the server of the workers' stream does not answer; see that it runs") from None
        hints = (hint for _, own in _pairs(answer) for hint in own)
        return [(id_, dict(_pairs(fields))[FIELD]) for id_, fields in hints]


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
