"""Ranking by the cosine similarity of embeddings, of one or several fields of an item."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any
from zlib import crc32

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp, SearchItem, SearchOp

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

Vector = list[float]

DIMENSIONS = 128
PRECISION = 1e-4
"""Tolerance of a score: stores keep vectors in single precision."""
HOME: Namespace = ("fruit",)
QUERY = "red apple"
TEXTS = {"both": "red apple", "more": "red apple tree and garden", "one": "apple cake", "none": "blue sky"}
BOOK: dict[str, Any] = {
    "title": "garden",
    "meta": {"subject": "red apple"},
    "authors": [{"name": "ann"}, {"name": "bob"}],
    "chapters": [{"text": "blue sky"}, {"text": "apple cake"}, {"text": "green grass"}],
    "year": 1999,
}


class WordCounts(Embeddings):
    """Embeddings without a model: the counts of the words, each word at the dimension of its checksum.

    The vectors are not normalised, so that a ranking by the dot product differs from one by the cosine.
    """

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"\w+", text.lower()) or [""]:
            vector[crc32(word.encode("utf-8", "replace")) % DIMENSIONS] += 1.0
        return vector


def compute_cosine(left_text: str, right_text: str) -> float:
    """Return the cosine similarity of two texts by `WordCounts`."""
    model = WordCounts()
    left, right = model.embed_query(left_text), model.embed_query(right_text)
    return _dot(left, right) / math.sqrt(_dot(left, left) * _dot(right, right))


def make_index(*fields: str, embed: Embeddings | Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return the configuration of an index by `WordCounts`, or by *embed*, of *fields* or the whole value."""
    index = {"dims": DIMENSIONS, "embed": embed or WordCounts()}
    return {**index, "fields": list(fields)} if fields else index


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


async def _fill(store: Store, texts: dict[str, str], namespace: Namespace = HOME) -> None:
    await store.batch([PutOp(namespace, key, {"text": text}) for key, text in texts.items()])


def _scores(hits: Sequence[SearchItem]) -> dict[str, float]:
    """Return the scores by key. A store may fill up a page with items that have no score; these are left out."""
    return {hit.key: hit.score for hit in hits if hit.score is not None}


async def _search_scores(store: Store, query: str) -> dict[str, float]:
    return _scores(await store.search(HOME, query=query))


class Ranking(Checks, capability=Capability.VECTOR, index=make_index("text")):
    """The results of a query and their order."""

    async def test_the_nearest_items_come_first(self, store: Store) -> None:
        await _fill(store, TEXTS)
        assert await store.search_keys(HOME, query=QUERY) == ["both", "more", "one", "none"]
        assert (await store.search_keys(HOME, query="blue"))[0] == "none"

    async def test_a_score_is_the_cosine(self, store: Store) -> None:
        await _fill(store, TEXTS)
        scores = await _search_scores(store, QUERY)
        assert scores == pytest.approx({key: compute_cosine(QUERY, text) for key, text in TEXTS.items()}, abs=PRECISION)

    async def test_pages_keep_the_order_of_the_ranking(self, store: Store) -> None:
        texts = {str(number): " ".join(["apple"] * (12 - number) + ["pear"] * number) for number in range(12)}
        await _fill(store, texts)
        pages = [await store.search_keys(HOME, query="apple", limit=5, offset=offset) for offset in (0, 5, 10)]
        assert list(chain.from_iterable(pages)) == list(map(str, range(12)))

    async def test_a_ranking_keeps_to_the_prefix(self, store: Store) -> None:
        """Items outside the prefix may be nearer and many."""
        await _fill(store, {str(number): f"{QUERY} " * (number + 1) for number in range(60)}, ("fruits",))
        await _fill(store, {"far": "blue sky", "near": "apple cake"}, ("fruit", "inner"))
        assert await store.search_keys(HOME, query=QUERY, limit=2) == ["near", "far"]
        assert len(await store.search_keys((), query=QUERY, limit=100)) == 62

    async def test_a_filter_comes_before_the_limit_of_a_ranking(self, store: Store) -> None:
        near = {f"n{number}": (f"{QUERY} " * (number + 1), "near") for number in range(60)}
        far = {f"f{number}": ("blue sky" + " apple" * number, "far") for number in range(3)}
        texts = {**near, **far}.items()
        await store.batch([PutOp(HOME, key, {"text": text, "kind": kind}) for key, (text, kind) in texts])
        assert await store.search_keys(HOME, query=QUERY, filter={"kind": "far"}, limit=3) == ["f2", "f1", "f0"]
        assert await store.search_keys(HOME, query=QUERY, filter={"kind": "none"}) == []

    async def test_without_a_query_nothing_is_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        for query in (None, ""):
            hits = await store.search(HOME, query=query)
            assert {hit.key for hit in hits} == set(TEXTS)
            assert _scores(hits) == {}

    async def test_items_that_are_not_indexed_are_not_ranked(self, store: Store) -> None:
        """They may fill up the page, without a score, or not."""
        await _fill(store, TEXTS)
        await store.put(HOME, "hidden", {"text": QUERY}, index=False)
        await store.put(HOME, "textless", {"title": QUERY})
        hits = await store.search(HOME, query=QUERY)
        assert list(_scores(hits)) == [hit.key for hit in hits[:4]] == ["both", "more", "one", "none"]
        assert sorted(await store.search_keys(HOME)) == sorted([*TEXTS, "hidden", "textless"])

    async def test_each_query_of_a_batch_has_its_own_ranking(self, store: Store) -> None:
        await _fill(store, TEXTS)
        queries = ["apple cake", "blue sky", "garden tree", "blue sky"]
        results = await store.batch([SearchOp(HOME, query=query, limit=1) for query in queries])
        assert [hits[0].key for hits in results] == ["one", "none", "more", "none"]

    async def test_items_of_one_text_are_all_ranked(self, store: Store) -> None:
        await _fill(store, {"a": QUERY, "b": QUERY, "c": "blue sky"})
        scores = await _search_scores(store, QUERY)
        assert scores == pytest.approx({"a": 1.0, "b": 1.0, "c": compute_cosine(QUERY, "blue sky")}, abs=PRECISION)

    async def test_any_language_is_ranked(self, store: Store) -> None:
        await _fill(store, {"zh": "红 苹果", "hi": "लाल सेब", "ru": "красное яблоко", "emoji": "🍎 red"})
        for query, key in (("苹果", "zh"), ("लाल सेब", "hi"), ("ЯБЛОКО", "ru"), ("red", "emoji")):
            assert (await store.search_keys(HOME, query=query))[0] == key

    async def test_a_query_may_be_long_and_odd(self, store: Store) -> None:
        await _fill(store, TEXTS)
        for query in ("apple " * 5000, "'; DROP TABLE store; --", "\t", "%s $x {y}", "@text:(red)|*"):
            assert set(await _search_scores(store, query)) == set(TEXTS)


