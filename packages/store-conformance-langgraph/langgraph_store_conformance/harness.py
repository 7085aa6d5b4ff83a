"""Run every check twice: on the sync methods of a store and on its async methods."""

from __future__ import annotations

import asyncio
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeVar

import pytest
from langgraph.store.base import BaseStore, Item, Op, SearchItem

T = TypeVar("T")
Mode = Literal["sync", "async"]
Namespace = tuple[str, ...]
StoreFactory = Callable[..., Any]
"""Called with ``index=``, ``ttl=`` or neither; returns a `BaseStore` or a context manager of one."""
Check = Callable[[Any, "Store"], Coroutine[Any, Any, None]]

THREADS = 16
REPORT_PROPERTY = "store conformance"
"""The pytest user property that holds the store, the capability and the mode of a check."""
NOT_DECLARED = "not declared"


class Capability(StrEnum):
    """A part of the store contract: declared, tested and reported as a whole."""

    BASIC = "basic"
    """Get, put, delete, search without a query, and batches."""
    VALUES = "values"
    """JSON values round-trip, and are copied in and out."""
    TIMESTAMPS = "timestamps"
    """`created_at` and `updated_at`."""
    NAMESPACES = "namespaces"
    """Prefixes of whole labels; listing with wildcards, depth and pages."""
    FILTERS = "filters"
    """Equality and comparison of fields."""
    HOSTILE = "hostile"
    """Odd names and values are stored unchanged or refused, and do no harm."""
    VECTOR = "vector"
    """Ranking by cosine similarity: `make_store` takes ``index=``."""
    VECTOR_FIELDS = "vector fields"
    """Embedding of fields by path, and several vectors for one item."""
    TTL = "ttl"
    """Items that expire: `make_store` takes ``ttl=``."""
    CONCURRENCY = "concurrency"
    """Many concurrent callers."""
    PERSISTENCE = "persistence"
    """A reopened store has its data."""

    @classmethod
    def all_but(cls, *missing: Capability) -> frozenset[Capability]:
        """Return every capability except *missing*."""
        return frozenset(cls) - frozenset(missing)


class Store(ABC):
    """A store under test. Its methods are awaitable whether they call sync or async methods of the store."""

    mode: ClassVar[Mode]

    def __init__(self, make_store: StoreFactory, config: Mapping[str, Any]) -> None:
        self._make_store = make_store
        self._config = config
        self.raw: BaseStore
        """The store itself, once it is open."""

    @abstractmethod
    async def get(self, namespace: Namespace, key: str, **options: Any) -> Item | None: ...

    @abstractmethod
    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **options: Any) -> None: ...

    @abstractmethod
    async def delete(self, namespace: Namespace, key: str) -> None: ...

    @abstractmethod
    async def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]: ...

    @abstractmethod
    async def list_namespaces(self, **options: Any) -> list[Namespace]: ...

    @abstractmethod
    async def batch(self, ops: Iterable[Op]) -> list[Any]: ...

    @abstractmethod
    async def run_concurrently(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run *calls* in threads, or in one `asyncio.gather`, and return their results in order."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run *coroutine* to its end and return its result."""

    async def reopen(self) -> None:
        """Close the store and make it again."""
        await self.close()
        await self.open()

    async def search_keys(self, prefix: Namespace, **options: Any) -> list[str]:
        """Search, and return the keys of the items in order."""
        return [item.key for item in await self.search(prefix, **options)]


class SyncStore(Store):
    """Calls the sync methods. It never waits for an event loop, so a check runs in one step."""

    mode = "sync"

    async def get(self, namespace: Namespace, key: str, **options: Any) -> Item | None:
        return self.raw.get(namespace, key, **options)

    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **options: Any) -> None:
        self.raw.put(namespace, key, value, **options)

    async def delete(self, namespace: Namespace, key: str) -> None:
        self.raw.delete(namespace, key)

    async def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]:
        return self.raw.search(prefix, **options)

    async def list_namespaces(self, **options: Any) -> list[Namespace]:
        return self.raw.list_namespaces(**options)

    async def batch(self, ops: Iterable[Op]) -> list[Any]:
        return self.raw.batch(ops)

    async def run_concurrently(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self.run, calls))

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop

    async def open(self) -> None:
        self._stack = ExitStack()
        store = self._make_store(**self._config)
        self.raw = self._stack.enter_context(store) if hasattr(store, "__enter__") else store

    async def close(self) -> None:
        self._stack.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        coroutine.close()
        raise RuntimeError("a check must not wait for an event loop in sync mode; await only methods of its store")


