"""A store that is made again has what it had."""

from __future__ import annotations

from langgraph.store.base import PutOp

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.embeddings import DIMS, WordCounts
from kg_memory.testing.store_conformance.sides import Namespace, Store
from kg_memory.testing.store_conformance.stories import Stories
from kg_memory.testing.store_conformance.values import JSON

HOME: Namespace = ("kept",)


class Persistence(Stories, capability=Capability.PERSISTENCE):
    """Items, their times, and what was deleted."""

    async def test_items_outlive_the_store_that_put_them(self, store: Store) -> None:
        await store.batch([PutOp((*HOME, str(number)), "key", {"number": number, **JSON}) for number in range(20)])
        before = await store.search((), limit=100)
        await store.reopen()
        after = await store.search((), limit=100)
        assert sorted(each.namespace for each in after) == sorted(each.namespace for each in before)
        assert {each: each.dict() for each in after} == {each: each.dict() for each in before}
        assert len(await store.list_namespaces()) == 20

    async def test_changes_outlive_the_store_that_made_them(self, store: Store) -> None:
        await store.put(HOME, "changed", {"n": 1})
        await store.put(HOME, "deleted", {"n": 1})
        await store.reopen()
        await store.put(HOME, "changed", {"n": 2})
        await store.delete(HOME, "deleted")
        await store.reopen()
        found = await store.search(HOME)
        assert [(each.key, each.value) for each in found] == [("changed", {"n": 2})]

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
    Stories,
    capability=Capability.PERSISTENCE,
    also=(Capability.VECTOR,),
    index={"dims": DIMS, "embed": WordCounts(), "fields": ["text"]},
):
    """The index."""

    async def test_a_store_made_again_ranks_as_before(self, store: Store) -> None:
        texts = {"both": "red apple", "one": "apple cake", "none": "blue sky"}
        await store.batch([PutOp(HOME, key, {"text": text}) for key, text in texts.items()])
        await store.reopen()
        assert await store.keys(HOME, query="red apple") == ["both", "one", "none"]
        await store.put(HOME, "both", {"text": "green grass"})
        await store.reopen()
        assert (await store.keys(HOME, query="red apple"))[0] == "one"
