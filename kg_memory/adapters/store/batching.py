"""Batch concurrent requests on an event loop, and sweep expired items on a thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Generic, TypeVar

from kg_memory.errors import DatabaseUnavailable, EmbeddingUnavailable, KGMemoryError
from kg_memory.runtime.lifecycle import PerLoop
from kg_memory.runtime.telemetry import describe_error

T = TypeVar("T")
R = TypeVar("R")
MOST_AT_ONCE = 1000
FOR_ALL = (DatabaseUnavailable, EmbeddingUnavailable)
"""Errors that fail the whole batch: retrying its requests one by one would make the last wait for all others."""


class Together(Generic[T, R]):
    """Hands what arrives while *do* is at work to it together, in the order of arrival, one time after the other.

    An error is only for the one whose own it is: the others are done again without it. So what is done must bear to
    be done twice.
    """

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._do = do
        self._lines: PerLoop[_Line[T, R]] = PerLoop(_Line)

    async def __call__(self, wants: Sequence[T]) -> Sequence[R]:
        """Return the results of *wants*, in order."""
        line = self._lines.get()
        answer: asyncio.Future[Sequence[R]] = asyncio.get_running_loop().create_future()
        line.waiting.append((wants, answer))
        if line.work is None:
            line.work = asyncio.create_task(self._work(line))
        return await answer

    async def _work(self, line: _Line[T, R]) -> None:
        taken: list[_Place[T, R]] = []
        try:
            while line.waiting:
                taken = line.take()
                await self._serve(taken)
        finally:
            line.work = None
            for _, answer in (*taken, *line.waiting):
                answer.cancel()  # where the loop ends; what was answered stays so
            line.waiting.clear()

    async def _serve(self, taken: Sequence[_Place[T, R]]) -> None:
        batch = [want for wants, _ in taken for want in wants]
        try:
            results = list(await self._do(batch))
        except Exception as error:  # noqa: BLE001 - it is raised where it was caused
            if len(taken) > 1 and not isinstance(error, FOR_ALL):
                for place in taken:
                    await self._serve([place])
                return
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error)
            return
        for wants, answer in taken:
            if not answer.done():
                answer.set_result(results[: len(wants)])
            del results[: len(wants)]


_Place = tuple[Sequence[T], "asyncio.Future[Sequence[R]]"]


class _Line(Generic[T, R]):
    """The requests that wait on one event loop."""

    def __init__(self) -> None:
        self.waiting: list[_Place[T, R]] = []
        self.work: asyncio.Task[None] | None = None

    def take(self) -> list[_Place[T, R]]:
        """Take the first requests, as many as one batch holds."""
        sizes = accumulate(len(wants) for wants, _ in self.waiting)
        count = max(1, sum(size <= MOST_AT_ONCE for size in sizes))
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


logger = logging.getLogger("kg_memory")
INTERVAL = 5.0
"""Minutes between two sweeps, where none are given."""


class Sweeper:
    """Calls *sweep* at a regular interval, on a daemon thread."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: Future[None] = Future()

    def start(self, minutes: float | None = None) -> Future[None]:
        """Begin; a second call changes nothing. The future is done when it ends; to cancel it is to `stop`."""
        if self._thread is not None and self._thread.is_alive() and not self._stopping.is_set():
            return self._ended
        stopping, ended = threading.Event(), Future[None]()
        ended.add_done_callback(lambda _: stopping.set())
        self._stopping, self._ended = stopping, ended
        arguments = ((minutes or INTERVAL) * 60, stopping, ended)
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True, name="kg-memory-sweeper")
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread; return whether it ended within *timeout* seconds."""
        if self._thread is None:
            return True
        self._stopping.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self, seconds: float, stopping: threading.Event, ended: Future[None]) -> None:
        try:
            while not stopping.wait(seconds):
                try:
                    self._sweep()
                except KGMemoryError as error:
                    logger.warning("expired items could not be deleted, trying again later: %s", describe_error(error))
        finally:
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)
