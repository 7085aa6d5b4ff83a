"""Limits: requests a second of a key, its open streams and sessions, and expensive calls at once."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kg_memory.contrib.server.problems import ProblemError
from kg_memory.errors import InputError

T = TypeVar("T")
BURST = 4
MOST_BUCKETS = 10_000
STREAMS, SESSIONS, IMPORTS = "streams of events", "sessions", "imports"
SOON = {"Retry-After": "5"}
AT_ONCE = 4
"""The most expensive calls in all."""
WAIT = 2.0
"""Seconds for which an expensive call waits for its turn."""
BUSY = "the server is busy with calls like this one; try again later"


class RateLimit:
    """A bucket of tokens for each key: those of `BURST` seconds at once, and then *rate* a second."""

    def __init__(self, rate: float) -> None:
        if not 0 < rate < math.inf:
            raise InputError(f"rate must be a number of requests a second above 0, got {rate}")
        self._rate, self._burst = rate, max(1.0, rate * BURST)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a token of *name*; return 0, or after how many seconds there will be one."""
        now = time.monotonic()
        tokens, before = self._buckets.pop(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - before) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._buckets[name] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait


class Shares:
    """Counts what the keys have open, by kinds with the most of each for one key and for all."""

    def __init__(self, limits: Mapping[str, tuple[int, int]]) -> None:
        self._limits = limits
        self._open: Counter[tuple[str, str]] = Counter()
        self._all: Counter[str] = Counter()

    @contextmanager
    def hold(self, kind: str, key: str) -> Iterator[None]:
        """Count one more of *kind* for the *key* with that id. Raises `ProblemError` 429, or 503, above a limit."""
        self.check(kind, self._open[kind, key] + 1)
        if self._all[kind] >= self._limits[kind][1]:
            raise ProblemError(503, f"the server has too many {kind} open; try again later", headers=SOON)
        self._open[kind, key] += 1
        self._all[kind] += 1
        try:
            yield
        finally:
            self._open -= Counter([(kind, key)])  # without those that became zero
            self._all -= Counter([kind])

    def check(self, kind: str, wanted: int) -> None:
        """Raise `ProblemError` 429 where so many of *kind* are more than one key may have."""
        most = self._limits[kind][0]
        if wanted > most:
            raise ProblemError(429, f"a key may have at most {most} {kind} open; close some", headers=SOON)


class Held(Response):
    """Sends *response* while its *share* is held."""

    def __init__(self, response: Response, share: AbstractContextManager[Any]) -> None:
        self._response, self._share, self.background = response, share, None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise the `ProblemError` of the share."""
        with self._share:
            await self._response(scope, receive, send)


class StoppedError(Exception):
    """Nobody waits for the call any more."""


@dataclass(slots=True)
class Job:
    """A running call: what it was *asked*, and how many clients wait for it."""

    asked: Hashable
    task: asyncio.Future[Any] = field(init=False)
    stopped: threading.Event = field(default_factory=threading.Event)
    clients: int = 0

    def check(self, *_: object) -> None:
        """Raise `StoppedError` once nobody waits; a callback of progress, for calls in threads."""
        if self.stopped.is_set():
            raise StoppedError


class Jobs:
    """The expensive calls that run now."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    async def run(
        self, request: Request, namespace: str, asked: Hashable, call: Callable[[Job], Awaitable[T]], *, cancel: bool
    ) -> T:
        """Return the result of *call*, or of the running one that was *asked* the same.

        Once all its clients have left it is told to stop, or else may be *cancelled*, where it runs in no thread.
        Raises `ProblemError` 429 if another call keeps it waiting for `WAIT` seconds.
        """
        job = await self._find(namespace, asked)
        if job is None:
            job = self._jobs[namespace] = Job(asked)
            job.task = asyncio.ensure_future(call(job))
            job.task.add_done_callback(lambda task: self._end(namespace, task))
        job.clients += 1
        leaving = asyncio.create_task(_wait_until_left(request))
        try:
            await asyncio.wait((job.task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not job.task.done():
                raise ClientDisconnect
            result: T = await job.task
            return result
        finally:
            leaving.cancel()
            job.clients -= 1
            if not job.clients and not job.task.done():
                job.stopped.set()
                if cancel:
                    job.task.cancel()
                await asyncio.wait((job.task,))

    async def _find(self, namespace: str, asked: Hashable) -> Job | None:
        """Return the running call that was *asked* the same, or ``None`` once there is room for another."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + WAIT
        while True:
            job = self._jobs.get(namespace)
            if job and job.asked == asked and not job.stopped.is_set():
                return job
            if job is None and len(self._jobs) < AT_ONCE:
                return None
            others = [job.task] if job else [other.task for other in self._jobs.values()]
            if not (await asyncio.wait(others, timeout=latest - loop.time(), return_when=asyncio.FIRST_COMPLETED))[0]:
                raise ProblemError(429, BUSY, headers={"Retry-After": "1"})

    def _end(self, namespace: str, task: asyncio.Future[Any]) -> None:
        del self._jobs[namespace]
        if not task.cancelled():
            task.exception()  # or asyncio reports one for which no client waited


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
