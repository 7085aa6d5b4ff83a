"""Search by the fields of values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("shop",)


async def _fill(store: Store, **values: dict[str, Any]) -> None:
    await store.batch([PutOp(HOME, key, value) for key, value in values.items()])


async def _search(store: Store, condition: dict[str, Any], prefix: Namespace = HOME) -> list[str]:
    return sorted(await store.search_keys(prefix, filter=condition, limit=100))


class Filters(Checks, capability=Capability.FILTERS):
    """Equality, and several conditions together."""

    async def test_a_field_equals_a_value(self, store: Store) -> None:
        await _fill(store, a={"x": "red"}, b={"x": "blue"}, c={"x": 1}, d={"x": 2.5}, e={"y": "red"}, f={"x": "Red"})
        assert await _search(store, {"x": "red"}) == ["a"]
        assert await _search(store, {"x": 1}) == ["c"]
        assert await _search(store, {"x": 1.0}) == ["c"]
        assert await _search(store, {"x": 2.5}) == ["d"]
        assert await _search(store, {"x": "green"}) == []
        assert await _search(store, {"z": "red"}) == []

    async def test_a_number_does_not_equal_its_text(self, store: Store) -> None:
        await _fill(store, a={"x": 1}, b={"x": "1"})
        assert await _search(store, {"x": 1}) == ["a"]
        assert await _search(store, {"x": "1"}) == ["b"]

    async def test_booleans_equal_themselves(self, store: Store) -> None:
        """True may also equal 1, as in Python, or not, as in JSON."""
        await _fill(store, a={"x": True}, b={"x": False}, c={"x": "true"})
        assert await _search(store, {"x": True}) == ["a"]
        assert await _search(store, {"x": False}) == ["b"]

    async def test_null_equals_null(self, store: Store) -> None:
        """An absent field may equal null or not."""
        await _fill(store, a={"x": None}, b={"x": 0}, c={"x": ""}, d={"x": "null"}, e={"x": False})
        assert await _search(store, {"x": None}) == ["a"]

    async def test_a_list_equals_the_same_list_alone(self, store: Store) -> None:
        await _fill(
            store,
            a={"x": ["red"]},
            b={"x": ["red", "blue"]},
            c={"x": ["blue", "red"]},
            d={"x": []},
            e={"x": "red"},
            f={"x": ["red", ["blue"]]},
        )
        assert await _search(store, {"x": ["red"]}) == ["a"]
        assert await _search(store, {"x": ["red", "blue"]}) == ["b"]
        assert await _search(store, {"x": []}) == ["d"]
        assert await _search(store, {"x": ["red", ["blue"]]}) == ["f"]

    async def test_a_nested_object_equals_itself(self, store: Store) -> None:
        """It may also match an object with more fields, or not."""
        await _fill(
            store, a={"x": {"y": {"z": 1}}}, b={"x": {"y": {"z": 2}}}, c={"x": {"y": 1}}, d={"x": "y"}, e={"z": 1}
        )
        assert await _search(store, {"x": {"y": {"z": 1}}}) == ["a"]
        assert await _search(store, {"x": {"y": 1}}) == ["c"]

    async def test_an_object_equals_itself_by_eq(self, store: Store) -> None:
        await _fill(store, a={"x": {"y": 1}}, b={"x": {"y": 2}}, c={"x": 1})
        assert await _search(store, {"x": {"$eq": {"y": 1}}}) == ["a"]

    async def test_all_fields_of_a_filter_must_match(self, store: Store) -> None:
        await _fill(store, a={"x": 1, "y": 1}, b={"x": 1, "y": 2}, c={"x": 2, "y": 1}, d={"x": 1, "y": 0})
        assert await _search(store, {"x": 1, "y": 1}) == ["a"]
        assert await _search(store, {"x": 1, "y": {"$gt": 1}}) == ["b"]

    async def test_an_empty_filter_is_no_filter(self, store: Store) -> None:
        await _fill(store, a={"x": 1}, b={"y": 1})
        assert await _search(store, {}) == ["a", "b"]

    async def test_a_filter_comes_before_the_limit(self, store: Store) -> None:
        rare = {f"r{number}": {"rare": True} for number in range(3)}
        common = {f"c{number}": {"rare": False} for number in range(40)}
        await _fill(store, **dict(list(common.items())[:20]), **rare, **dict(list(common.items())[20:]))
        assert sorted(await store.search_keys(HOME, filter={"rare": True}, limit=3)) == ["r0", "r1", "r2"]
        pages = [await store.search_keys(HOME, filter={"rare": True}, limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [len(page) for page in pages] == [2, 1, 0]
        assert sorted(key for page in pages for key in page) == ["r0", "r1", "r2"]

    async def test_a_filter_keeps_to_the_prefix(self, store: Store) -> None:
        await _fill(store, a={"x": 1})
        await store.put(("shop", "inner"), "b", {"x": 1})
        await store.put(("shop", "inner"), "c", {"x": 2})
        await store.put(("shopping",), "d", {"x": 1})
        assert await _search(store, {"x": 1}) == ["a", "b"]
        assert await _search(store, {"x": 1}, ("shop", "inner")) == ["b"]
        assert await _search(store, {"x": 1}, ()) == ["a", "b", "d"]

    async def test_a_filter_sees_the_value_of_the_last_put(self, store: Store) -> None:
        await _fill(store, a={"x": 1, "y": 1})
        await _fill(store, a={"x": 2})
        assert await _search(store, {"x": 1}) == []
        assert await _search(store, {"y": 1}) == []
        assert await _search(store, {"x": 2}) == ["a"]


class Comparisons(Checks, capability=Capability.FILTERS):
    """The operators ``$eq $ne $gt $gte $lt $lte``."""

    async def test_numbers_compare_as_numbers(self, store: Store) -> None:
        await _fill(store, **{f"n{number}": {"x": number} for number in (-10, -9, 0, 9, 10, 100)})
        assert await _search(store, {"x": {"$gt": 9}}) == ["n10", "n100"]
        assert await _search(store, {"x": {"$gte": 9}}) == ["n10", "n100", "n9"]
        assert await _search(store, {"x": {"$lt": -9}}) == ["n-10"]
        assert await _search(store, {"x": {"$lte": -9}}) == ["n-10", "n-9"]
        assert await _search(store, {"x": {"$eq": 10}}) == ["n10"]
        assert await _search(store, {"x": {"$ne": 10}}) == ["n-10", "n-9", "n0", "n100", "n9"]

    async def test_fractions_compare_with_whole_numbers(self, store: Store) -> None:
        await _fill(store, a={"x": 0.5}, b={"x": 1}, c={"x": 1.5}, d={"x": 10.25})
        assert await _search(store, {"x": {"$gt": 1}}) == ["c", "d"]
        assert await _search(store, {"x": {"$lt": 1.5}}) == ["a", "b"]
        assert await _search(store, {"x": {"$gte": 1.5, "$lt": 10.25}}) == ["c"]

    async def test_all_operators_on_a_field_must_match(self, store: Store) -> None:
        await _fill(store, **{f"n{number}": {"x": number} for number in range(10)})
        assert await _search(store, {"x": {"$gte": 3, "$lt": 6, "$ne": 4}}) == ["n3", "n5"]
        assert await _search(store, {"x": {"$gt": 6, "$lt": 3}}) == []

    async def test_eq_and_ne_compare_texts(self, store: Store) -> None:
        """An item without the field may be unequal or not."""
        await _fill(store, a={"x": "red"}, b={"x": "blue"}, c={"x": ""})
        assert await _search(store, {"x": {"$eq": "red"}}) == ["a"]
        assert await _search(store, {"x": {"$ne": "red"}}) == ["b", "c"]

    async def test_an_item_without_the_field_is_neither_more_nor_less(self, store: Store) -> None:
        await _fill(store, a={"x": 1}, b={"y": 1}, c={})
        assert await _search(store, {"x": {"$gt": 0}}) == ["a"]
        assert await _search(store, {"x": {"$lte": 1}}) == ["a"]
        assert await _search(store, {"x": {"$eq": 1}}) == ["a"]

    async def test_an_unknown_operator_is_refused(self, store: Store) -> None:
        await _fill(store, a={"x": 1})
        for operator in ("$in", "$regex", "$or", "$"):
            with pytest.raises(ValueError, match=r".+"):
                await store.search(HOME, filter={"x": {operator: 1}})
        assert await _search(store, {"x": 1}) == ["a"]

    async def test_numbers_beyond_any_stored_one_are_compared_all_the_same(self, store: Store) -> None:
        await _fill(store, a={"x": 1}, b={"x": 2.5})
        assert await _search(store, {"x": {"$lt": 10**100}}) == ["a", "b"]
        assert await _search(store, {"x": {"$gt": 10**100}}) == []
        assert await _search(store, {"x": {"$gt": -(10**100)}}) == ["a", "b"]
        assert await _search(store, {"x": 10**100}) == []

    async def test_infinity_and_nan_equal_nothing(self, store: Store) -> None:
        """A store may also raise `ValueError`, since JSON has neither."""
        await _fill(store, a={"x": 1}, b={"x": "Infinity"}, c={"x": "NaN"}, d={"x": None})
        for number in (math.inf, -math.inf, math.nan):
            for condition in (number, {"$eq": number}):
                try:
                    assert await _search(store, {"x": condition}) == []
                except ValueError:
                    continue
        assert await _search(store, {"x": 1}) == ["a"]
