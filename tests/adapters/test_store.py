"""Behaviour of `KGStore` beyond the contract of LangGraph, which the conformance suite tests."""

import asyncio
import threading
from datetime import UTC, datetime
from unittest.mock import Mock
from uuid import uuid4

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from graphs import store as served
from kg_memory import GraphMemory
from kg_memory.adapters import KGStore
from kg_memory.adapters.store import write as changing
from kg_memory.errors import DatabaseClosed, DatabaseUnavailable, EmbeddingMismatch, InputError, SettingsError
from tests.scripted import HashEmbeddings
from tests.waiting import until


@pytest.fixture
def name():
    return str(uuid4())


@pytest.fixture
def store(memory, name):
    with KGStore(memory, name=name, index=False) as opened:
        yield opened


@pytest.fixture
def round_trips(store, monkeypatch):
    """A mock that has a call for each round trip to the database: `query_flow` or `read_all_flow`."""
    calls, database = Mock(), store.memory.driver.store.database
    for verb in ("query_flow", "read_all_flow"):
        getattr(calls, verb).side_effect = getattr(database, verb)
        monkeypatch.setattr(database, verb, getattr(calls, verb))
    return calls


def keys(items):
    return [item.key for item in items]


def test_store_batch_reads_and_writes_in_one_round_trip_each(store, round_trips):
    store.put(("a",), "0", {"n": 0})
    store.get(("a",), "0")
    round_trips.reset_mock()
    gets = [GetOp(("a", str(each % 3)), str(each)) for each in range(100)]
    others = [SearchOp(("a",)), SearchOp(("b",), filter={"n": {"$gt": 1}}), ListNamespacesOp()]
    puts = [PutOp(("a",), str(each), {"n": each}) for each in range(100)]
    results = store.batch([*puts[:50], *gets, *others, *puts[50:]])
    read, written = round_trips.mock_calls
    assert (read[0], len(read.args[1]), written[0]) == ("read_all_flow", 4, "query_flow")
    assert results[150][0].key == "0"
    assert results[152] == [("a",)]
    assert keys(store.search(("a",), limit=3)) == ["99", "98", "97"]


def self_containing():
    found: dict[str, object] = {}
    found["x"] = found
    return found


BAD = (
    (PutOp(("a",), "k", {"x": [1, datetime.now(UTC)]}), r"value\.x\[1\] is a datetime"),
    (PutOp(("a",), "k", {"a": {1: 2}}), r"value\.a has the key 1 of type int"),
    (PutOp(("a",), "k", {"x": 10**5000}), "too many digits .* store it as text"),
    (PutOp(("a",), "k", self_containing()), "nested too deeply, or contains itself"),
    (PutOp(("a",), "k", "text"), "value must be a dict"),
    (PutOp("users", "k", {}), "namespace must be a tuple"),
    (PutOp(("a.b",), "k", {}), "cannot contain periods"),
    (GetOp(("",), "k"), "cannot be empty"),
    (ListNamespacesOp((MatchCondition("infix", ("a",)),)), "must be 'prefix' or 'suffix'"),
    (PutOp(("a",), "k", {"x": 1}, ttl=float("nan")), "ttl must be a number of minutes"),
    (PutOp(("a",), "k", {"x": 1}, ttl=-1), "ttl must be a number of minutes"),
    (PutOp(("a",), "k", {"x": 1}, ttl="5"), "ttl must be a number of minutes"),
    (PutOp(("a",), "k", {"x": 1}, index=True), "list of paths"),
    (SearchOp(("a",), limit=-1), "limit must be an int, 0 or more, got -1"),
    (SearchOp(("a",), offset=1.5), "offset must be an int, 0 or more, got 1.5"),
    (SearchOp(("a",), query=b"x"), "query must be a str"),
    (SearchOp(("a",), filter={"x": {"$in": 1}}), "operator must be one of"),
    (SearchOp(("a",), filter=self_containing()), "contains itself; give a flatter one"),
    (ListNamespacesOp(max_depth=-1), "max_depth must be an int, 0 or more, got -1"),
    ("get", "op must be a GetOp"),
)


async def test_store_batch_with_bad_op_raises_and_writes_nothing(store):
    for op, message in BAD:
        with pytest.raises(ValueError, match=message):
            store.batch([PutOp(("a",), "good", {"n": 1}), op])
        with pytest.raises(ValueError, match=message):
            await store.abatch([PutOp(("a",), "good", {"n": 1}), op])
    assert store.list_namespaces() == []


def test_store_writes_large_batch_in_parts(store, monkeypatch):
    monkeypatch.setattr(changing, "LARGEST_AT_ONCE", 1000)
    store.batch([PutOp(("a",), str(each), {"x": "y" * 300}) for each in range(20)] + [PutOp(("a",), "0", None)])
    assert sorted(keys(store.search(("a",), limit=100)), key=int) == [str(each) for each in range(1, 20)]


def test_store_name_identifies_items_across_instances(memory, store, name):
    store.put(("a",), "k", {"n": 1})
    assert KGStore(memory, name=name).get(("a",), "k").value == {"n": 1}
    assert KGStore(memory, name=name + "x").get(("a",), "k") is None
    assert memory.data.namespaces() == [each for each in memory.data.namespaces() if each != name]


def test_store_updated_at_grows_if_clock_goes_back(memory, store):
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    stopped = store._driver.clock()
    store._driver.clock = lambda: stopped - 10**9
    for number in range(3):
        store.put(("a",), "k", {"n": number})
        again = store.get(("a",), "k")
        assert again.updated_at > first.updated_at
        assert again.created_at == first.created_at
        first = again


async def test_store_combines_parallel_puts_and_refuses_only_bad_one(store, round_trips):
    await store.aput(("a",), "0", {"n": 0})
    round_trips.reset_mock()
    puts = [store.aput(("a",), str(each), {"n": each}) for each in range(400)]
    results = await asyncio.gather(*puts, store.aput(("a",), "bad", {"n": object()}), return_exceptions=True)
    assert isinstance(results[-1], InputError)
    assert len(round_trips.mock_calls) <= 2
    assert len(await store.asearch(("a",), limit=1000)) == 400


async def test_store_get_and_list_do_not_wait_for_vector_search(memory, name):
    class Slow(HashEmbeddings):
        async def aembed_query(self, text):
            await searched.wait()
            return self.embed_query(text)

    searched = asyncio.Event()
    store = KGStore(memory, name=name, index={"embed": Slow()})
    await store.aput(("a",), "k", {"x": "word"})
    search = asyncio.create_task(store.asearch(("a",), query="word"))
    await asyncio.sleep(0.01)
    assert (await asyncio.wait_for(store.aget(("a",), "k"), 60)).key == "k"
    assert keys(await asyncio.wait_for(store.asearch(("a",)), 60)) == ["k"]
    assert await asyncio.wait_for(store.alist_namespaces(), 60) == [("a",)]
    assert not search.done()
    searched.set()
    assert keys(await search) == ["k"]


async def test_store_writes_each_parallel_batch_in_one_part(store, monkeypatch):
    written, to_parts = [], changing.parts

    def parts(rows, size):
        for part in to_parts(rows, size):
            written.append([row.namespace[0] for row in part])
            yield part

    monkeypatch.setattr(changing, "parts", parts)
    puts = {name: [PutOp((name,), str(number), {"n": number}) for number in range(400)] for name in "abc"}
    await asyncio.gather(*map(store.abatch, puts.values()))
    assert all(any(part.count(name) == 400 for part in written) for name in puts)


def test_store_sweep_creates_no_graph(memory, name):
    assert KGStore(memory, name=name).sweep_ttl() == 0
    assert not any(name in key for key in memory.driver.store.database.command("GRAPH.LIST"))


LEFT = "MATCH (i:Item) WHERE i.key = '\"swept\"' RETURN i.id AS id"


async def test_langgraph_server_store_deletes_expired_items(server, settings, embeddings, monkeypatch):
    own = GraphMemory(settings.with_(url=server.url), model="offline", embeddings=embeddings)
    monkeypatch.setattr(served, "memory", own)
    monkeypatch.setattr(served, "TTL", {**served.TTL, "sweep_interval_minutes": 0.0005})
    async with served.open_store() as store:
        await store.aput(("a",), "swept", {"x": 1}, ttl=0)
        key = store._driver.key(store.name)
        database = store._driver.store.database
        await asyncio.to_thread(until, lambda: not database.query(key, LEFT, {}, write=False))
    assert not any(thread.name == "kg-memory-sweeper" for thread in threading.enumerate())


async def test_store_cancelled_batch_is_written_whole_or_not_at_all(store):
    async def put(number):
        await store.abatch([PutOp(("a", str(number)), str(each), {"n": number}) for each in range(3)])
        return number

    tasks = [asyncio.create_task(put(number)) for number in range(60)]
    for number in range(0, 60, 3):
        await asyncio.sleep(0.001)
        tasks[number].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    put_whole = {int(namespace[1]) for namespace in store.list_namespaces()}
    assert put_whole >= {number for number in done if isinstance(number, int)} >= set(range(60)) - set(range(0, 60, 3))
    assert len(store.search(("a",), limit=1000)) == 3 * len(put_whole)


async def test_store_does_not_block_event_loop(memory, name):
    with blockbuster_ctx():
        async with KGStore(memory, name=name) as store:
            await asyncio.gather(*(store.aput(("a",), str(each), {"x": f"word{each}"}, ttl=5) for each in range(20)))
            assert (await store.asearch(("a",), query="word3"))[0].key == "3"
            assert await store.asweep_ttl() == 0
            assert await store.alist_namespaces() == [("a",)]


