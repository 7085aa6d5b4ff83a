"""The value of an item and its timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import Item

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("items",)
KEY = "clock"
CLOCK_SKEW = timedelta(seconds=2)
"""The largest difference between the clocks of the test and of the store."""
JSON: dict[str, Any] = {
    "nothing": None,
    "booleans": [True, False],
    "integers": [0, -1, 2**31, 2**53 + 1, -(2**63)],
    "floats": [0.1, -2.5, 1e-7, 3.141592653589793],
    "texts": ["", " ", "a\tb\nc", "quote \" and ' and \\", "日本語", "नमस्ते", "🧑‍🚀", "\u202eright to left"],
    "empty": [{}, [], [[]], [{}]],
    "ключ": {"ключ": {"键": [1, [2, [3, {"x": None}]]]}},
    "": "an empty key",
    "a.b": "a dot",
    "$eq": "a dollar",
}


class Values(Checks, capability=Capability.VALUES):
    """JSON values round-trip, and are copied in and out."""

    async def test_any_json_comes_back_as_it_went_in(self, store: Store) -> None:
        await store.put(HOME, "json", JSON)
        item = await store.get(HOME, "json")
        assert item is not None
        assert item.value == JSON
        assert [type(value) for value in item.value["booleans"]] == [bool, bool]
        (hit,) = await store.search(HOME)
        assert hit.value == JSON

    async def test_the_largest_and_the_smallest_numbers_come_back(self, store: Store) -> None:
        value = {"numbers": [6.02e23, 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, 2**63 - 1, -(2**63)]}
        await store.put(HOME, "numbers", value)
        item = await store.get(HOME, "numbers")
        assert item is not None
        assert item.value == value

    async def test_an_empty_value_is_a_value(self, store: Store) -> None:
        await store.put(HOME, "empty", {})
        item = await store.get(HOME, "empty")
        assert item is not None
        assert item.value == {}

    async def test_a_deep_value_comes_back(self, store: Store) -> None:
        deep: dict[str, Any] = {"end": True}
        for _ in range(60):
            deep = {"in": [deep]}
        await store.put(HOME, "deep", deep)
        item = await store.get(HOME, "deep")
        assert item is not None
        assert item.value == deep

    async def test_a_megabyte_comes_back(self, store: Store) -> None:
        large = {"text": "грамм ✓ " * 70_000, "rows": list(range(10_000))}
        await store.put(HOME, "large", large)
        item = await store.get(HOME, "large")
        assert item is not None
        assert item.value == large

    async def test_a_wide_value_comes_back(self, store: Store) -> None:
        wide = {f"field {number}": number for number in range(3000)}
        await store.put(HOME, "wide", wide)
        item = await store.get(HOME, "wide")
        assert item is not None
        assert item.value == wide

    async def test_changing_what_was_put_changes_nothing_in_the_store(self, store: Store) -> None:
        value: dict[str, Any] = {"tags": ["red"], "inner": {"n": 1}}
        await store.put(HOME, "mine", value)
        value["tags"].append("blue")
        value["inner"]["n"] = 2
        value["new"] = True
        item = await store.get(HOME, "mine")
        assert item is not None
        assert item.value == {"tags": ["red"], "inner": {"n": 1}}

    async def test_changing_what_was_got_changes_nothing_in_the_store(self, store: Store) -> None:
        await store.put(HOME, "mine", {"tags": ["red"], "inner": {"n": 1}})
        item = await store.get(HOME, "mine")
        assert item is not None
        item.value["tags"].append("blue")
        item.value["new"] = True
        (hit,) = await store.search(HOME)
        hit.value["inner"]["n"] = 2
        unchanged = await store.get(HOME, "mine")
        assert unchanged is not None
        assert unchanged.value == {"tags": ["red"], "inner": {"n": 1}}


async def _put(store: Store, number: int) -> Item:
    await store.put(HOME, KEY, {"number": number})
    item = await store.get(HOME, KEY)
    assert item is not None
    return item


class Timestamps(Checks, capability=Capability.TIMESTAMPS):
    """`created_at` and `updated_at`, both with a time zone."""

    async def test_timestamps_are_instants_of_now(self, store: Store) -> None:
        before = datetime.now(UTC)
        item = await _put(store, 1)
        after = datetime.now(UTC)
        for time in (item.created_at, item.updated_at):
            assert time.tzinfo is not None
            assert before - CLOCK_SKEW <= time <= after + CLOCK_SKEW

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
        (hit,) = await store.search(HOME)
        second = await store.get(HOME, KEY)
        assert second is not None
        assert {hit.created_at, second.created_at} == {first.created_at}
        assert {hit.updated_at, second.updated_at} == {first.updated_at}

    async def test_an_item_that_is_put_again_after_its_deletion_is_new(self, store: Store) -> None:
        first = await _put(store, 1)
        await store.delete(HOME, KEY)
        assert (await _put(store, 2)).created_at > first.created_at

    async def test_putting_one_item_leaves_the_times_of_others(self, store: Store) -> None:
        first = await _put(store, 1)
        await store.put(HOME, "other", {"number": 2})
        second = await store.get(HOME, KEY)
        assert second is not None
        assert (second.created_at, second.updated_at) == (first.created_at, first.updated_at)
