"""Values that belong to one event loop, one process or one ``with`` block."""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar
from weakref import WeakSet

T = TypeVar("T")


class PerLoop(Generic[T]):
    """A value for each event loop, made at its first use there; those of closed loops are dropped."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # Not weak: what is used on a loop mostly refers to it, so its weak key would never go.
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """Return the value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            for known_loop in list(self._values):
                if known_loop.is_closed():
                    self._values.pop(known_loop, None)
            self._values[loop] = self._make()
        return self._values[loop]

    def pop(self) -> T | None:
        """Drop the value of the running loop and return it."""
        return self._values.pop(asyncio.get_running_loop(), None)

    def __len__(self) -> int:
        return len(self._values)


class Closing(ABC):
    """Closed by a ``with`` block at its end, sync or async."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what was opened."""

    @abstractmethod
    async def aclose(self) -> None:
        """`close`, for asyncio."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Forkable(Protocol):
    """Cannot be used by a forked child as it is: locks may be held there for ever, and threads are dead."""

    def renew(self) -> None:
        """Make anew what the child cannot share with its parent."""


_forkable: WeakSet[Forkable] = WeakSet()


def renew_in_children(value: Forkable) -> None:
    """Call `renew` of *value* in every child that this process forks, while *value* is alive."""
    _forkable.add(value)


def _renew_all() -> None:
    for value in list(_forkable):
        value.renew()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_all)