def test_store_sweep_deletes_expired_items(memory, name):
    with KGStore(memory, name=name, ttl={"default_ttl": 0, "refresh_on_read": False}) as store:
        store.put(("a",), "gone", {"n": 1})
        store.put(("b",), "kept", {"n": 1}, ttl=None)
        store.put(("b",), "later", {"n": 1}, ttl=10)
        store.put(("b",), "gone", {"n": 1})
        assert store.sweep_ttl() == 2
        assert store.list_namespaces() == [("b",)]
        assert sorted(keys(store.search(()))) == ["kept", "later"]
        assert store.sweep_ttl() == 0


def test_sweeper_deletes_expired_items_until_stopped(store):
    store.put(("a",), "k", {"n": 1}, ttl=0)
    ended = store.start_ttl_sweeper(0.0005)
    assert store.start_ttl_sweeper(0.0005) is ended
    until(lambda: not store.search(("a",)))
    assert not ended.done()
    assert store.stop_ttl_sweeper(60)
    assert ended.done()
    assert store.stop_ttl_sweeper()
    assert not any(thread.name == "kg-memory-sweeper" for thread in threading.enumerate())


async def test_sweeper_start_can_be_awaited(store):
    started = await store.start_ttl_sweeper(0.0005)
    assert not started.done()
    started.cancel()
    assert await asyncio.to_thread(store.stop_ttl_sweeper, 5)


def test_store_applies_filters_of_the_api_server(store):
    """Features: H3."""
    store.put(("a",), "k", {"kind": "note", "author": {"name": "Ann"}})
    store.put(("a",), "l", {"kind": "task", "author": {"name": "Bo"}})
    both = {"$and": [{"kind": "note"}, {"author.name": "Ann"}]}
    assert [item.key for item in store.search(("a",), filter=both)] == ["k"]
    assert [item.key for item in store.search(("a",), filter={"$not": both})] == ["l"]
    assert len(store.embeddings.embed_query("Ann")) > 0 if store.index_config is not None else store.embeddings is None


def test_sweeper_cancel_stops_it_and_it_can_restart(store):
    first = store.start_ttl_sweeper(0.0005)
    assert first.cancel()
    again = store.start_ttl_sweeper(0.0005)
    assert again is not first
    assert store.stop_ttl_sweeper(60)
    assert again.result(60) is None
    until(lambda: not any(thread.name == "kg-memory-sweeper" for thread in threading.enumerate()))


def test_sweeper_continues_after_database_outage(store, monkeypatch, caplog):
    answers = iter([DatabaseUnavailable("away: wait"), 0, 0])
    called = threading.Event()

    def sweep():
        answer = next(answers, 0)
        if isinstance(answer, Exception):
            raise answer
        called.set()
        return answer

    monkeypatch.setattr(store._sweeper, "_sweep", sweep)
    store.start_ttl_sweeper(0.0001)
    assert called.wait(120)
    assert store.stop_ttl_sweeper(60)
    assert "could not be deleted" in caplog.text


def test_store_close_closes_its_own_memory(server, monkeypatch, name):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    with KGStore(name=name, index=False) as store:
        store.put(("a",), "k", {"n": 1})
    with pytest.raises(DatabaseClosed, match="was closed"):
        store.get(("a",), "k")


async def test_store_close_leaves_given_memory_open(memory, name):
    async with KGStore(memory, name=name) as store:
        await store.aput(("a",), "k", {"n": 1})
    with pytest.raises(DatabaseClosed, match="was closed"):
        await store.aget(("a",), "k")
    assert (await KGStore(memory, name=name).aget(("a",), "k")).value == {"n": 1}


def test_store_refuses_vectors_of_another_model(memory, name):
    KGStore(memory, name=name).put(("a",), "k", {"x": "y"})
    new = KGStore(memory, name=name, index={"embed": HashEmbeddings(name="other")})
    for call in (lambda: new.search(("a",), query="y"), lambda: new.put(("a",), "k", {}), lambda: new.get(("a",), "k")):
        with pytest.raises(EmbeddingMismatch, match=r"of 'hash' \(64 dimensions\), not of 'other'"):
            call()
    longer = KGStore(memory, name=name, index={"embed": HashEmbeddings(dimensions=65)})
    with pytest.raises(EmbeddingMismatch, match=r"\(64 dimensions\), not of 'hash' \(65\)"):
        longer.search(("a",), query="y")
    same = KGStore(memory, name=name, index={"embed": HashEmbeddings(), "dims": 64})
    assert same.search(("a",), query="y")[0].score is not None
    assert KGStore(memory, name=name, index=False).get(("a",), "k").value == {"x": "y"}


@pytest.mark.parametrize("index", ["text", ["text"], 1])
def test_store_refuses_invalid_index(memory, index):
    with pytest.raises(SettingsError, match="index must be a bool or a dict"):
        KGStore(memory, index=index)
