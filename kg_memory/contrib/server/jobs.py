"""Expensive calls: one at a time for each namespace, a few in all, and none whose clients have left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from kg_memory.contrib.server.problems import ProblemError

T = TypeVar("T")
AT_ONCE = 4
"""The most calls in all."""
WAIT = 2.0
"""Seconds for which a call waits for its turn."""
BUSY = "the server is busy with calls like this one; try again later"


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
