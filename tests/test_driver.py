import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseClosed, DatabaseUnavailable, EmbeddingMismatch, ModelUnavailable, QueryError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.llm.prompts import JUDGE
from kg_memory.memory.open import open_driver
from kg_memory.runtime.driver import CACHED_VECTORS, Clock
from kg_memory.runtime.effects import Ask, embed, fetch, now, score, work, write
from kg_memory.runtime.flow import Flow, every
from tests.children import ends_well_in_a_child
from tests.scripted import At, HashEmbeddings, Scripted, raising
from tests.waiting import until


@pytest.fixture(params=["sync", "async"])
def drive(request, driver, namespace):
    if request.param == "sync":
        return lambda flow: driver.run(flow, namespace)
    return lambda flow: asyncio.run(driver.arun(flow, namespace))


def test_embed_calls_the_model_once_per_text(drive, embeddings):
    first = drive(embed(["one", "two", "one"]))
    assert first[0] == first[2] != first[1]
    assert drive(embed(["two", "three"]))[0] == first[1]
    assert sorted(embeddings.embedded) == ["one", "three", "two"]


def test_embed_caches_queries_apart_from_documents(drive, embeddings):
    drive(embed(["one"]))
    drive(embed(["one"], role="query"))
    assert embeddings.embedded == ["one", "one"]


def test_empty_effects_call_no_model_and_create_no_graph(drive, embeddings, model, database, namespace):
    assert drive(embed([])) == drive(score("why?", [])) == drive(fetch("MATCH (n) RETURN n")) == []
    assert (embeddings.embedded, model.asked, namespace in database.namespaces()) == ([], [], False)


def test_embed_embeds_and_caches_texts_for_later(drive, embeddings):
    (one,) = drive(embed(["one"], later=["two", "three"]))
    assert drive(embed((), later=["four"])) == []
    assert embeddings.embedded == ["one", "two", "three", "four"]
    assert drive(embed(["one", "two", "four"]))[0] == one
    assert len(embeddings.embedded) == 4


def test_embed_calls_embed_ahead_of_a_local_model(driver, embeddings, namespace, monkeypatch):
    begun = []
    monkeypatch.setattr(type(embeddings), "embed_ahead", lambda _, texts: begun.extend(texts), raising=False)
    driver.run(embed(["one"], later=["two", "three"]), namespace)
    assert (begun, embeddings.embedded) == (["two", "three"], ["one"])


def test_embed_cache_evicts_old_vectors(driver, embeddings, namespace):
    driver.run(embed(["first"]), namespace)
    driver.run(embed([str(number) for number in range(CACHED_VECTORS)]), namespace)
    driver.run(embed(["first"]), namespace)
    assert embeddings.embedded.count("first") == 2


def test_score_calls_the_model_once_per_question_and_text(drive, model):
    first = drive(score("blue moon", ["blue", "a moon", "blue", "sea"]))
    assert first[0] == first[2] == first[1] > first[3] == 0
    assert drive(score("blue moon", ["sea", "blue moon"])) == [0, 2 * first[0]]
    assert drive(score("sea", ["sea"]))[0] > 0
    asked = [(fields["question"], [each["text"] for each in fields["texts"]]) for fields in model.asks("score")]
    assert asked == [("blue moon", ["a moon", "blue", "sea"]), ("blue moon", ["blue moon"]), ("sea", ["sea"])]


def test_write_creates_the_graph_with_its_indexes(drive, database, namespace):
    assert drive(write("CREATE (n:Own {name: $name}) RETURN n.name AS name", name="x")) == [{"name": "x"}]
    assert drive(fetch("MATCH (n:Own) RETURN n.name AS name")) == [{"name": "x"}]
    assert drive(fetch("CALL db.indexes() YIELD label RETURN count(label) AS n"))[0]["n"] > 5


def test_parallel_queries_return_in_order(drive):
    drive(write("CREATE (:Own)"))
    found = drive(every(fetch("RETURN $n AS n", n=number) for number in range(30)))
    assert [row["n"] for [row] in found] == list(range(30))


