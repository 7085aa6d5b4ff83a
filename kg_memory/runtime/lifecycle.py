"""Values that belong to one event loop, one process or one ``with`` block; the bounded cache, and the clock."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, Protocol, Self, TypeVar
from weakref import WeakSet

SET_BACK = 1_000_000
"""Microseconds by which the system's clock goes back where it was set, and not merely corrected."""
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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


class Cache(Protocol):
    """Holds texts of users in memory."""

    def clear(self) -> None:
        """Keep none of them any more."""


_caches: WeakSet[Cache] = WeakSet()


def clear_with_all(cache: Cache) -> None:
    """Have *cache* cleared when something is forgotten, while it is alive."""
    _caches.add(cache)


def clear_caches() -> int:
    """Clear every cache and buffer of users' texts of this process, and return how many there are."""
    caches = list(_caches)
    for cache in caches:
        cache.clear()
    return len(caches)


def _renew_all() -> None:
    for value in list(_forkable):
        value.renew()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_all)


class BoundedCache(Generic[K, V]):
    """The latest values by key, *limit* at most; cleared when something is forgotten, if they are *texts* of users."""

    def __init__(self, limit: int, *, texts: bool = True) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self.renew()
        renew_in_children(self)
        if texts:
            clear_with_all(self)

    def renew(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()

    def get(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of *keys* that have one."""
        if not self._values:
            return {}
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
            for key in values:
                self._values.move_to_end(key)
            return values

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of *key*, which *make* makes if there is none."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            self._drop_oldest()
            return self._values[key]

    def pop(self, key: K) -> V | None:
        """Drop the value of *key* and return it."""
        with self._lock:
            return self._values.pop(key, None)

    def put(self, values: Mapping[K, V]) -> None:
        """Keep *values*, and drop the oldest above the limit."""
        with self._lock:
            self._values.update(values)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


class Clock:
    """The system's clock in microseconds, made strictly increasing: what is recorded later has a later time.

    If the system's clock is set back, it therefore stays ahead; `today` does not.
    """

    def __init__(self) -> None:
        self._last = self._today = 0
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last

    def today(self) -> int:
        """Return the time by which new messages are dated: it increases too, unless the clock is set back by far."""
        with self._lock:
            time_now = time.time_ns() // 1000
            self._today = time_now if self._today - time_now > SET_BACK else max(self._today + 1, time_now)
            return self._today
