from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kg_memory.driver import REMEMBERED_VECTORS, Clock, Driver
from kg_memory.effects import Ask, embed, now, read, write
from kg_memory.errors import ModelUnavailable
from kg_memory.flow import Flow, every
from kg_memory.prompts import DEDUPE
from tests.scripted import HashEmbeddings, Scripted


@pytest.fixture(params=["sync", "async"])
def drive(request, driver, namespace):
    if request.param == "sync":
        return lambda flow: driver.run(flow, namespace)
    return lambda flow: asyncio.run(driver.arun(flow, namespace))


def test_a_text_is_embedded_once_however_often_it_is_asked_for(drive, embeddings):
    first = drive(embed(["one", "two", "one"]))
    assert first[0] == first[2] != first[1]
    assert drive(embed(["two", "three"]))[0] == first[1]
    assert sorted(embeddings.embedded) == ["one", "three", "two"]


def test_a_question_is_not_answered_by_the_vector_of_a_document(drive, embeddings):
    drive(embed(["one"]))
    drive(embed(["one"], role="query"))
    assert embeddings.embedded == ["one", "one"]


def test_no_texts_need_no_embedding_model(drive, embeddings):
    assert drive(embed([])) == []
    assert embeddings.embedded == []


def test_old_vectors_are_forgotten(driver, embeddings, namespace):
    driver.run(embed(["first"]), namespace)
    driver.run(embed([str(number) for number in range(REMEMBERED_VECTORS)]), namespace)
    driver.run(embed(["first"]), namespace)
    assert embeddings.embedded.count("first") == 2


def test_a_read_of_a_namespace_that_is_not_there_finds_nothing_and_makes_no_graph(drive, database, namespace):
    assert drive(read("MATCH (n) RETURN n")) == []
    assert namespace not in database.namespaces()


def test_a_read_needs_no_embedding_model(drive, embeddings, namespace):
    drive(read("MATCH (n) RETURN n"))
    assert embeddings.embedded == []


def test_a_write_makes_the_graph_and_is_read_back(drive, database, namespace):
    assert drive(write("CREATE (n:Own {name: $name}) RETURN n.name AS name", name="x")) == [{"name": "x"}]
    assert drive(read("MATCH (n:Own) RETURN n.name AS name")) == [{"name": "x"}]
    assert drive(read("CALL db.indexes() YIELD label RETURN count(label) AS n"))[0]["n"] > 5


def test_queries_side_by_side_are_answered_in_order(drive):
    drive(write("CREATE (:Own)"))
    found = drive(every(read("RETURN $n AS n", n=number) for number in range(30)))
    assert [row["n"] for [row] in found] == list(range(30))


def test_questions_go_to_the_model_and_its_errors_into_the_flow(drive, model):
    def flow() -> Flow[str]:
        try:
            yield Ask(DEDUPE, {"facts": []})
        except ModelUnavailable as error:
            return str(error)
        return "answered"

    assert drive(flow()) == "answered"

    def down(_):
        raise ModelUnavailable("down: wait")

    model.rules["dedupe"] = down
    assert drive(flow()) == "down: wait"


def test_what_is_no_effect_is_refused(drive):
    def flow() -> Flow[None]:
        yield "nonsense"

    with pytest.raises(TypeError, match="nonsense"):
        drive(flow())


def test_the_clock_is_the_systems_in_microseconds(drive):
    assert abs(drive(now()) - time.time() * 1e6) < 5e6


def test_the_clock_never_tells_the_same_time_twice_whoever_asks():
    clock = Clock()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: [clock() for _ in range(2000)], range(8)))
    everything = [each for one in told for each in one]
    assert len(set(everything)) == len(everything)
    assert all(one == sorted(one) for one in told)


def test_the_clock_goes_on_when_the_systems_is_set_back(monkeypatch):
    clock = Clock()
    first = clock()
    monkeypatch.setattr(time, "time_ns", lambda: 1000)
    assert clock() == first + 1


def test_two_drivers_of_one_namespace_see_each_others_writes(driver, database, namespace):
    other = Driver(Scripted(), HashEmbeddings(), database)
    assert other.run(read("MATCH (n:Own) RETURN n.name AS name"), namespace) == []
    driver.run(write("CREATE (:Own {name: 'x'})"), namespace)
    assert other.run(read("MATCH (n:Own) RETURN n.name AS name"), namespace) == [{"name": "x"}]
    other.close()
