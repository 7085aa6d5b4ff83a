"""Items that expire. A ttl is in minutes and may be a fraction."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("cache",)
SAFE, EXPIRED = 0.6, 1.25
"""Fractions of a ttl: before SAFE an item must exist, after EXPIRED it must not."""
MAX_SLOWDOWN = 64
"""The largest factor that lengthens a ttl on a machine that is too slow for a short one."""

Touch = Callable[[], Awaitable[Any]]


class ExpiryChecks(Checks):
    """Waiting for items to expire."""

    async def wait(self, store: Store, ttls: float) -> None:
        """Wait for *ttls* times the shortest ttl, then have expired items deleted."""
        await store.sleep(ttls * self.shortest_ttl * 60)
        sweep = self.sweep(store.raw)
        if inspect.isawaitable(sweep):
            await sweep

    async def survives(self, store: Store, touch: Touch) -> bool:
        """Return whether an item outlives its ttl if *touch* is called meanwhile; retry with a longer ttl if slow."""
        factor = 1
        while True:
            ttl_seconds = factor * self.shortest_ttl * 60
            start = time.monotonic()
            await store.put(HOME, "item", {"n": 1}, ttl=factor * self.shortest_ttl)
            await self.wait(store, factor * SAFE)
            before = time.monotonic()
            await touch()
            after = time.monotonic()
            await self.wait(store, factor * (EXPIRED - SAFE))
            item = await store.get(HOME, "item")
            slowest = max(after - start, time.monotonic() - before)
            if item or slowest < ttl_seconds or factor >= MAX_SLOWDOWN:
                return item is not None
            factor *= 4


class ItemTTL(ExpiryChecks, capability=Capability.TTL, ttl={"refresh_on_read": True, "omit_expired": True}):
    """A ttl of one item."""

    async def test_a_store_with_ttl_says_so(self, store: Store) -> None:
        assert store.raw.supports_ttl

    async def test_an_expired_item_is_gone_for_every_reader(self, store: Store) -> None:
        for namespace in (HOME, ("short",)):
            await store.put(namespace, "short", {"n": 1}, ttl=self.shortest_ttl)
        await store.put(HOME, "long", {"n": 1}, ttl=60)
        await store.put(HOME, "ever", {"n": 1})
        await store.put(HOME, "never", {"n": 1}, ttl=None)
        await self.wait(store, EXPIRED)
        assert sorted(await store.search_keys(())) == ["ever", "long", "never"]
        assert sorted(await store.search_keys(HOME, filter={"n": 1}, limit=3)) == ["ever", "long", "never"]
        assert await store.get(HOME, "short") is None
        assert await store.list_namespaces() == [HOME]

    async def test_a_get_lets_an_item_live_on(self, store: Store) -> None:
        assert await self.survives(store, lambda: store.get(HOME, "item"))

    async def test_a_search_lets_what_it_finds_live_on(self, store: Store) -> None:
        assert await self.survives(store, lambda: store.search(HOME))

    async def test_a_put_begins_a_new_ttl(self, store: Store) -> None:
        assert await self.survives(store, lambda: store.put(HOME, "item", {"n": 2}, ttl=10))

    async def test_reads_that_say_so_do_not_let_an_item_live_on(self, store: Store) -> None:
        async def read() -> None:
            await store.get(HOME, "item", refresh_ttl=False)
            await store.search(HOME, refresh_ttl=False)

        assert not await self.survives(store, read)

    async def test_a_put_without_a_ttl_ends_the_former_one(self, store: Store) -> None:
        await store.put(HOME, "item", {"n": 1}, ttl=self.shortest_ttl)
        await store.put(HOME, "item", {"n": 2})
        await self.wait(store, EXPIRED)
        assert await store.get(HOME, "item") is not None

    async def test_an_item_that_is_put_again_after_its_expiry_is_new(self, store: Store) -> None:
        await store.put(HOME, "item", {"n": 1})
        first = await store.get(HOME, "item")
        await store.put(HOME, "item", {"n": 1}, ttl=self.shortest_ttl)
        await self.wait(store, EXPIRED)
        await store.put(HOME, "item", {"n": 2})
        second = await store.get(HOME, "item")
        assert first is not None
        assert second is not None
        assert second.created_at > first.created_at


class DefaultTTL(
    ExpiryChecks,
    capability=Capability.TTL,
    ttl=lambda checks: {"default_ttl": checks.shortest_ttl, "omit_expired": True},
):
    """A configured ttl for all items."""

    async def test_the_default_ttl_is_for_items_without_one(self, store: Store) -> None:
        await store.put(HOME, "default", {"n": 1})
        await store.put(HOME, "long", {"n": 1}, ttl=60)
        await store.put(HOME, "never", {"n": 1}, ttl=None)
        await self.wait(store, EXPIRED)
        assert sorted(await store.search_keys(HOME)) == ["long", "never"]


class UnrefreshedTTL(ExpiryChecks, capability=Capability.TTL, ttl={"refresh_on_read": False, "omit_expired": True}):
    """Reads that do not refresh a ttl, by configuration."""

    async def test_reads_do_not_let_an_item_live_on_where_so_configured(self, store: Store) -> None:
        async def read() -> None:
            await store.get(HOME, "item")
            await store.search(HOME)

        assert not await self.survives(store, read)

    async def test_a_read_may_let_an_item_live_on_all_the_same(self, store: Store) -> None:
        assert await self.survives(store, lambda: store.get(HOME, "item", refresh_ttl=True))
