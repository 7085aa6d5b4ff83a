"""Values of one event loop or one process, objects that ``with`` blocks close, and calls with a time limit."""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, Generic, Protocol, Self, TypeVar
from weakref import WeakSet

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Stores one value for each asyncio event loop: `get` creates it by ``make()``; it is dropped with the loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # Not weak keys: most values refer to their loop, so a weak key would never be collected.
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """Return the value of the running event loop, creating it if necessary."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            for known_loop in list(self._values):
                if known_loop.is_closed():
                    self._values.pop(known_loop, None)
            self._values[loop] = self._make()
        return self._values[loop]

    def pop(self) -> T | None:
        """Remove and return the value of the running event loop, or None if it has none."""
        return self._values.pop(asyncio.get_running_loop(), None)

    def __len__(self) -> int:
        return len(self._values)


class Closing(ABC):
    """Base class of objects that are closed at the end of a ``with`` or ``async with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Close the object and release its resources."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the object and release its resources; for asyncio."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Forkable(Protocol):
    """Protocol of objects with locks, threads or connections, which a forked child process must create again."""

    def renew(self) -> None:
        """Create the locks, threads and connections again; called in a forked child process."""


_forkable: WeakSet[Forkable] = WeakSet()


def renew_in_children(value: Forkable) -> None:
    """Call ``value.renew()`` in each child process that this process forks later; the reference to *value* is weak."""
    _forkable.add(value)


def _renew_all() -> None:
    for value in list(_forkable):
        value.renew()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_all)


# Calls with a time limit

NO_THREADS = "interpreter shutdown"
"""A part of all errors that Python raises for a new thread while the process is ending."""


def run_within(seconds: float, function: Callable[[], Any]) -> Any:
    """Run *function* in a thread and return its result; raise `TimeoutError` after *seconds* without a result."""
    result: Future[Any] = Future()

    def work() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            result.set_exception(error)

    try:
        Thread(target=copy_context().run, args=(work,), daemon=True).start()
    except RuntimeError as error:
        if is_shutdown(error):
            return function()
        raise
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


async def await_within(seconds: float, coroutine: Callable[[], Awaitable[Any]]) -> Any:
    """Await *coroutine* and return its result; raise `TimeoutError` after *seconds* without a result."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await coroutine()
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def is_shutdown(error: BaseException | None) -> bool:
    """Return whether *error* was raised because the process is ending and cannot start threads any more."""
    return isinstance(error, RuntimeError) and NO_THREADS in str(error)
