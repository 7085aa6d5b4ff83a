"""What callers on one event loop ask for at the same time is done in one go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from kg_memory.errors import DatabaseUnavailable, EmbeddingUnavailable
from kg_memory.runtime.lifecycle import PerLoop

T = TypeVar("T")
R = TypeVar("R")
MOST_AT_ONCE = 1000
FOR_ALL = (DatabaseUnavailable, EmbeddingUnavailable)
"""What concerns all: to try again for each would make the last wait for all before it."""


class Together(Generic[T, R]):
    """Hands what arrives while *do* is at work to it together, in the order of arrival, one time after the other.

    An error is only for the one whose own it is: the others are done again without it. So what is done must bear to
    be done twice.
    """

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._do = do
        self._lines: PerLoop[_Line[T, R]] = PerLoop(_Line)

    async def __call__(self, wants: Sequence[T]) -> Sequence[R]:
        """Return what becomes of *wants*."""
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
        wants = [want for each, _ in taken for want in each]
        try:
            results = list(await self._do(wants))
        except Exception as error:  # noqa: BLE001 - it is raised where it was caused
            if len(taken) > 1 and not isinstance(error, FOR_ALL):
                for one in taken:
                    await self._serve([one])
                return
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error)
            return
        for each, answer in taken:
            if not answer.done():
                answer.set_result(results[: len(each)])
            del results[: len(each)]


_Place = tuple[Sequence[T], "asyncio.Future[Sequence[R]]"]


class _Line(Generic[T, R]):
    """Those that wait on one event loop."""

    def __init__(self) -> None:
        self.waiting: list[_Place[T, R]] = []
        self.work: asyncio.Task[None] | None = None

    def take(self) -> list[_Place[T, R]]:
        """Take the first that wait, as many as are done in one go."""
        sizes = accumulate(len(wants) for wants, _ in self.waiting)
        count = max(1, sum(size <= MOST_AT_ONCE for size in sizes))
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken
