"""Many callers at once: in threads by the sync verbs, in one event loop by the async ones."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import chain
from typing import Any

from langgraph.store.base import GetOp

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.sides import Namespace, Store
from kg_memory.testing.store_conformance.stories import Stories

HOME: Namespace = ("busy",)


class Concurrency(Stories, capability=Capability.CONCURRENCY):
    """Nothing is lost, and nobody sees a half."""

    async def test_thousands_of_operations_at_once_are_all_done(self, store: Store) -> None:
        def calls_of(number: int) -> list[Coroutine[Any, Any, Any]]:
            place, key = (*HOME, str(number % 10)), str(number)
            return [
                store.put(place, key, {"number": number}),
                store.get(place, key),
                store.search(place, limit=3),
                store.put((*HOME, "gone"), key, {"number": number}),
                store.delete((*HOME, "never there"), key),
                store.list_namespaces(prefix=place),
            ]

        callers = range(self.callers // 5 if store.is_sync else self.callers)
        results = await store.together(chain.from_iterable(calls_of(number) for number in callers))
        assert len(results) == 6 * len(callers)
        assert all(each is None or each.value == {"number": number} for number, each in enumerate(results[1::6]))
        assert all(each.namespace == (*HOME, str(n % 10)) for n, found in enumerate(results[2::6]) for each in found)
        stored = await store.search(HOME, limit=5000)
        assert sorted(each.value["number"] for each in stored) == sorted([*callers, *callers])

    async def test_fifty_items_are_put_deleted_and_put_at_once(self, store: Store) -> None:
        """Which of them comes last is not promised; each item is there as a whole, or it is not."""
        keys = [str(number) for number in range(50)]
        steps = ([store.put(HOME, k, {"n": 1}), store.delete(HOME, k), store.put(HOME, k, {"n": 2})] for k in keys)
        await store.together(chain.from_iterable(steps))
        found = {each.key: each.value["n"] for each in await store.search(HOME, limit=100)}
        got = await store.batch([GetOp(HOME, key) for key in keys])
        assert found == {each.key: each.value["n"] for each in got if each}
        assert set(found.values()) <= {1, 2}
        await store.together(store.put(HOME, key, {"n": 3}) for key in keys)
        assert [each.value["n"] for each in await store.search(HOME, limit=100)] == [3] * 50

    async def test_puts_of_one_item_leave_one_of_them(self, store: Store) -> None:
        await store.together(store.put(HOME, "one", {"n": number, "twice": 2 * number}) for number in range(100))
        (found,) = await store.search(HOME)
        assert found.value["twice"] == 2 * found.value["n"]
        assert len(await store.list_namespaces()) == 1

    async def test_readers_see_whole_values_while_others_write(self, store: Store) -> None:
        await store.put(HOME, "one", {"n": 0, "again": [0] * 50})

        async def write(number: int) -> None:
            await store.put(HOME, "one", {"n": number, "again": [number] * 50})

        async def read(_: int) -> None:
            item = await store.get(HOME, "one")
            (found,) = await store.search(HOME)
            assert item is not None
            for each in (item, found):
                assert each.value["again"] == [each.value["n"]] * 50

        await store.together(step(number) for number in range(1, 101) for step in (write, read))

    async def test_what_a_caller_put_it_gets(self, store: Store) -> None:
        async def put_and_get(number: int) -> None:
            place = (*HOME, str(number % 5))
            await store.put(place, str(number), {"n": number})
            item = await store.get(place, str(number))
            assert item is not None
            assert item.value == {"n": number}
            await store.delete(place, str(number))
            assert await store.get(place, str(number)) is None

        await store.together(put_and_get(number) for number in range(200))
        assert await store.search(HOME) == []
