"""A reopened store has its data."""

from __future__ import annotations

from langgraph.store.base import PutOp

from langgraph_store_conformance.checks.items import JSON
from langgraph_store_conformance.checks.vectors import make_index
from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("kept",)


class Persistence(Checks, capability=Capability.PERSISTENCE):
    """Items, their timestamps, and deletions."""

    async def test_items_outlive_the_store_that_put_them(self, store: Store) -> None:
        await store.batch([PutOp((*HOME, str(number)), "key", {"number": number, **JSON}) for number in range(20)])
        before = {item.namespace: item.dict() for item in await store.search((), limit=100)}
        await store.reopen()
        after = {item.namespace: item.dict() for item in await store.search((), limit=100)}
        assert len(after) == 20
        assert after == before
        assert len(await store.list_namespaces()) == 20

    async def test_changes_outlive_the_store_that_made_them(self, store: Store) -> None:
        await store.put(HOME, "changed", {"n": 1})
        await store.put(HOME, "deleted", {"n": 1})
        await store.reopen()
        await store.put(HOME, "changed", {"n": 2})
        await store.delete(HOME, "deleted")
        await store.reopen()
        (item,) = await store.search(HOME)
        assert (item.key, item.value) == ("changed", {"n": 2})

    async def test_a_store_made_again_goes_on_with_the_times(self, store: Store) -> None:
        await store.put(HOME, "key", {"n": 1})
        first = await store.get(HOME, "key")
        await store.reopen()
        await store.put(HOME, "key", {"n": 2})
        second = await store.get(HOME, "key")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at


class PersistentVectors(
    Checks, capability=Capability.PERSISTENCE, requires=(Capability.VECTOR,), index=make_index("text")
):
    """The vector index."""

    async def test_a_store_made_again_ranks_as_before(self, store: Store) -> None:
        texts = {"both": "red apple", "one": "apple cake", "none": "blue sky"}
        await store.batch([PutOp(HOME, key, {"text": text}) for key, text in texts.items()])
        await store.reopen()
        assert await store.search_keys(HOME, query="red apple") == ["both", "one", "none"]
        await store.put(HOME, "both", {"text": "green grass"})
        await store.reopen()
        assert (await store.search_keys(HOME, query="red apple"))[0] == "one"
