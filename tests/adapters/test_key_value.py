"""The key-value store: LangChain's own suites, and what they leave out."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

from kg_memory.adapters import KGKeyValueStore, key_value
from kg_memory.errors import DatabaseClosed, InputError
from kg_memory.memory.memory import GraphMemory


@pytest.fixture
def store(memory):
    with KGKeyValueStore(memory, name=str(uuid4())) as opened:
        yield opened


class TestSync(BaseStoreSyncTests[Any]):
    @pytest.fixture
    def kv_store(self, store) -> BaseStore[str, Any]:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"one", b"\x00\xff", b""


class TestAsync(BaseStoreAsyncTests[Any]):
    @pytest.fixture
    async def kv_store(self, store) -> BaseStore[str, Any]:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[Document, str, dict[str, Any]]:
        return Document(page_content="x", metadata={"n": 1}, id="i"), "text", {"a": [1, None, 2.5]}


VALUES = {
    "bytes": bytes(range(256)),
    "no bytes": b"",
    "text": "日本 \x00 \ud800 \"'\\ 🦊",
    "document": Document(page_content="Hello\x00", metadata={"n": 10**30, "tags": ["a"], "page_content": "x"}, id="7"),
    "bare document": Document(page_content=""),
    "plain": {"bytes": "eA==", "document": [1, 2.5, None, True]},
    "number": 0,
    "": "of the empty key",
    "\x00": 1,
    " padded ": 2,
    "k" * 100_000: 3,
    "\ud800": 4,
    "emb`'\"\\$id": 5,
}


async def test_every_value_comes_back_as_it_was_by_either_way(store):
    store.mset(list(VALUES.items()))
    assert store.mget([*VALUES, "none"]) == await store.amget([*VALUES, "none"]) == [*VALUES.values(), None]
    assert sorted(store.yield_keys()) == sorted(VALUES) == sorted([key async for key in store.ayield_keys()])


async def test_the_last_value_of_a_key_counts(store):
    store.mset([("a", 1), ("a", b"2")])
    assert store.mget(["a", "a"]) == [b"2", b"2"]
    await store.amset([("a", "3")])
    assert list(store.yield_keys()) == ["a"]
    await store.amdelete(["a", "none"])
    assert await store.amget(["a"]) == [None]


@pytest.mark.parametrize(
    "bad", [object(), datetime.now(UTC), {1: 2}, {"x": b"y"}, None, Document("x", metadata={"a": {1}})]
)
async def test_a_bad_value_stores_nothing_of_its_batch(store, bad):
    with pytest.raises(InputError, match="the value of 'b'"):
        store.mset([("a", 1), ("b", bad)])
    with pytest.raises(InputError, match="the value of 'b'"):
        await store.amset([("a", 1), ("b", bad)])
    assert store.mget(["a", "b"]) == [None, None]


def test_a_key_that_is_no_string_is_refused(store):
    for key in (1, None, b"k", ("a",)):
        for call in (store.mget, store.mdelete, lambda keys: store.mset([(each, 1) for each in keys])):
            with pytest.raises(InputError, match="key must be a str"):
                call([key])


def test_a_prefix_is_taken_by_the_letter(store):
    keys = ["a", "a%1", "a_1", "a*1", "ab", "A", "日本", "a\x00b", "🦊", "\ud83d", "\\x", '"x', ""]
    store.mset([(key, 1) for key in keys])
    for prefix in ("a", "a%", "a_", "a*", "*", "日", "a\x00", "\ud83d", "", "none", "\\", '"'):
        assert sorted(store.yield_keys(prefix=prefix)) == sorted(key for key in keys if key.startswith(prefix))


async def test_keys_come_in_pages_while_others_are_deleted(store, monkeypatch):
    monkeypatch.setattr(key_value, "FIRST_PAGE", 3)
    monkeypatch.setattr(key_value, "LONGEST_PAGE", 5)
    keys = [f"k{number}" for number in range(40)]
    store.mset([(key, 1) for key in keys])
    assert sorted([key async for key in store.ayield_keys()]) == sorted(keys)
    seen = []
    for key in store.yield_keys(prefix="k"):
        seen.append(key)
        store.mdelete([key])
    assert sorted(seen) == sorted(keys)
    assert list(store.yield_keys()) == []


def test_many_pairs_are_stored_and_found(store):
    store.mset([(str(number), number) for number in range(1200)])
    assert store.mget([str(number) for number in range(1200)]) == list(range(1200))
    assert len(list(store.yield_keys())) == 1200


def test_stores_of_other_names_and_the_memory_know_nothing_of_it(memory, store):
    store.mset([("a", 1)])
    assert KGKeyValueStore(memory, name=store.name + "x").mget(["a"]) == [None]
    assert KGKeyValueStore(memory, name=store.name).mget(["a"]) == [1]
    assert store.name not in memory.data.namespaces()


async def test_many_callers_at_once(store):
    await asyncio.gather(*(store.amset([(str(number), number)]) for number in range(200)))
    assert await asyncio.gather(*(store.amget([str(number)]) for number in range(200))) == [[n] for n in range(200)]


def test_a_memory_of_its_own_is_closed_with_it(server, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    with KGKeyValueStore(name=str(uuid4())) as store:
        store.mset([("a", 1)])
        assert isinstance(store.memory, GraphMemory)
    with pytest.raises(DatabaseClosed, match="was closed"):
        store.mget(["a"])


async def test_a_memory_of_its_own_is_closed_with_it_on_an_event_loop(server, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    async with KGKeyValueStore(name=str(uuid4())) as store:
        await store.amset([("a", 1)])
    with pytest.raises(DatabaseClosed, match="was closed"):
        await store.amget(["a"])