def test_ask_returns_the_answer_or_raises_in_the_flow(drive, model):
    def flow() -> Flow[str]:
        try:
            yield Ask(JUDGE, {"facts": []})
        except ModelUnavailable as error:
            return str(error)
        return "answered"

    assert drive(flow()) == "answered"

    model.rules["judge"] = raising(ModelUnavailable("down: wait"))
    assert drive(flow()) == "down: wait"


def test_driver_refuses_an_unknown_effect(drive):
    def flow() -> Flow[None]:
        yield "nonsense"

    with pytest.raises(TypeError, match="nonsense"):
        drive(flow())


def test_now_is_system_time_in_microseconds(drive):
    assert abs(drive(now()) - time.time() * 1e6) < 5e6


def test_clock_returns_unique_times_across_threads():
    clock = Clock()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: [clock() for _ in range(2000)], range(8)))
    everything = [each for one in told for each in one]
    assert len(set(everything)) == len(everything)
    assert all(one == sorted(one) for one in told)


def test_clock_advances_when_system_time_is_set_back(monkeypatch):
    clock = Clock()
    first = clock()
    monkeypatch.setattr(time, "time_ns", lambda: 1000)
    assert clock() == first + 1


COUNT = "MATCH (n:Episode) RETURN count(n) AS n"


def test_forked_child_has_its_own_threads(driver, namespace):
    def work() -> bool:
        found = driver.run(every([fetch("RETURN 1 AS one"), fetch("RETURN 2 AS two")]), namespace)
        return found == [[{"one": 1}], [{"two": 2}]]

    driver.run(write("RETURN 0 AS nothing"), namespace)
    assert work()
    assert ends_well_in_a_child(work)


def test_forked_child_does_not_wait_for_locks_of_its_parent(driver, database, namespace):
    driver.run(embed(["known"]), namespace)

    def work() -> bool:
        [vector], time = driver.run(embed(["known"]), namespace), driver.run(now(), namespace)
        return bool(vector and time) and driver.run(fetch("RETURN 1 AS one"), namespace) == []

    with driver.embedder.vectors._lock, driver.clock._lock, database._opening:  # as other threads hold them at times
        assert ends_well_in_a_child(work)


async def test_embed_runs_queries_in_parallel_and_in_order(namespace, database, model):
    class Slow(HashEmbeddings):
        both = threading.Barrier(2, timeout=300)

        def embed_query(self, text):
            self.both.wait()  # ends only when the other question is being embedded too
            return super().embed_query(text)

        async def aembed_query(self, text):
            return await asyncio.to_thread(self.embed_query, text)

    plain = HashEmbeddings()
    driver = open_driver(model, Slow(), database)
    for texts, vectors in (
        (["one", "two"], driver.run(embed(["one", "two"], role="query"), namespace)),
        (["three", "four"], await driver.arun(embed(["three", "four"], role="query"), namespace)),
    ):
        assert vectors == list(map(plain.embed_query, texts))
    driver.close()


NEAR = "CALL db.idx.vector.queryNodes('Episode', 'embedding', 1, vecf32($v)) YIELD node RETURN node.id AS id"
INDICES = "CALL db.indexes() YIELD label RETURN count(label) AS n"


@pytest.fixture
def vector(embeddings):
    return embeddings.embed_query("x")


@pytest.fixture
def deleted(drive, server, namespace):
    """A namespace whose graph another connection deletes after the driver has marked it as ready."""
    drive(write("CREATE (:Episode {id: 'a'})"))
    drive(fetch(COUNT))
    other = Database(At(server))
    other.delete(graph_key(namespace))
    other.close()


@pytest.mark.usefixtures("deleted")
def test_deleted_graph_is_empty_and_rebuilt_by_the_next_write(drive, vector):
    assert drive(fetch(NEAR, v=vector)) == []
    drive(write("CREATE (:Episode {id: 'b', embedding: vecf32($v)})", v=vector))
    assert drive(fetch(INDICES))[0]["n"] > 5
    assert drive(fetch(NEAR, v=vector)) == [{"id": "b"}]


@pytest.mark.usefixtures("deleted")
@pytest.mark.parametrize("effect", [fetch, write])
def test_recreated_graph_regains_indexes_when_a_query_fails(drive, vector, effect):
    drive(write("CREATE (:Episode {id: 'b', embedding: vecf32($v)})", v=vector))
    assert drive(effect(NEAR, v=vector)) == [{"id": "b"}]
    assert drive(fetch(COUNT)) == [{"n": 1}]


def test_invalid_query_raises_query_error(drive):
    drive(write("CREATE (:Episode {id: 'a'})"))
    for invalid in (write("MATCH"), fetch("CREATE (:Episode)")):
        with pytest.raises(QueryError, match="refused"):
            drive(invalid)


def test_missing_vector_index_raises_with_reembed_hint(drive, vector):
    drive(write("CREATE (:Episode {id: 'a'})"))
    drive(write("DROP VECTOR INDEX FOR (n:Episode) ON (n.embedding)"))
    with pytest.raises(EmbeddingMismatch, match="run `kg-memory reembed`"):
        until(lambda: drive(fetch(NEAR, v=vector)) is None)  # a busy server drops the index a moment later


class Moving(At):
    """A host that can move to another server."""

    def move(self, server):
        self._server = server


async def test_graph_is_rebuilt_on_a_replacement_server(server, namespace, tmp_path, vector):
    with embedded.join(tmp_path / "db", binaries.download_missing(), idle_seconds=0) as first:
        host = Moving(first)
        database = Database(host)
        driver = open_driver(Scripted(), HashEmbeddings(), database)
        await driver.arun(write("CREATE (:Episode)"), namespace)
        os.kill(database.client().info()["process_id"], signal.SIGKILL)
        with pytest.raises(DatabaseUnavailable):
            await driver.arun(write("CREATE (:Episode)"), namespace)
        host.move(server)
        await driver.arun(write("CREATE (:Episode {id: 'b', embedding: vecf32($v)})", v=vector), namespace)
        assert (await driver.arun(fetch(INDICES), namespace))[0]["n"] > 5
        driver.close()
        await database.aclose()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_running_queries_raise_database_closed_on_close(server, namespace, way):
    database = Database(At(server))
    driver = open_driver(Scripted(), HashEmbeddings(), database)
    driver.run(write("CREATE (:Episode)"), namespace)

    def work() -> None:
        while True:
            driver.run(every([fetch(COUNT) for _ in range(4)]), namespace)

    async def awork() -> None:
        while True:
            await driver.arun(every([fetch(COUNT) for _ in range(4)]), namespace)

    async def close_on_a_loop() -> list[Any]:
        tasks = [asyncio.create_task(awork()) for _ in range(3)]
        await asyncio.sleep(0.1)
        await database.aclose()
        driver.close()
        async with asyncio.timeout(20):
            return await asyncio.gather(*tasks, return_exceptions=True)

    if way == "async":
        ended = asyncio.run(close_on_a_loop())
    else:
        with ThreadPoolExecutor(3) as pool:
            working = [pool.submit(work) for _ in range(3)]
            time.sleep(0.1)
            driver.close()
            database.close()
            ended = [each.exception(60) for each in working]
    assert [type(each) for each in ended] == [DatabaseClosed] * 3
    assert {str(each) for each in ended} == {"this memory was closed; open another"}


def test_work_does_not_block_the_event_loop(driver, drive, namespace):
    assert drive(work(lambda: 6 * 7)) == 42
    begun, done = threading.Event(), threading.Event()

    def slow():
        begun.set()
        return done.wait(60)

    async def beside():
        working = asyncio.ensure_future(driver.arun(work(slow), namespace))
        await asyncio.to_thread(begun.wait, 10)
        done.set()
        return await working

    assert asyncio.run(beside())
