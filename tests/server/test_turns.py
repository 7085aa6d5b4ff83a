"""Queries of one API key wait for each other, not those of other keys for them."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kg_memory.contrib.server import limits
from kg_memory.contrib.server.limits import Turns
from kg_memory.contrib.server.reader import BackgroundReader
from kg_memory.falkor.graph_store import GraphStore
from kg_memory.runtime.effects import in_thread
from kg_memory.runtime.flow import TURN
from tests.waiting import until

QUESTION = {"question": "Where does Ann live?"}


@pytest.mark.parametrize(("active", "most_beside"), [(600, 1), (0, 21)])
async def test_a_key_runs_few_queries_beside_another(monkeypatch, active, most_beside):
    monkeypatch.setattr(limits, "ACTIVE", active)
    turns, running, most = Turns(), Counter(), Counter()

    async def query(key):
        async with turns.take(key):
            running[key] += 1
            most[key] = max(most[key], running[key])
            try:
                await asyncio.sleep(0.001)
            finally:
                running[key] -= 1

    await asyncio.gather(*(query("a") for _ in range(20)))
    assert most == {"a": 20}
    most.clear()
    await query("b")
    left = [asyncio.create_task(query("a")) for _ in range(5)]
    await asyncio.sleep(0)
    for task in left[1:]:
        task.cancel()  # clients that leave while they wait give their turn to the next
    await asyncio.gather(*(query("a") for _ in range(20)))
    assert most == {"a": most_beside, "b": 1}


def test_a_search_answers_beside_held_searches_of_another_key(client, offline, monkeypatch):
    monkeypatch.setattr(limits, "ACTIVE", 600)
    offline.facts.add("Ann", "LIVES_IN", "Oslo", namespace="quiet")
    offline.facts.add("Ann", "LIVES_IN", "Oslo", namespace="crowd")
    crowd, quiet = client("read", namespaces=("crowd",)), client("read", namespaces=("quiet",))
    perform, release, held = GraphStore.perform, threading.Event(), []

    def hold(self, key, query):
        if key == "kg:crowd":
            held.append(query)
            yield in_thread(release.wait)
        return (yield from perform(self, key, query))

    def search(client, namespace):
        return client.post(f"/v1/namespaces/{namespace}/search", json=QUESTION).json()["facts"]

    assert search(quiet, "quiet")
    monkeypatch.setattr(GraphStore, "perform", hold)
    with ThreadPoolExecutor() as pool:
        try:
            searches = [pool.submit(search, crowd, "crowd") for _ in range(5)]
            until(lambda: held)
            assert search(quiet, "quiet")
            assert len(held) == 1
        finally:
            release.set()
        assert all(search.result() for search in searches)


async def test_reading_takes_none_of_the_turns(offline):
    offline.episodes.save([{"content": "I like tea.", "speaker": "Ann"}], namespace="read")
    reader = BackgroundReader(offline)
    reader.start("read")
    TURN.set(partial(pytest.fail, "the reader took a turn"))
    reader.wake("read")
    await asyncio.to_thread(until, lambda: offline.facts.list(namespace="read"))
    await reader.stop(60)
