"""Values: any JSON, and none of it shared with the store."""

from __future__ import annotations

from typing import Any

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.sides import Store
from kg_memory.testing.store_conformance.stories import Stories

HOME = ("values",)

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


class Values(Stories, capability=Capability.VALUES):
    """What comes back is what went in."""

    async def test_any_json_comes_back_as_it_went_in(self, store: Store) -> None:
        await store.put(HOME, "json", JSON)
        item = await store.get(HOME, "json")
        assert item is not None
        assert item.value == JSON
        assert [type(each) for each in item.value["booleans"]] == [bool, bool]
        (found,) = await store.search(HOME)
        assert found.value == JSON

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
        mine: dict[str, Any] = {"tags": ["red"], "inner": {"n": 1}}
        await store.put(HOME, "mine", mine)
        mine["tags"].append("blue")
        mine["inner"]["n"] = 2
        mine["new"] = True
        item = await store.get(HOME, "mine")
        assert item is not None
        assert item.value == {"tags": ["red"], "inner": {"n": 1}}

    async def test_changing_what_was_got_changes_nothing_in_the_store(self, store: Store) -> None:
        await store.put(HOME, "mine", {"tags": ["red"], "inner": {"n": 1}})
        item = await store.get(HOME, "mine")
        assert item is not None
        item.value["tags"].append("blue")
        item.value["new"] = True
        (found,) = await store.search(HOME)
        found.value["inner"]["n"] = 2
        again = await store.get(HOME, "mine")
        assert again is not None
        assert again.value == {"tags": ["red"], "inner": {"n": 1}}
