"""Namespaces that sleep: their next use wakes them, and nothing that was acknowledged is lost."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import sleeping
from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_store import Replica
from kg_memory.falkor.schema import READ_META
from kg_memory.models.graph import EpisodeInput
from kg_memory.runtime.effects import Call, Query
from kg_memory.runtime.flow import run
from tests.scripted import At, HashEmbeddings, Scripted
from tests.waiting import until

ROWS = [{"subject": f"P{n}", "predicate": "KNOWS", "object": f"P{n + 1}"} for n in range(190)]
USES = {
    "search": lambda memory, **space: [fact.sentence for fact in memory.search("Who knows P7?", **space).facts],
    "facts.list": lambda memory, **space: [fact.sentence for fact in memory.facts.list(limit=1000, **space)],
    "stats": lambda memory, **space: memory.stats(**space),
    "reembed": lambda memory, **space: memory.data.reembed(**space),
    "export": lambda memory, **space: memory.data.export("/dev/null", **space).records,
}


def test_next_use_wakes_and_finds_everything(memory, namespace):
    """A sleeping namespace is listed as asleep, and each verb finds in it the same as before."""
    memory.facts.add_many(ROWS, namespace=namespace)
    data, before = memory.data, {name: use(memory, namespace=namespace) for name, use in USES.items()}
    for name, use in USES.items():
        assert data.sleep(namespace=namespace)
        assert not data.sleep(namespace=namespace)  # it sleeps already
        assert [namespace in data.namespaces(state) for state in ("asleep", "awake")] == [True, False], name
        assert namespace in data.namespaces()
        assert use(memory, namespace=namespace) == before[name], name
        assert namespace not in data.namespaces("asleep"), name
        assert use(memory, namespace=namespace) == before[name], name
    data.sleep(namespace=namespace)
    data.wake(namespace=namespace)
    assert namespace in data.namespaces("awake")
    data.sleep(namespace=namespace)
    memory.privacy.forget(everything=True, namespace=namespace)
    assert namespace not in data.namespaces()
    assert not data.sleep(namespace=namespace)


def test_sleeping_graph_can_be_deleted(memory, namespace, server):
    memory.facts.add("Ann", "KNOWS", "Bob", namespace=namespace)
    memory.data.sleep(namespace=namespace)
    Database(At(server)).delete(graph_key(namespace))
    assert namespace not in memory.data.namespaces()


def test_namespaces_that_cannot_sleep_say_why(memory, namespace, server, monkeypatch):
    memory.episodes.save([EpisodeInput(content="Ann knows Bob")], namespace=namespace)
    with pytest.raises(InputError, match="not read"):
        memory.data.sleep(namespace=namespace)
    memory.episodes.resume(namespace=namespace)
    assert memory.data.sleep(namespace=namespace)
    later = datetime.now(UTC) + timedelta(days=1)
    memory.add("Ann knows Cid", expires_at=later, namespace=namespace)
    with pytest.raises(InputError, match="that expire"):
        memory.data.sleep(namespace=namespace)
    memory.facts.add("Ann", "KNOWS", "Bob", namespace=f"{namespace}-b")
    with monkeypatch.context() as patch:
        patch.setattr(sleeping, "MOST_VECTORS", 1)
        with pytest.raises(InputError, match="vectors, over 1"):
            memory.data.sleep(namespace=f"{namespace}-b")
    key, reasons, database = graph_key(f"{namespace}-b"), sleeping.why_awake, Database(At(server))

    def write_after(*given):
        reason = reasons(*given)
        database.query(key, "CREATE (:Seen)", {}, write=True)
        return reason

    monkeypatch.setattr(sleeping, "why_awake", write_after)
    with pytest.raises(InputError, match="in use"):
        memory.data.sleep(namespace=f"{namespace}-b")
    assert len(database.query(key, "MATCH (s:Seen) RETURN s.x AS x", {}, write=False)) == 1


def test_writers_lose_nothing_while_a_namespace_falls_asleep(memory, namespace, server):
    database, key, stopped = Database(At(server)), graph_key(namespace), threading.Event()
    memory.facts.add("Ann", "KNOWS", "Bob", namespace=namespace)
    saved: list[list[str]] = [[], []]

    def write(own: list[str]) -> None:
        while not stopped.is_set():
            added = memory.facts.add(f"A{id(own)}", "KNOWS", f"B{len(own)}", namespace=namespace)
            own.append(added.facts[0])

    writers = [threading.Thread(target=write, args=(own,)) for own in saved]
    for writer in writers:
        writer.start()
    slept = 0
    while all(writer.is_alive() for writer in writers) and (slept < 10 or min(map(len, saved)) < 4):
        slept += bool(database.command("EVAL", sleeping.SLEEP, 1, key, at=key))
        time.sleep(0.05)
    stopped.set()
    for writer in writers:
        writer.join()
    assert slept >= 10
    stored = {fact.sentence for fact in memory.facts.list(namespace=namespace, limit=1000)}
    assert {sentence for own in saved for sentence in own} <= stored


def test_idle_namespaces_fall_asleep_unless_they_are_used(server, memory, namespace):
    used = f"{namespace}-used"
    for name in (namespace, used):
        memory.facts.add("Ann", "KNOWS", "Bob", namespace=name)
    with GraphMemory(Settings(url=server.url, sleep_after=2), model=Scripted(), embeddings=HashEmbeddings()) as other:
        other.data.namespaces()  # it does not connect on its own
        until(lambda: memory.stats(namespace=used) and namespace in memory.data.namespaces("asleep"))
        assert used in memory.data.namespaces("awake")
        until(lambda: used in memory.data.namespaces("asleep"))
    assert memory.facts.list(namespace=namespace)


def test_look_for_unread_episodes_is_no_use(memory, namespace, server):
    database, key = Database(At(server)), graph_key(namespace)
    memory.facts.add("Ann", "KNOWS", "Bob", namespace=namespace)
    assert not sleeping.has_unread(database, namespace)
    memory.episodes.save([EpisodeInput(content="Ann knows Bob")], namespace=namespace)
    until(lambda: database.command("OBJECT", "IDLETIME", key, at=key) >= 2)
    assert sleeping.has_unread(database, namespace)
    assert database.command("OBJECT", "IDLETIME", key, at=key) >= 2
    assert not sleeping.has_unread(database, f"{namespace}-none")
    assert memory.facts.list(namespace=namespace)
    assert database.command("OBJECT", "IDLETIME", key, at=key) < 2


def test_replica_leaves_sleeping_namespaces_to_the_primary(memory, namespace, server):
    memory.facts.add("Ann", "KNOWS", "Bob", namespace=namespace)
    memory.data.sleep(namespace=namespace)
    key, replica = graph_key(namespace), Replica(Database(At(server)))
    assert run(replica.answer(key, Query(READ_META)), Call.run) is None
    assert namespace in memory.data.namespaces("asleep")
    memory.data.wake(namespace=namespace)
    assert run(replica.answer(key, Query(READ_META)), Call.run)  # it is still asked
