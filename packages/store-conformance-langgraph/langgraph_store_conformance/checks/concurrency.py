"""Concurrent callers: in threads for the sync methods, in one event loop for the async methods."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import chain
from typing import Any

from langgraph.store.base import GetOp

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("busy",)


class Concurrency(Checks, capability=Capability.CONCURRENCY):
    """No write is lost, and no reader sees half of one."""

    async def test_thousands_of_operations_at_once_are_all_done(self, store: Store) -> None:
        def make_calls(number: int) -> list[Coroutine[Any, Any, Any]]:
            namespace, key = (*HOME, str(number % 10)), str(number)
            return [
                store.put(namespace, key, {"number": number}),
                store.get(namespace, key),
                store.search(namespace, limit=3),
                store.put((*HOME, "gone"), key, {"number": number}),
                store.delete((*HOME, "never there"), key),
                store.list_namespaces(prefix=namespace),
            ]

        callers = range(self.callers // 5 if store.mode == "sync" else self.callers)
        results = await store.run_concurrently(chain.from_iterable(map(make_calls, callers)))
        assert len(results) == 6 * len(callers)
        for number in callers:
            item, hits = results[6 * number + 1], results[6 * number + 2]
            assert item is None or item.value == {"number": number}
            assert {hit.namespace for hit in hits} <= {(*HOME, str(number % 10))}
        stored = await store.search(HOME, limit=5000)
        assert sorted(item.value["number"] for item in stored) == sorted([*callers, *callers])

    async def test_fifty_items_are_put_deleted_and_put_at_once(self, store: Store) -> None:
        """Any of the calls may come last: an item is whole or absent."""
        keys = [str(number) for number in range(50)]
        steps = ([store.put(HOME, k, {"n": 1}), store.delete(HOME, k), store.put(HOME, k, {"n": 2})] for k in keys)
        await store.run_concurrently(chain.from_iterable(steps))
        stored = {item.key: item.value["n"] for item in await store.search(HOME, limit=100)}
        items = await store.batch([GetOp(HOME, key) for key in keys])
        assert stored == {item.key: item.value["n"] for item in items if item}
        assert set(stored.values()) <= {1, 2}
        await store.run_concurrently(store.put(HOME, key, {"n": 3}) for key in keys)
        assert [item.value["n"] for item in await store.search(HOME, limit=100)] == [3] * 50

    async def test_puts_of_one_item_leave_one_of_them(self, store: Store) -> None:
        await store.run_concurrently(
            store.put(HOME, "one", {"n": number, "twice": 2 * number}) for number in range(100)
        )
        (item,) = await store.search(HOME)
        assert item.value["twice"] == 2 * item.value["n"]
        assert len(await store.list_namespaces()) == 1

    async def test_readers_see_whole_values_while_others_write(self, store: Store) -> None:
        await store.put(HOME, "one", {"n": 0, "again": [0] * 50})

        async def write(number: int) -> None:
            await store.put(HOME, "one", {"n": number, "again": [number] * 50})

        async def read(_: int) -> None:
            item = await store.get(HOME, "one")
            (hit,) = await store.search(HOME)
            assert item is not None
            for value in (item.value, hit.value):
                assert value["again"] == [value["n"]] * 50

        await store.run_concurrently(step(number) for number in range(1, 101) for step in (write, read))

    async def test_what_a_caller_put_it_gets(self, store: Store) -> None:
        async def put_and_get(number: int) -> None:
            namespace, key = (*HOME, str(number % 5)), str(number)
            await store.put(namespace, key, {"n": number})
            item = await store.get(namespace, key)
            assert item is not None
            assert item.value == {"n": number}
            await store.delete(namespace, key)
            assert await store.get(namespace, key) is None

        await store.run_concurrently(put_and_get(number) for number in range(200))
        assert await store.search(HOME) == []
