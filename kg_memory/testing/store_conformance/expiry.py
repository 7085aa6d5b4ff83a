"""Items that expire. A ttl is told in minutes; fractions count."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.sides import Namespace, Store
from kg_memory.testing.store_conformance.stories import Stories

HOME: Namespace = ("cache",)
KEPT, GONE = 0.6, 1.25
"""Parts of a ttl: after the one an item is there for sure, after the other it is gone."""
LONGEST = 64
"""How many times longer a ttl becomes on a machine that is too slow for a short one."""

Touch = Callable[[], Awaitable[Any]]


class Expiring(Stories):
    """How these tests wait."""

    async def wait(self, store: Store, ttls: float) -> None:
        """Let *ttls* times the shortest ttl go by, and what has expired be deleted."""
        await store.sleep(ttls * self.shortest_ttl * 60)
        swept = self.sweep(store.raw)
        if inspect.isawaitable(swept):
            await swept

    async def outlives(self, store: Store, touch: Touch) -> bool:
        """Tell whether an item that *touch* touches on the way is there after more than its ttl."""
        times = 1
        while True:
            begun = time.monotonic()
            await store.put(HOME, "item", {"n": 1}, ttl=times * self.shortest_ttl)
            await self.wait(store, times * KEPT)
            before = time.monotonic()
            await touch()
            after = time.monotonic()
            await self.wait(store, times * (GONE - KEPT))
            found = await store.get(HOME, "item")
            slowest = max(after - begun, time.monotonic() - before)
            if found or slowest < times * self.shortest_ttl * 60 or times >= LONGEST:
                return found is not None
            times *= 4


class Expiry(Expiring, capability=Capability.TTL, ttl={"refresh_on_read": True, "omit_expired": True}):
    """A ttl of an item's own."""

    async def test_a_store_with_ttl_says_so(self, store: Store) -> None:
        assert store.raw.supports_ttl

    async def test_an_expired_item_is_gone_for_every_reader(self, store: Store) -> None:
        for place in (HOME, ("short",)):
            await store.put(place, "short", {"n": 1}, ttl=self.shortest_ttl)
        await store.put(HOME, "long", {"n": 1}, ttl=60)
        await store.put(HOME, "ever", {"n": 1})
        await store.put(HOME, "never", {"n": 1}, ttl=None)
        await self.wait(store, GONE)
        assert sorted(await store.keys(())) == ["ever", "long", "never"]
        assert sorted(await store.keys(HOME, filter={"n": 1}, limit=3)) == ["ever", "long", "never"]
        assert await store.get(HOME, "short") is None
        assert await store.list_namespaces() == [HOME]

    async def test_a_get_lets_an_item_live_on(self, store: Store) -> None:
        assert await self.outlives(store, lambda: store.get(HOME, "item"))

    async def test_a_search_lets_what_it_finds_live_on(self, store: Store) -> None:
        assert await self.outlives(store, lambda: store.search(HOME))

    async def test_a_put_begins_a_new_ttl(self, store: Store) -> None:
        assert await self.outlives(store, lambda: store.put(HOME, "item", {"n": 2}, ttl=10))

    async def test_reads_that_say_so_do_not_let_an_item_live_on(self, store: Store) -> None:
        async def look() -> None:
            await store.get(HOME, "item", refresh_ttl=False)
            await store.search(HOME, refresh_ttl=False)

        assert not await self.outlives(store, look)

    async def test_a_put_without_a_ttl_ends_the_former_one(self, store: Store) -> None:
        await store.put(HOME, "item", {"n": 1}, ttl=self.shortest_ttl)
        await store.put(HOME, "item", {"n": 2})
        await self.wait(store, GONE)
        assert await store.get(HOME, "item") is not None

    async def test_an_item_that_is_put_again_after_its_expiry_is_new(self, store: Store) -> None:
        await store.put(HOME, "item", {"n": 1})
        first = await store.get(HOME, "item")
        await store.put(HOME, "item", {"n": 1}, ttl=self.shortest_ttl)
        await self.wait(store, GONE)
        await store.put(HOME, "item", {"n": 2})
        second = await store.get(HOME, "item")
        assert first is not None
        assert second is not None
        assert second.created_at > first.created_at


class DefaultExpiry(
    Expiring, capability=Capability.TTL, ttl=lambda suite: {"default_ttl": suite.shortest_ttl, "omit_expired": True}
):
    """A ttl for all items, by the configuration."""

    async def test_the_default_ttl_is_for_items_without_one(self, store: Store) -> None:
        await store.put(HOME, "default", {"n": 1})
        await store.put(HOME, "long", {"n": 1}, ttl=60)
        await store.put(HOME, "never", {"n": 1}, ttl=None)
        await self.wait(store, GONE)
        assert sorted(await store.keys(HOME)) == ["long", "never"]


class UnrefreshedExpiry(Expiring, capability=Capability.TTL, ttl={"refresh_on_read": False, "omit_expired": True}):
    """Reads that do not count, by the configuration."""

    async def test_reads_do_not_let_an_item_live_on_where_so_configured(self, store: Store) -> None:
        async def look() -> None:
            await store.get(HOME, "item")
            await store.search(HOME)

        assert not await self.outlives(store, look)

    async def test_a_read_may_let_an_item_live_on_all_the_same(self, store: Store) -> None:
        assert await self.outlives(store, lambda: store.get(HOME, "item", refresh_ttl=True))
