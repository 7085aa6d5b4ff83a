"""A store as the tests see it: one set of awaitable verbs, behind which are the sync or the async ones."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Item, Op, SearchItem

Namespace = tuple[str, ...]
MakeStore = Callable[..., Any]
"""Called with ``index=``, ``ttl=`` or neither; returns a `BaseStore`, or a context manager of one."""
T = TypeVar("T")

THREADS = 16


class Store(ABC):
    """The verbs of a store that is open."""

    is_sync = True

    def __init__(self, make: MakeStore, config: Mapping[str, Any]) -> None:
        self._make = make
        self._config = config
        self.raw: BaseStore
        """The store itself."""

    @abstractmethod
    async def get(self, namespace: Namespace, key: str, **more: Any) -> Item | None: ...

    @abstractmethod
    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **more: Any) -> None: ...

    @abstractmethod
    async def delete(self, namespace: Namespace, key: str) -> None: ...

    @abstractmethod
    async def search(self, prefix: Namespace, **more: Any) -> list[SearchItem]: ...

    @abstractmethod
    async def list_namespaces(self, **more: Any) -> list[Namespace]: ...

    @abstractmethod
    async def batch(self, ops: Iterable[Op]) -> list[Any]: ...

    @abstractmethod
    async def together(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Return the results of *calls*, done at once: in threads, or by one gather."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def drive(self, story: Coroutine[Any, Any, T]) -> T:
        """Run *story* to its end, and return its result."""

    async def reopen(self) -> None:
        """Close the store, and make it again."""
        await self.close()
        await self.open()

    async def keys(self, prefix: Namespace, **more: Any) -> list[str]:
        """Return the keys that a search finds, in its order."""
        return [each.key for each in await self.search(prefix, **more)]


class SyncStore(Store):
    """The sync verbs. Nothing here ever waits for an event loop, so that a story runs through in one step."""

    async def get(self, namespace: Namespace, key: str, **more: Any) -> Item | None:
        return self.raw.get(namespace, key, **more)

    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **more: Any) -> None:
        self.raw.put(namespace, key, value, **more)

    async def delete(self, namespace: Namespace, key: str) -> None:
        self.raw.delete(namespace, key)

    async def search(self, prefix: Namespace, **more: Any) -> list[SearchItem]:
        return self.raw.search(prefix, **more)

    async def list_namespaces(self, **more: Any) -> list[Namespace]:
        return self.raw.list_namespaces(**more)

    async def batch(self, ops: Iterable[Op]) -> list[Any]:
        return self.raw.batch(ops)

    async def together(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self.drive, calls))

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop

    async def open(self) -> None:
        self._stack = ExitStack()
        made = self._make(**self._config)
        self.raw = self._stack.enter_context(made) if hasattr(made, "__enter__") else made

    async def close(self) -> None:
        self._stack.close()

    def drive(self, story: Coroutine[Any, Any, T]) -> T:
        try:
            story.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        story.close()
        raise RuntimeError("a sync story must not wait for an event loop: await the verbs of the store alone")


class AsyncStore(Store):
    """The async verbs, all of a test in one event loop."""

    is_sync = False

    def __init__(self, make: MakeStore, config: Mapping[str, Any], runner: asyncio.Runner) -> None:
        super().__init__(make, config)
        self._runner = runner

    async def get(self, namespace: Namespace, key: str, **more: Any) -> Item | None:
        return await self.raw.aget(namespace, key, **more)

    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **more: Any) -> None:
        await self.raw.aput(namespace, key, value, **more)

    async def delete(self, namespace: Namespace, key: str) -> None:
        await self.raw.adelete(namespace, key)

    async def search(self, prefix: Namespace, **more: Any) -> list[SearchItem]:
        return await self.raw.asearch(prefix, **more)

    async def list_namespaces(self, **more: Any) -> list[Namespace]:
        return await self.raw.alist_namespaces(**more)

    async def batch(self, ops: Iterable[Op]) -> list[Any]:
        return await self.raw.abatch(ops)

    async def together(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        return await asyncio.gather(*calls)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        made = self._make(**self._config)
        if hasattr(made, "__aenter__"):
            made = await self._stack.enter_async_context(made)
        elif hasattr(made, "__enter__"):
            made = self._stack.enter_context(made)
        self.raw = made

    async def close(self) -> None:
        await self._stack.aclose()

    def drive(self, story: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(story)
