"""Limits of the server: requests per second, open streams and sessions of a key, and expensive calls at a time."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
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
ACTIVE = 1.0
"""Seconds for which an API key counts as active after a query."""
AT_ONCE = 4
"""The most expensive calls that run at the same time, for all namespaces."""
WAIT = 2.0
"""Seconds that an expensive call waits for its turn before it is rejected."""
BUSY = "the server is busy with expensive calls; try again later"


class RateLimit:
    """Limits each API key to *rate* requests per second on average; after a pause, a burst is allowed."""

    def __init__(self, rate: float) -> None:
        if not 0 < rate < math.inf:
            raise InputError(f"rate must be a finite number of requests per second above 0, got {rate}")
        self._rate, self._burst = rate, max(1.0, rate * BURST)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Count a request by *name*, the id of a key or an address.

        Return 0.0 if it is allowed, else the seconds to wait.
        """
        now = time.monotonic()
        tokens, before = self._buckets.pop(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - before) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._buckets[name] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait


class Turns:
    """Lets each of several active API keys run one query, or offline embedding of a question, at a time."""

    def __init__(self) -> None:
        self._keys: OrderedDict[str, tuple[float, asyncio.Lock]] = OrderedDict()
        """When each key was last active, and its turn; oldest first."""

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        """Context manager: wait for the turn of *key*, the id of an API key, and hold it while the body runs."""
        now = time.monotonic()
        _, turn = self._keys.pop(key, (now, asyncio.Lock()))
        other_used, _ = next(reversed(self._keys.values()), (-math.inf, turn))
        self._keys[key] = now, turn
        if len(self._keys) > MOST_BUCKETS:
            self._keys.popitem(last=False)
        async with turn if now - other_used < ACTIVE else nullcontext():
            yield


class Shares:
    """Limits the number of event streams, sessions and imports that are open at the same time."""

    def __init__(self, limits: Mapping[str, tuple[int, int]]) -> None:
        self._limits = limits
        self._open: Counter[tuple[str, str]] = Counter()
        self._all: Counter[str] = Counter()

    @contextmanager
    def hold(self, kind: str, key: str) -> Iterator[None]:
        """Context manager: while the body runs, count one more open *kind*, such as "sessions", for *key*.

        Errors: `ProblemError` 429 above the limit of one API key, 503 above the limit of all keys.
        """
        self.check(kind, self._open[kind, key] + 1)
        if self._all[kind] >= self._limits[kind][1]:
            raise ProblemError(503, f"the server has too many {kind} open; try again later", headers=SOON)
        self._open[kind, key] += 1
        self._all[kind] += 1
        try:
            yield
        finally:
            self._open -= Counter([(kind, key)])  # drops entries that reach zero
            self._all -= Counter([kind])

    def check(self, kind: str, wanted: int) -> None:
        """Raise `ProblemError` 429 if *wanted* exceeds the number of open *kind* ("sessions") allowed for one key."""
        most = self._limits[kind][0]
        if wanted > most:
            raise ProblemError(429, f"one key may have at most {most} {kind} open; close some first", headers=SOON)


class LimitedResponse(Response):
    """A response that counts against the client's limit of open requests until its last byte is sent."""

    def __init__(self, response: Response, share: AbstractContextManager[Any]) -> None:
        self._response, self._share, self.background = response, share, None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. If *share* raises a `ProblemError`, nothing is sent."""
        with self._share:
            await self._response(scope, receive, send)


class StoppedError(Exception):
    """Raised within an expensive call to stop it, after all clients that wait for its result have disconnected."""


@dataclass(slots=True)
class Job:
    """A running expensive call; several equal requests can share its result."""

    asked: Hashable
    task: asyncio.Future[Any] = field(init=False)
    stopped: threading.Event = field(default_factory=threading.Event)
    clients: int = 0

    def check(self, *_: object) -> None:
        """Raise `StoppedError` if all clients have disconnected. Calls in threads use this as progress callback."""
        if self.stopped.is_set():
            raise StoppedError


class Jobs:
    """Runs expensive calls, at most one at a time for each namespace and `AT_ONCE` in total."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    async def run(
        self, request: Request, namespace: str, asked: Hashable, call: Callable[[Job], Awaitable[T]], *, cancel: bool
    ) -> T:
        """Run *call* and return its result, or that of an equal call that is running in *namespace*.

        Errors: `ProblemError` 429 after `WAIT` seconds without a turn; `ClientDisconnect`.
        """
        job = await self._find(namespace, asked)
        if job is None:
            job = self._jobs[namespace] = Job(asked)
            job.task = asyncio.ensure_future(call(job))
            job.task.add_done_callback(lambda task: self._end(namespace, task))
        job.clients += 1
        leaving = asyncio.create_task(_wait_for_disconnect(request))
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
        """Return the running call in *namespace* that equals *asked*, or wait for a turn and return None.

        Errors: `ProblemError` 429 after `WAIT` seconds.
        """
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
            task.exception()  # marks it as retrieved: asyncio logs exceptions that no client has awaited


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