class Updates(Checks, capability=Capability.VECTOR, index=make_index("text")):
    """Vectors follow the changes of their items."""

    async def test_a_changed_text_is_ranked_by_what_it_is_now(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"text": "blue sky"})
        scores = await _search_scores(store, QUERY)
        assert scores["both"] == pytest.approx(compute_cosine(QUERY, "blue sky"), abs=PRECISION)
        assert len(scores) == 4

    async def test_a_deleted_item_is_not_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.delete(HOME, "both")
        assert (await store.search_keys(HOME, query=QUERY))[0] == "more"
        assert "both" not in await store.search_keys(HOME, query=QUERY)

    async def test_an_item_put_again_after_its_deletion_has_no_old_vector(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.delete(HOME, "both")
        await store.put(HOME, "both", {"title": "nothing to embed"})
        assert "both" not in await _search_scores(store, QUERY)

    async def test_an_item_that_lost_its_text_is_no_longer_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"title": "nothing to embed"})
        assert "both" not in await _search_scores(store, QUERY)

    async def test_an_item_put_again_without_an_index_is_no_longer_ranked(self, store: Store) -> None:
        await _fill(store, TEXTS)
        await store.put(HOME, "both", {"text": QUERY}, index=False)
        assert "both" not in await _search_scores(store, QUERY)
        await store.put(HOME, "both", {"text": QUERY})
        assert (await _search_scores(store, QUERY))["both"] == pytest.approx(1.0, abs=PRECISION)

    async def test_the_last_put_of_a_batch_is_the_one_that_is_ranked(self, store: Store) -> None:
        await store.batch([PutOp(HOME, "a", {"text": "blue sky"}), PutOp(HOME, "a", {"text": QUERY})])
        await store.batch([PutOp(HOME, "b", {"text": QUERY}), PutOp(HOME, "b", None)])
        assert await _search_scores(store, QUERY) == pytest.approx({"a": 1.0}, abs=PRECISION)


def _embed_texts(texts: Sequence[str]) -> list[Vector]:
    return WordCounts().embed_documents(list(texts))


async def _aembed_texts(texts: Sequence[str]) -> list[Vector]:
    return _embed_texts(texts)


async def _check_ranking(store: Store) -> None:
    await _fill(store, TEXTS)
    assert await store.search_keys(HOME, query=QUERY) == ["both", "more", "one", "none"]


class EmbedFunctions(Checks, capability=Capability.VECTOR, index=make_index("text", embed=_embed_texts)):
    """An index whose ``embed`` is a function."""

    async def test_a_function_may_embed(self, store: Store) -> None:
        await _check_ranking(store)