class AsyncStore(Store):
    """Calls the async methods, all of one check in one event loop."""

    mode = "async"

    def __init__(self, make_store: StoreFactory, config: Mapping[str, Any], runner: asyncio.Runner) -> None:
        super().__init__(make_store, config)
        self._runner = runner

    async def get(self, namespace: Namespace, key: str, **options: Any) -> Item | None:
        return await self.raw.aget(namespace, key, **options)

    async def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **options: Any) -> None:
        await self.raw.aput(namespace, key, value, **options)

    async def delete(self, namespace: Namespace, key: str) -> None:
        await self.raw.adelete(namespace, key)

    async def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]:
        return await self.raw.asearch(prefix, **options)

    async def list_namespaces(self, **options: Any) -> list[Namespace]:
        return await self.raw.alist_namespaces(**options)

    async def batch(self, ops: Iterable[Op]) -> list[Any]:
        return await self.raw.abatch(ops)

    async def run_concurrently(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        return await asyncio.gather(*calls)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        store = self._make_store(**self._config)
        if hasattr(store, "__aenter__"):
            store = await self._stack.enter_async_context(store)
        elif hasattr(store, "__enter__"):
            store = self._stack.enter_context(store)
        self.raw = store

    async def close(self) -> None:
        await self._stack.aclose()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)


class Checks:
    """Checks of one capability, each an ``async def test_...(self, store)``.

    A subclass names its capability and configures its store:
    ``class Ranking(Checks, capability=Capability.VECTOR, index={...})``.
    A configuration may also be a function of the test instance.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    """What the store supports; the checks of all other capabilities are skipped."""
    modes: ClassVar[frozenset[Mode]] = frozenset(("sync", "async"))
    """Which methods the store has."""
    expected_failures: ClassVar[Mapping[str, str]] = {}
    """Why a check fails, by ``test_...`` or ``test_...[sync]``. A check that is listed here and passes is an error."""
    shortest_ttl: ClassVar[float] = 0.02
    """The shortest ttl, in minutes, that the store expires on time."""
    callers: ClassVar[int] = 1000
    """The number of concurrent callers in an event loop; a fifth of them run in threads."""
    title: ClassVar[str] = ""
    """The name of the store in reports; the name of the test class by default."""

    def __init_subclass__(
        cls, *, capability: Capability | None = None, requires: tuple[Capability, ...] = (), **config: Any
    ) -> None:
        super().__init_subclass__()
        unknown = [name for name in cls.expected_failures if not hasattr(cls, name.partition("[")[0])]
        if unknown:
            raise TypeError(f"{cls.__name__}.expected_failures must name checks, got {', '.join(unknown)}")
        if capability is None:
            return
        for name, check in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, _make_test(check, (capability, *requires), config))

    @pytest.fixture
    def make_store(self) -> StoreFactory:
        """Return a factory of the store: see the documentation of the package."""
        raise NotImplementedError(f"{type(self).__name__} must have a fixture make_store that returns a store factory")

    @pytest.fixture
    def make_async_store(self, make_store: StoreFactory) -> StoreFactory:
        """Return a factory of the async store, where it is another class."""
        return make_store

    def sweep(self, store: Any) -> Any:
        """Delete expired items, if the store does not do so by itself; may return an awaitable."""
        return store.sweep_ttl() if hasattr(store, "sweep_ttl") else None

    @pytest.fixture(params=["sync", "async"])
    def store(self, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Store]:
        """Open an empty store."""
        required: tuple[Capability, ...] = request.function.capabilities
        mode: Mode = request.param
        record_property(REPORT_PROPERTY, [self.title or type(self).__name__, required[0].value, mode])
        missing = [capability.value for capability in required if capability not in self.capabilities]
        if missing or mode not in self.modes:
            pytest.skip(f"{NOT_DECLARED}: {', '.join(missing) or mode}")
        config = resolve_config(self, request.function.config)
        with asyncio.Runner() as runner:
            store: Store
            if mode == "sync":
                store = SyncStore(request.getfixturevalue("make_store"), config)
            else:
                store = AsyncStore(request.getfixturevalue("make_async_store"), config, runner)
            store.run(store.open())
            yield store
            store.run(store.close())


def resolve_config(checks: Checks, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a store, with functions of the test instance replaced by their results."""
    return {name: value(checks) if callable(value) else value for name, value in config.items()}


def _make_test(
    check: Check, capabilities: tuple[Capability, ...], config: Mapping[str, Any]
) -> Callable[[Any, Store], None]:
    """Return the test function that runs *check*; an expected failure becomes an xfail."""

    @functools.wraps(check)
    def test(self: Checks, store: Store) -> None:
        names = (check.__name__, f"{check.__name__}[{store.mode}]")
        reason = next((self.expected_failures[name] for name in names if name in self.expected_failures), None)
        if reason is None:
            store.run(check(self, store))
            return
        try:
            store.run(check(self, store))
        except Exception:  # noqa: BLE001 - a store may raise anything
            pytest.xfail(reason)
        pytest.fail(f"{check.__name__} passes: remove it from expected_failures")

    vars(test).update(capabilities=capabilities, config=config)
    return test
