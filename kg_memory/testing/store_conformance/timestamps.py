"""When an item was made, and when it was last put."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from langgraph.store.base import Item

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.sides import Store
from kg_memory.testing.store_conformance.stories import Stories

HOME, KEY = ("times",), "clock"
SLACK = timedelta(seconds=2)
"""Between the clock of the test and the one of the store."""


async def _put(store: Store, number: int) -> Item:
    await store.put(HOME, KEY, {"number": number})
    item = await store.get(HOME, KEY)
    assert item is not None
    return item


class Timestamps(Stories, capability=Capability.TIMESTAMPS):
    """Both are instants, so they have a time zone."""

    async def test_timestamps_are_instants_of_now(self, store: Store) -> None:
        before = datetime.now(UTC)
        item = await _put(store, 1)
        after = datetime.now(UTC)
        for each in (item.created_at, item.updated_at):
            assert each.tzinfo is not None
            assert before - SLACK <= each <= after + SLACK

    async def test_created_at_is_kept_when_an_item_is_put_again(self, store: Store) -> None:
        first = await _put(store, 1)
        second = await _put(store, 2)
        assert second.created_at == first.created_at

    async def test_updated_at_grows_with_every_put(self, store: Store) -> None:
        stamps = [(await _put(store, number)).updated_at for number in range(5)]
        assert stamps == sorted(set(stamps))

    async def test_updated_at_grows_when_the_same_value_is_put_again(self, store: Store) -> None:
        first = await _put(store, 1)
        second = await _put(store, 1)
        assert second.updated_at > first.updated_at

    async def test_reading_changes_no_timestamp(self, store: Store) -> None:
        first = await _put(store, 1)
        (found,) = await store.search(HOME)
        again = await store.get(HOME, KEY)
        assert again is not None
        assert {found.created_at, again.created_at} == {first.created_at}
        assert {found.updated_at, again.updated_at} == {first.updated_at}

    async def test_an_item_that_is_put_again_after_its_deletion_is_new(self, store: Store) -> None:
        first = await _put(store, 1)
        await store.delete(HOME, KEY)
        assert (await _put(store, 2)).created_at > first.created_at

    async def test_putting_one_item_leaves_the_times_of_others(self, store: Store) -> None:
        first = await _put(store, 1)
        await store.put(HOME, "other", {"number": 2})
        again = await store.get(HOME, KEY)
        assert again is not None
        assert (again.created_at, again.updated_at) == (first.created_at, first.updated_at)