class AsyncEmbedFunctions(Checks, capability=Capability.VECTOR, index=make_index("text", embed=_aembed_texts)):
    """An index whose ``embed`` is an async function."""

    async def test_an_async_function_may_embed_for_the_async_verbs(self, store: Store) -> None:
        """The sync methods cannot call it and may raise."""
        try:
            await _check_ranking(store)
        except Exception as error:
            if store.mode == "async" or isinstance(error, AssertionError):
                raise


async def _score_book(store: Store, query: str) -> float | None:
    scores = await _search_scores(store, query)
    return scores.get("book")


class WholeValues(Checks, capability=Capability.VECTOR_FIELDS, index=make_index()):
    """Without configured fields, the whole value is embedded."""

    async def test_the_whole_value_is_embedded_unless_told_otherwise(self, store: Store) -> None:
        await store.batch(
            [PutOp(HOME, "a", {"title": "red", "more": {"x": ["apple"]}}), PutOp(HOME, "b", {"title": "sky"})]
        )
        assert await store.search_keys(HOME, query=QUERY) == ["a", "b"]

    async def test_a_put_chooses_its_own_fields(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["title"])
        assert await _score_book(store, "garden") == pytest.approx(1.0, abs=PRECISION)
        assert await _score_book(store, QUERY) == pytest.approx(compute_cosine(QUERY, "garden"), abs=PRECISION)


class FieldPaths(Checks, capability=Capability.VECTOR_FIELDS, index=make_index("title")):
    """Fields by path, and one score for several vectors."""

    async def test_the_fields_of_the_configuration_are_embedded_alone(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK)
        assert await _score_book(store, "garden") == pytest.approx(1.0, abs=PRECISION)
        assert await _score_book(store, QUERY) == pytest.approx(compute_cosine(QUERY, "garden"), abs=PRECISION)

    async def test_a_path_leads_to_a_field(self, store: Store) -> None:
        paths = {
            "meta.subject": QUERY,
            "authors[0].name": "ann",
            "authors[-1].name": "bob",
            "chapters[1].text": "apple cake",
            "year": "1999",
        }
        for path, text in paths.items():
            await store.put(HOME, "book", BOOK, index=[path])
            assert await _score_book(store, text) == pytest.approx(1.0, abs=PRECISION), path

    async def test_each_element_of_a_list_has_a_vector_of_its_own(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["chapters[*].text"])
        for chapter in BOOK["chapters"]:
            assert await _score_book(store, chapter["text"]) == pytest.approx(1.0, abs=PRECISION)

    async def test_the_score_is_the_best_of_all_vectors(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["title", "meta.subject", "chapters[*].text"])
        texts = ["garden", QUERY, "blue sky", "apple cake", "green grass"]
        best = max(compute_cosine("apple", text) for text in texts)
        (hit,) = await store.search(HOME, query="apple")
        assert hit.key == "book"
        assert hit.score == pytest.approx(best, abs=PRECISION)

    async def test_a_limit_counts_items_and_not_vectors(self, store: Store) -> None:
        many = {"chapters": [{"text": f"red apple {'tree ' * number}"} for number in range(30)]}
        rest = {f"other {number}": {"title": "apple" + " pie" * number} for number in range(5)}
        await store.put(HOME, "many", many, index=["chapters[*].text"])
        await store.batch([PutOp(HOME, key, value) for key, value in rest.items()])
        assert await store.search_keys(HOME, query=QUERY, limit=4) == ["many", "other 0", "other 1", "other 2"]
        assert await store.search_keys(HOME, query=QUERY, limit=4, offset=4) == ["other 3", "other 4"]

    async def test_a_path_that_leads_nowhere_embeds_nothing(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["nothing", "meta.x.y", "authors[9].name", "title.x", "year[0]"])
        assert await _score_book(store, QUERY) is None
        assert await store.get(HOME, "book") is not None

    async def test_a_list_that_shrank_keeps_no_old_vectors(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["chapters[*].text"])
        await store.put(HOME, "book", {"chapters": [{"text": "blue sky"}]}, index=["chapters[*].text"])
        assert await _score_book(store, "apple cake") == pytest.approx(
            compute_cosine("apple cake", "blue sky"), abs=PRECISION
        )

    async def test_other_fields_replace_the_former_ones(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=["meta.subject", "chapters[*].text"])
        await store.put(HOME, "book", BOOK)
        assert await _score_book(store, QUERY) == pytest.approx(compute_cosine(QUERY, "garden"), abs=PRECISION)

    async def test_an_item_without_fields_to_embed_is_not_ranked(self, store: Store) -> None:
        await store.put(HOME, "book", BOOK, index=[])
        assert await _score_book(store, "garden") is None
        assert await store.search_keys(HOME) == ["book"]
