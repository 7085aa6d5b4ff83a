"""Ranking by meaning: the cosine of the query's embedding and those of the items."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langgraph.store.base import PutOp, SearchItem, SearchOp

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.embeddings import DIMS, Vector, WordCounts, cosine
from kg_memory.testing.store_conformance.sides import Namespace, Store
from kg_memory.testing.store_conformance.stories import Stories

HOME: Namespace = ("fruit",)
QUERY = "red apple"
TEXTS = {"both": "red apple", "more": "red apple tree and garden", "one": "apple cake", "none": "blue sky"}
PRECISION = 1e-4
"""Of a score: stores keep vectors in single precision."""


async def _fill(store: Store, texts: dict[str, str], namespace: Namespace = HOME) -> None:
    await store.batch([PutOp(namespace, key, {"text": text}) for key, text in texts.items()])


def ranked(found: Sequence[SearchItem]) -> dict[str, float]:
    """Return the scores of the items that have one. A store may fill up the rest with items that have none."""
    return {each.key: each.score for each in found if each.score is not None}


class Ranking(Stories, capability=Capability.VECTOR, index={"dims": DIMS, "embed": WordCounts(), "fields": ["text"]}):
    """What a query finds, and in which order."""

    async def test_the_nearest_items_come_first(self, store: Store) -> None:
        await _fill(store, TEXTS)
        assert await store.keys(HOME, query=QUERY) == ["both", "more", "one", "none"]
        assert (await store.keys(HOME, query="blue"))[0] == "none"

    async def test_a_score_is_the_cosine(self, store: Store) -> None:
        await _fill(store, TEXTS)
        scores = ranked(await store.search(HOME, query=QUERY))
        assert scores == pytest.approx({key: cosine(QUERY, text) for key, text in TEXTS.items()}, abs=PRECISION)

    async def test_pages_keep_the_order_of_the_ranking(self, store: Store) -> None:
        texts = {str(number): " ".join(["apple"] * (12 - number) + ["pear"] * number) for number in range(12)}
        await _fill(store, texts)
        pages = [await store.keys(HOME, query="apple", limit=5, offset=offset) for offset in (0, 5, 10)]
        assert [key for page in pages for key in page] == [str(number) for number in range(12)]

    async def test_a_ranking_keeps_to_the_prefix(self, store: Store) -> None:
        """Items elsewhere may be nearer, and many."""
        await _fill(store, {str(number): f"{QUERY} " * (number + 1) for number in range(60)}, ("fruits",))
        await _fill(store, {"far": "blue sky", "near": "apple cake"}, ("fruit", "inner"))
        assert await store.keys(HOME, query=QUERY, limit=2) == ["near", "far"]
        assert len(await store.keys((), query=QUERY, limit=100)) == 62

    async def test_a_filter_comes_before_the_limit_of_a_ranking(self, store: Store) -> None:
        near = {f"n{number}": (f"{QUERY} " * (number + 1), "near") for number in range(60)}
        far = {f"f{number}": ("blue sky" + " apple" * number, "far") for number in range(3)}
        texts = {**near, **far}.items()
        await store.batch([PutOp(HOME, key, {"text": text, "kind": kind}) for key, (text, kind) in texts])
        assert await store.keys(HOME, query=QUERY, filter={"kind": "far"}, limit=3) == ["f2", "f1", "f0"]
        assert await store.keys(HOME, query=QUERY, filter={"kind": "none"}) == []

    async def test_without_a_query_nothing_is_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        for query in (None, ""):
            found = await store.search(HOME, query=query)
            assert {each.key for each in found} == set(TEXTS)
            assert ranked(found) == {}

    async def test_items_that_are_not_indexed_are_not_ranked(self, store: Store) -> None:
        """Whether they fill up the rest of the page, without a score, is left to the store."""
        await _fill(store, TEXTS)
        await store.put(HOME, "hidden", {"text": QUERY}, index=False)
        await store.put(HOME, "textless", {"title": QUERY})
        found = await store.search(HOME, query=QUERY)
        assert list(ranked(found)) == [each.key for each in found[:4]] == ["both", "more", "one", "none"]
        assert sorted(await store.keys(HOME)) == sorted([*TEXTS, "hidden", "textless"])

    async def test_each_query_of_a_batch_has_its_own_ranking(self, store: Store) -> None:
        await _fill(store, TEXTS)
        queries = ["apple cake", "blue sky", "garden tree", "blue sky"]
        results = await store.batch([SearchOp(HOME, query=each, limit=1) for each in queries])
        assert [found[0].key for found in results] == ["one", "none", "more", "none"]

    async def test_items_of_one_text_are_all_ranked(self, store: Store) -> None:
        await _fill(store, {"a": QUERY, "b": QUERY, "c": "blue sky"})
        scores = ranked(await store.search(HOME, query=QUERY))
        assert scores == pytest.approx({"a": 1.0, "b": 1.0, "c": cosine(QUERY, "blue sky")}, abs=PRECISION)

    async def test_any_language_is_ranked(self, store: Store) -> None:
        await _fill(store, {"zh": "红 苹果", "hi": "लाल सेब", "ru": "красное яблоко", "emoji": "🍎 red"})
        for query, key in (("苹果", "zh"), ("लाल सेब", "hi"), ("ЯБЛОКО", "ru"), ("red", "emoji")):
            assert (await store.keys(HOME, query=query))[0] == key

    async def test_a_query_may_be_long_and_odd(self, store: Store) -> None:
        await _fill(store, TEXTS)
        for query in ("apple " * 5000, "'; DROP TABLE store; --", "\t", "%s $x {y}", "@text:(red)|*"):
            assert set(ranked(await store.search(HOME, query=query))) == set(TEXTS)


class Changes(Stories, capability=Capability.VECTOR, index={"dims": DIMS, "embed": WordCounts(), "fields": ["text"]}):
    """Vectors follow their items."""

    async def test_a_changed_text_is_ranked_by_what_it_is_now(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"text": "blue sky"})
        scores = ranked(await store.search(HOME, query=QUERY))
        assert scores["both"] == pytest.approx(cosine(QUERY, "blue sky"), abs=PRECISION)
        assert len(scores) == 4

    async def test_a_deleted_item_is_not_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.delete(HOME, "both")
        assert (await store.keys(HOME, query=QUERY))[0] == "more"
        assert "both" not in await store.keys(HOME, query=QUERY)

    async def test_an_item_put_again_after_its_deletion_has_no_old_vector(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.delete(HOME, "both")
        await store.put(HOME, "both", {"title": "nothing to embed"})
        assert "both" not in ranked(await store.search(HOME, query=QUERY))

    async def test_an_item_that_lost_its_text_is_no_longer_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"title": "nothing to embed"})
        assert "both" not in ranked(await store.search(HOME, query=QUERY))

    async def test_an_item_put_again_without_an_index_is_no_longer_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"text": QUERY}, index=False)
        assert "both" not in ranked(await store.search(HOME, query=QUERY))
        await store.put(HOME, "both", {"text": QUERY})
        assert ranked(await store.search(HOME, query=QUERY))["both"] == pytest.approx(1.0, abs=PRECISION)

    async def test_the_last_put_of_a_batch_is_the_one_that_is_ranked(self, store: Store) -> None:
        await store.batch([PutOp(HOME, "a", {"text": "blue sky"}), PutOp(HOME, "a", {"text": QUERY})])
        await store.batch([PutOp(HOME, "b", {"text": QUERY}), PutOp(HOME, "b", None)])
        assert ranked(await store.search(HOME, query=QUERY)) == pytest.approx({"a": 1.0}, abs=PRECISION)


def _embed(texts: Sequence[str]) -> list[Vector]:
    return WordCounts().embed_documents(list(texts))


async def _aembed(texts: Sequence[str]) -> list[Vector]:
    return _embed(texts)


async def _check_ranking(store: Store) -> None:
    await _fill(store, TEXTS)
    assert await store.keys(HOME, query=QUERY) == ["both", "more", "one", "none"]


class Functions(Stories, capability=Capability.VECTOR, index={"dims": DIMS, "embed": _embed, "fields": ["text"]}):
    """Embeddings given as a function."""

    async def test_a_function_may_embed(self, store: Store) -> None:
        await _check_ranking(store)


class AsyncFunctions(Stories, capability=Capability.VECTOR, index={"dims": DIMS, "embed": _aembed, "fields": ["text"]}):
    """Embeddings given as an async function."""

    async def test_an_async_function_may_embed_for_the_async_verbs(self, store: Store) -> None:
        """The sync verbs cannot call it: they may say so."""
        try:
            await _check_ranking(store)
        except Exception as error:
            if not store.is_sync or isinstance(error, AssertionError):
                raise
