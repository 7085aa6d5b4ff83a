"""Many writers of one namespace at once, on a real database."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kg_memory.ingestion.graph import build
from kg_memory.memory.entities import read_entities
from kg_memory.memory.episodes import read_stats
from kg_memory.memory.listing import facts_about
from kg_memory.runtime.driver import Driver
from kg_memory.settings import Settings
from tests.ingestion.test_graph import links
from tests.scripted import Scripted

EIGHT = 8


@pytest.fixture
def said(namespace: str) -> Callable[..., dict[str, Any]]:
    """Return a function that makes a message of Ann."""
    return lambda content, at="2024-01-01", **given: {
        "content": content, "speaker": "Ann", "at": at, "namespace": namespace, **given,
    }  # fmt: skip


def eight_together(
    driver: Driver, settings: Settings, model: Scripted, each: Callable[[int], dict[str, Any]], *, at: str = "facts"
) -> list[Any]:
    """Add eight messages in eight threads, which wait for each other at their first call of the prompt *at*."""
    whole, all_there, thread = model.rules[at], threading.Barrier(EIGHT, timeout=300), threading.local()

    def meeting(fields: Any) -> Any:
        if not hasattr(thread, "met"):
            thread.met = True
            all_there.wait()
        return whole(fields)

    model.rules[at] = meeting
    graph = build(driver, settings).compile()
    with ThreadPoolExecutor(EIGHT) as pool:
        return [future.result() for future in [pool.submit(graph.invoke, each(number)) for number in range(EIGHT)]]


def test_concurrent_adds_create_each_new_entity_once(driver, settings, model, said, look, rows):
    eight_together(driver, settings, model, lambda n: said(f"I live in Oslo near Bob, says {n}", thread=str(n)))
    stats = look(read_stats())
    assert (stats.episodes, stats.waiting, stats.entities, stats.facts) == (8, 0, 3, 2)
    assert sorted(each.name for each in look(read_entities(10, 0))) == ["Ann", "Bob", "Oslo"]
    assert len(rows("MATCH (a:Alias) RETURN a.key AS key")) == 3
    assert all(each["times"] == 1 for each in rows("MATCH (t:Term) RETURN t.s AS s, count(t) AS times"))


def test_concurrent_adds_create_the_same_fact_once(driver, settings, model, said, look, rows):
    eight_together(driver, settings, model, lambda n: said(f"I live in Oslo, says {n}", thread=str(n)))
    assert len(look(facts_about("Ann", 100))) == 1
    assert rows("MATCH (:Episode)-[s:STATES]->(f:Fact) RETURN f.id AS id, count(s) AS n")[0]["n"] == 8
    assert look(read_stats()).current_facts == 1


def test_concurrent_threads_store_the_same_episode_once(driver, settings, model, said, look, rows):
    done = eight_together(driver, settings, model, lambda _: said("I live in Oslo."))
    assert sum(each["new"] for each in done) == 1
    assert sum(bool(each["facts"]) for each in done) == 1  # only the first writer read it
    stats = look(read_stats())
    assert (stats.episodes, stats.waiting, stats.entities, stats.facts, stats.current_facts) == (1, 0, 2, 1, 1)
    assert len(rows("MATCH (:Episode)-[s:STATES]->(:Fact) RETURN s.start AS start")) == 1


async def test_concurrent_tasks_store_the_same_episode_once(driver, settings, said, namespace):
    graph = build(driver, settings).compile()
    done = await asyncio.gather(*(graph.ainvoke(said("I live in Oslo.")) for _ in range(8)))
    assert sum(each["new"] for each in done) == 1
    stats = await driver.arun(read_stats(), namespace)
    assert (stats.episodes, stats.waiting, stats.entities, stats.facts, stats.current_facts) == (1, 0, 2, 1, 1)


def test_concurrent_contradictions_have_one_verdict_per_pair(driver, settings, model, said, look, rows):
    """Only one of the contradicting facts is current."""
    build(driver, settings).compile().invoke(said("I live in Bergen."))
    messages = [said(f"I live in {('Oslo', 'Paris')[n % 2]}.", f"2024-02-0{n + 1}") for n in range(EIGHT)]
    eight_together(driver, settings, model, messages.__getitem__, at="judge")
    assert look(read_stats()).current_facts == 1
    judged = rows("MATCH (f:Fact)-[j:JUDGED]->(v:Verdict) RETURN v.id AS id, collect(f.sentence) AS facts")
    pairs = [frozenset(row["facts"]) for row in judged]
    assert all(len(row["facts"]) == 2 for row in judged)
    assert len(pairs) == len(set(pairs)) == 3


def test_concurrent_messages_form_one_chain(driver, settings, model, said, rows):
    eight_together(driver, settings, model, lambda n: said(f"I see Oslo {n}", f"2024-01-0{n + 1}"))
    assert [(before[-1], after[-1]) for before, after in links(rows)] == [(str(n), str(n + 1)) for n in range(7)]
