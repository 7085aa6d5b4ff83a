"""How a test is written once and runs twice: a story of one store, driven by its sync and by its async verbs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, ClassVar, Literal

import pytest

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.sides import AsyncStore, MakeStore, Store, SyncStore

SideName = Literal["sync", "async"]
Story = Callable[[Any, Store], Coroutine[Any, Any, None]]

PROPERTY = "store conformance"
"""The name of the property by which a test's report tells its store, capability and side."""
NOT_DECLARED = "not declared"


class Stories:
    """Tests of one capability, each an ``async def test_...(self, store)``.

    A subclass names the capability, and the configuration of the store that its tests get:
    ``class Ranking(Stories, capability=Capability.VECTOR, index={...})``. A function in its place is given the test.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    """What the store can do; tests of anything else are skipped."""
    sides: ClassVar[frozenset[SideName]] = frozenset(("sync", "async"))
    """The verbs that the store has."""
    known_failures: ClassVar[Mapping[str, str]] = {}
    """Tests that fail, as ``test_...`` or ``test_...[sync]``, and why. One that passes after all fails."""
    shortest_ttl: ClassVar[float] = 0.02
    """Minutes after which the store can be relied on to have expired an item (and to have kept it half as long)."""
    callers: ClassVar[int] = 1000
    """How many there are at once in one event loop, doing six operations each; threads are a fifth of them."""
    title: ClassVar[str] = ""
    """The name of the store in reports, if it is not that of the class."""

    def __init_subclass__(
        cls, *, capability: Capability | None = None, also: tuple[Capability, ...] = (), **config: Any
    ) -> None:
        super().__init_subclass__()
        unknown = [name for name in cls.known_failures if not hasattr(cls, name.partition("[")[0])]
        if unknown:
            raise TypeError(f"known_failures of {cls.__name__} names no test: {', '.join(unknown)}; correct the names")
        if capability is not None:
            for name, story in list(vars(cls).items()):
                if name.startswith("test_"):
                    setattr(cls, name, _driven(story, (capability, *also), config))

    @pytest.fixture
    def make_store(self) -> MakeStore:
        """What makes the store: see the documentation of the package."""
        raise NotImplementedError(f"give {type(self).__name__} a fixture make_store that returns what makes the store")

    @pytest.fixture
    def make_async_store(self, make_store: MakeStore) -> MakeStore:
        """What makes the store for the async verbs, where it is not the same."""
        return make_store

    def sweep(self, store: Any) -> Any:
        """Delete what has expired, where the store does not do so by itself; may return an awaitable."""
        return store.sweep_ttl() if hasattr(store, "sweep_ttl") else None

    @pytest.fixture(params=["sync", "async"])
    def store(self, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Store]:
        """The store of the test, open and empty."""
        needs, given = request.function.needs, request.function.config
        config = {name: each(self) if callable(each) else each for name, each in given.items()}
        side: SideName = request.param
        record_property(PROPERTY, [self.title or type(self).__name__, needs[0].value, side])
        missing = [each.value for each in needs if each not in self.capabilities]
        if missing or side not in self.sides:
            pytest.skip(f"{NOT_DECLARED}: {', '.join(missing) or side}")
        with asyncio.Runner() as runner:
            store: Store
            if side == "sync":
                store = SyncStore(request.getfixturevalue("make_store"), config)
            else:
                store = AsyncStore(request.getfixturevalue("make_async_store"), config, runner)
            store.drive(store.open())
            yield store
            store.drive(store.close())


def _driven(story: Story, needs: tuple[Capability, ...], config: Mapping[str, Any]) -> Callable[[Any, Store], None]:
    """Return the test that drives *story* to its end."""

    @functools.wraps(story)
    def test(self: Stories, store: Store) -> None:
        side = "sync" if store.is_sync else "async"
        names = (story.__name__, f"{story.__name__}[{side}]")
        reason = next((self.known_failures[name] for name in names if name in self.known_failures), None)
        if reason is None:
            store.drive(story(self, store))
            return
        try:
            store.drive(story(self, store))
        except Exception:  # noqa: BLE001 - the store's own
            pytest.xfail(reason)
        pytest.fail(f"it passes now: take {story.__name__} out of known_failures")

    vars(test).update(needs=needs, config=config)
    return test
