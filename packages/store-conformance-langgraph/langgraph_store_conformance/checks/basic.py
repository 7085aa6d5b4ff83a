"""Get, put, delete, search without a query, and batches."""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType

import pytest
from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

from langgraph_store_conformance.harness import Capability, Checks, Store

ANN, BOB = ("users", "ann"), ("users", "bob")


class Basics(Checks, capability=Capability.BASIC):
    """Operations on one item."""

    async def test_an_item_is_got_as_it_was_put(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark"})
        item = await store.get(ANN, "theme")
        assert isinstance(item, Item)
        assert (item.namespace, item.key, item.value) == (ANN, "theme", {"colour": "dark"})

    async def test_what_was_never_put_is_none(self, store: Store) -> None:
        assert await store.get(ANN, "theme") is None
        await store.put(ANN, "theme", {"colour": "dark"})
        assert await store.get(ANN, "language") is None
        assert await store.get(BOB, "theme") is None
        assert await store.get(("users",), "theme") is None

    async def test_a_put_replaces_the_whole_value(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark", "size": 1})
        await store.put(ANN, "theme", {"colour": "light"})
        item = await store.get(ANN, "theme")
        assert item is not None
        assert item.value == {"colour": "light"}
        assert await store.search_keys(ANN) == ["theme"]

    async def test_a_deleted_item_is_gone_for_every_reader(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark"})
        await store.put(ANN, "language", {"code": "no"})
        await store.delete(ANN, "theme")
        assert await store.get(ANN, "theme") is None
        assert await store.search_keys(ANN) == ["language"]

    async def test_deleting_what_is_not_there_is_no_error(self, store: Store) -> None:
        await store.delete(ANN, "theme")
        await store.put(BOB, "theme", {"colour": "dark"})
        await store.delete(ANN, "theme")
        assert await store.get(BOB, "theme") is not None

    async def test_a_deleted_item_can_be_put_again(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark", "size": 1})
        await store.delete(ANN, "theme")
        await store.put(ANN, "theme", {"colour": "light"})
        item = await store.get(ANN, "theme")
        assert item is not None
        assert item.value == {"colour": "light"}

    async def test_one_key_in_two_namespaces_is_two_items(self, store: Store) -> None:
        namespaces = [("users",), ANN, BOB, (*ANN, "theme"), ("ann", "users")]
        for number, namespace in enumerate(namespaces):
            await store.put(namespace, "theme", {"number": number})
        await store.delete(BOB, "theme")
        items = [await store.get(namespace, "theme") for namespace in namespaces]
        assert [item and item.value["number"] for item in items] == [0, 1, None, 3, 4]

    async def test_any_mapping_is_a_value(self, store: Store) -> None:
        await store.put(ANN, "theme", MappingProxyType({"colour": "dark"}))
        item = await store.get(ANN, "theme")
        assert item is not None
        assert item.value == {"colour": "dark"}

    async def test_an_item_as_a_dict_is_json(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark"})
        item = await store.get(ANN, "theme")
        assert item is not None
        assert item.dict() == {
            "namespace": ["users", "ann"],
            "key": "theme",
            "value": {"colour": "dark"},
            "created_at": item.created_at.isoformat(),
            "updated_at": item.updated_at.isoformat(),
        }


class Searches(Checks, capability=Capability.BASIC):
    """Search without a query; the contract promises no order."""

    async def test_a_search_of_nothing_finds_nothing(self, store: Store) -> None:
        assert await store.search(ANN) == []
        assert await store.search(()) == []

    async def test_a_search_finds_whole_items_without_a_score(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark"})
        (item,) = await store.search(ANN)
        assert isinstance(item, SearchItem)
        assert (item.namespace, item.key, item.value) == (ANN, "theme", {"colour": "dark"})
        assert item.score is None
        assert item.dict()["score"] is None

    async def test_a_search_finds_ten_items_unless_told_otherwise(self, store: Store) -> None:
        for number in range(12):
            await store.put(ANN, str(number), {"number": number})
        assert len(await store.search(ANN)) == 10
        assert len(await store.search(ANN, limit=3)) == 3
        assert len(await store.search(ANN, limit=1_000_000)) == 12

    async def test_pages_of_a_search_have_each_item_once(self, store: Store) -> None:
        for number in range(11):
            await store.put(ANN, str(number), {"number": number})
        pages = [await store.search_keys(ANN, limit=4, offset=offset) for offset in (0, 4, 8, 12)]
        assert [len(page) for page in pages] == [4, 4, 3, 0]
        assert sorted(chain.from_iterable(pages)) == sorted(map(str, range(11)))

    async def test_without_an_index_a_query_and_index_paths_mean_nothing(self, store: Store) -> None:
        """A store may ignore the query or raise `NotImplementedError`."""
        await store.put(ANN, "theme", {"colour": "dark"}, index=["colour"])
        await store.put(ANN, "language", {"code": "no"}, index=False)
        assert sorted(await store.search_keys(ANN)) == ["language", "theme"]
        try:
            keys = await store.search_keys(ANN, query="dark")
        except NotImplementedError:
            return
        assert sorted(keys) == ["language", "theme"]

    async def test_an_empty_query_is_no_query(self, store: Store) -> None:
        await store.put(ANN, "theme", {"colour": "dark"})
        assert await store.search_keys(ANN, query="") == ["theme"]


class Batches(Checks, capability=Capability.BASIC):
    """Several operations in one call."""

    async def test_an_empty_batch_has_no_results(self, store: Store) -> None:
        assert list(await store.batch([])) == []

    async def test_results_come_in_the_order_of_the_operations(self, store: Store) -> None:
        """The operations touch different items, since the contract promises no order of execution."""
        await store.put(ANN, "theme", {"colour": "dark"})
        first, put, hits, missing, deleted, namespaces, last = await store.batch(
            [
                GetOp(ANN, "theme"),
                PutOp(BOB, "theme", {"colour": "light"}),
                SearchOp(ANN),
                GetOp(ANN, "language"),
                PutOp(BOB, "language", None),
                ListNamespacesOp(match_conditions=None, max_depth=1),
                GetOp(ANN, "theme"),
            ]
        )
        assert first.value == last.value == {"colour": "dark"}
        assert [hit.key for hit in hits] == ["theme"]
        assert namespaces == [("users",)]
        assert (put, missing, deleted) == (None, None, None)
        assert await store.get(BOB, "theme") is not None

    async def test_reads_of_a_batch_each_have_their_own_answer(self, store: Store) -> None:
        for number in range(30):
            await store.put(("n", str(number % 3)), str(number), {"number": number})
        numbers = [29, 3, 3, 17, 0, 99, 12]
        gets = [GetOp(("n", str(number % 3)), str(number)) for number in numbers]
        results = await store.batch([*gets, SearchOp(("n", "1"), limit=100), SearchOp(("n", "2"), limit=2)])
        assert [item and item.value["number"] for item in results[:7]] == [29, 3, 3, 17, 0, None, 12]
        assert {item.value["number"] for item in results[7]} == set(range(1, 30, 3))
        assert len(results[8]) == 2

    async def test_a_batch_is_any_iterable(self, store: Store) -> None:
        results = await store.batch(PutOp(ANN, str(number), {"number": number}) for number in range(5))
        assert list(results) == [None] * 5
        assert len(await store.search(ANN)) == 5

    async def test_the_last_put_of_a_batch_wins(self, store: Store) -> None:
        await store.put(ANN, "gone", {"colour": "red"})
        await store.batch(
            [
                PutOp(ANN, "theme", {"colour": "dark"}),
                PutOp(ANN, "gone", {"colour": "blue"}),
                PutOp(ANN, "back", None),
                PutOp(ANN, "theme", {"colour": "light"}),
                PutOp(ANN, "gone", None),
                PutOp(ANN, "back", {"colour": "green"}),
            ]
        )
        colours = {item.key: item.value["colour"] for item in await store.search(ANN)}
        assert colours == {"theme": "light", "back": "green"}

    async def test_a_thousand_items_go_in_by_one_batch(self, store: Store) -> None:
        await store.batch([PutOp(("many", str(number % 7)), str(number), {"number": number}) for number in range(1000)])
        items = await store.search(("many",), limit=2000)
        assert sorted(item.value["number"] for item in items) == list(range(1000))
        results = await store.batch([GetOp(("many", str(number % 7)), str(number)) for number in range(1000)])
        assert [item.value["number"] for item in results] == list(range(1000))


class WithoutTTL(Checks, capability=Capability.BASIC):
    """`supports_ttl` says whether the store accepts a ttl."""

    async def test_a_ttl_is_refused_by_a_store_that_has_none(self, store: Store) -> None:
        if not store.raw.supports_ttl:
            with pytest.raises(NotImplementedError):
                await store.put(ANN, "theme", {"colour": "dark"}, ttl=1)
            assert await store.get(ANN, "theme") is None
        await store.put(ANN, "theme", {"colour": "dark"}, ttl=None)
        assert await store.get(ANN, "theme") is not None
