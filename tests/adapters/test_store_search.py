"""Search by meaning in LangGraph's store: ranking, fields, models, and many items."""

import math
from uuid import uuid4

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from kg_memory.adapters import KGStore
from kg_memory.adapters.store import read
from kg_memory.errors import EmbeddingError
from tests.scripted import HashEmbeddings


class Colours(Embeddings):
    """Counts of three words; a text without them has no direction."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [float(text.split().count(word)) for word in ("red", "green", "blue")]


@pytest.fixture
def make(memory):
    name = str(uuid4())

    def store(**index):
        return KGStore(memory, name=name, index={"embed": Colours(), **index})

    return store


def scores(items):
    return {item.key: item.score and round(item.score, 5) for item in items}


def test_search_scores_zero_for_texts_with_zero_vector(make):
    store = make(fields=["a"])
    for key, text in {"red": "red", "nothing": "colourless", "empty": ""}.items():
        store.put(("x",), key, {"a": text})
    assert scores(store.search(("x",), query="red")) == {"red": 1.0, "nothing": 0.0, "empty": 0.0}
    assert set(scores(store.search(("x",), query="colourless"))) == {"red", "nothing", "empty"}
    assert all(math.isfinite(item.score) for item in store.search(("x",), query="?"))


async def test_vectors_are_deleted_with_their_items(make):
    store = make(fields=["a", "b"])
    key, database = store._driver.key(store.name), store.memory.driver.store.database

    def vectors():
        return len(database.query(key, "MATCH (v:Vector) RETURN id(v) AS id", {}, write=False))

    await store.aput(("x",), "k", {"a": "red", "b": "blue"}, ttl=10)
    await store.aput(("x",), "l", {"a": "red"}, ttl=0)
    assert vectors() == 3
    await store.aput(("x",), "k", {"a": "red"})
    assert vectors() == 2
    assert store.sweep_ttl() == 1
    assert vectors() == 1
    await store.adelete(("x",), "k")
    assert vectors() == 0


@pytest.mark.parametrize(
    "filtered", [None, {"even": True}, {"n": {"$gte": 30}}, {"even": True, "n": {"$lt": 20}}, {"n": 7}]
)
@pytest.mark.parametrize("compared", [10_000, 10])
def test_vector_index_matches_exhaustive_comparison(make, monkeypatch, filtered, compared):
    monkeypatch.setattr(read, "COMPARED", compared)
    monkeypatch.setattr(read, "RARE", 5)
    store = make(fields=["a", "b"])
    texts = [" ".join(["red"] * (each % 7) + ["green"] * (each % 5) + ["blue"] * (each % 3)) for each in range(60)]
    store.batch(
        PutOp(("x", str(each % 2)), str(each), {"a": text, "b": texts[-each], "n": each, "even": each % 2 == 0})
        for each, text in enumerate(texts)
    )
    model = Colours()

    def cosine(one, other):
        one, other = model.embed_query(one), model.embed_query(other)
        length = math.hypot(*one) * math.hypot(*other)
        return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else 0.0

    for prefix in (("x",), ("x", "1")):
        items = store.search(prefix, filter=filtered, limit=100)
        expected = sorted((max(cosine("red blue", item.value[f]) for f in "ab") for item in items), reverse=True)
        for limit, offset in ((5, 0), (10, 5), (100, 0)):
            found = store.search(prefix, query="red blue", filter=filtered, limit=limit, offset=offset)
            assert [item.score for item in found] == pytest.approx(expected[offset : offset + limit], abs=1e-5)


def test_search_pages_do_not_overlap_if_index_misses_items(make, monkeypatch):
    """An index of 12,500 vectors misses items by itself; here, lookups of less than 200 miss the nearest."""
    monkeypatch.setattr(read, "FIRST", 100)
    missed = "WITH n, i, distance\nWHERE $limit >= 200 OR i.key <> '\"400\"'\n"
    query = read.cypher.NEAREST.replace("WITH i, distance\nORDER BY", f"{missed}WITH i, distance\nORDER BY")
    monkeypatch.setattr(read.cypher, "NEAREST", query)
    monkeypatch.setattr(read, "COMPARED", 10)
    store = make(fields=["a"])
    store.batch(PutOp(("x",), str(n), {"a": "red " * n + "blue " * (400 - n)}) for n in range(401))
    for limit in (10, 50):
        pages = [store.search(("x",), query="red", limit=limit, offset=offset) for offset in range(0, 401, limit)]
        keys = [item.key for page in pages for item in page]
        assert keys[0] == "399"
        assert len(keys) == len(set(keys)) == 401
        assert all(page == sorted(page, key=lambda item: -item.score) for page in pages)


@pytest.mark.parametrize("rest", [{}, {"n": {"$gte": 0}}])
def test_search_accepts_any_limit_and_offset(make, rest):
    store = make(fields=["a"])
    store.batch(PutOp(("x",), str(each), {"a": "red", "n": each}, index=None if each else False) for each in range(3))
    for query in (None, "red"):
        assert len(store.search(("x",), query=query, filter=rest, limit=2**70)) == 3
        assert len(store.search(("x",), query=query, filter=rest, limit=2**63, offset=1)) == 2
        assert store.search(("x",), query=query, filter=rest, offset=2**70) == []


@pytest.mark.parametrize("query", [None, "red"])
def test_search_reads_large_values_in_small_pages(make, monkeypatch, query):
    monkeypatch.setattr(read, "PAGE", 2)
    monkeypatch.setattr(read, "LARGEST_PAGE", 5_000)
    looked = []
    compile_filter = read.codec.compile_filter
    store = make(fields=["a"])
    store.batch(PutOp(("x",), str(each), {"a": "red", "n": each, "t": "y" * 1_000}) for each in range(30))

    def counting(conditions):
        matches = compile_filter(conditions)
        return lambda value: looked.append(1) or matches(value)

    monkeypatch.setattr(read.codec, "compile_filter", counting)
    assert len(store.search(("x",), query=query, filter={"n": {"$gte": 0}}, limit=3)) == 3
    assert len(looked) <= 2 + 4 + 3
    assert len(store.search(("x",), query=query, filter={"n": {"$gte": 7}}, limit=50)) == 23


def test_search_filters_before_limit_over_many_pages(make, monkeypatch):
    monkeypatch.setattr(read, "PAGE", 3)
    monkeypatch.setattr(read, "LONGEST_PAGE", 10)
    store = make()
    store.batch(PutOp(("x",), str(each), {"n": each}, index=False) for each in range(50))
    found = store.search(("x",), filter={"n": {"$lt": 9}}, limit=5, offset=2)
    assert [item.value["n"] for item in found] == [6, 5, 4, 3, 2]
    assert len(store.search(("x",), filter={"n": {"$gte": 0}}, limit=100)) == 50
    assert store.search(("x",), limit=0, query="red") == store.search(("x",), offset=60) == []


def test_put_refuses_vector_of_wrong_length(make):
    store = make(dims=4)
    with pytest.raises(EmbeddingError, match="3 dimensions, not dims=4: fix dims"):
        store.put(("x",), "k", {"a": "red"})
    assert store.get(("x",), "k") is None


def test_index_added_later_covers_new_items_only(memory):
    name = str(uuid4())
    KGStore(memory, name=name, index=False).put(("x",), "old", {"text": "red"})
    store = KGStore(memory, name=name, index={"embed": HashEmbeddings()})
    assert [(item.key, item.score) for item in store.search(("x",), query="red")] == [("old", None)]
    store.put(("x",), "new", {"text": "red"})
    assert [item.key for item in store.search(("x",), query="red")] == ["new", "old"]


def test_batch_embeds_all_texts_in_one_call(memory):
    model = HashEmbeddings()
    calls = []
    embed = model.embed_documents
    model.embed_documents = lambda texts: calls.append(len(texts)) or embed(texts)
    store = KGStore(memory, name=str(uuid4()), index={"embed": model, "fields": ["a", "b"]})
    store.batch(PutOp(("x",), str(each), {"a": f"word{each}", "b": "same"}) for each in range(30))
    assert calls == [31]
