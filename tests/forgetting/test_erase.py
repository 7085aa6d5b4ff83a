"""Erasure: forgotten text is neither in the files of the embedded server nor in its streams and logs."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from kg_memory import GraphMemory
from kg_memory.adapters import KGStore
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseUnavailable, QueryError
from kg_memory.falkor import graph_swap
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import erase
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted
from tests.transfer import left_aside

SAID = "I met Zebulonia in Kyotopolis."
KEPT = "Bob said a word of his own: harbourside."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "database"


@pytest.fixture
def own(folder: Path) -> Iterator[GraphMemory]:
    """A memory on an embedded database of its own."""
    found = binaries.download_missing()
    settings = Settings(data_dir=folder, bin_dir=found.redis_server.parent, idle_seconds=0)
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        yield memory


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files of the data folder that contain *text*."""
    return [each.name for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


@pytest.mark.parametrize("named", [{"thread": "t"}, {"everything": True}], ids=str)
def test_forget_erases_text_from_the_files(own, folder, named):
    own.driver.store.database.command("CONFIG", "SET", "rdbcompression", "no")  # or nothing would be found at all
    own.add(KEPT, speaker="Bob", namespace="kept" if "everything" in named else "n")
    own.add(SAID, speaker="Ann", thread="t", namespace="n")
    assert files_with(folder, "Zebulonia")
    done = own.privacy.forget(**named, namespace="n", erase=False)
    assert (done.erased, "BGREWRITEAOF" in done.advice, own.privacy.audit()[0].erased) == (False, True, False)
    assert files_with(folder, "Zebulonia")
    own.add(SAID, speaker="Ann", thread="t", namespace="n")
    done = own.privacy.forget(**named, namespace="n")
    assert (done.erased, done.advice, own.privacy.audit()[0].erased) == (True, "", True)
    for text in ("Zebulonia", "zebulonia", "Kyotopolis", *done.episodes, *done.facts):
        assert files_with(folder, text) == []
    assert files_with(folder, "harbourside")
    assert own.privacy.verify(head=done.head).entries == 4


def test_forget_erases_text_from_stream_and_slow_logs(own, folder):
    command = own.driver.store.database.command
    command("GRAPH.CONFIG", "SET", "CMD_INFO", "yes")
    command("CONFIG", "SET", "slowlog-log-slower-than", 0)
    command("CONFIG", "SET", "rdbcompression", "no")
    store = KGStore(own)
    store.put(("a",), "k", {"text": SAID})
    store.delete(("a",), "k")
    added = own.add(SAID, speaker="Ann", namespace="n")
    assert added.episode in str(command("SLOWLOG", "GET", 1000))
    done = own.privacy.forget(episode=added.episode, namespace="n")
    stream = erase.STREAM.format("kg:n")
    time.sleep(1.2)  # the queries of forgetting itself, which name ids, are written there later
    kept = str(command("XRANGE", stream, "-", "+"))
    kept += str(command("SLOWLOG", "GET", 1000)) + str(command("GRAPH.SLOWLOG", "kg:n"))
    items = erase.STREAM.format("kg-items:default")
    kept += str(command("XRANGE", items, "-", "+")) + str(command("GRAPH.SLOWLOG", "kg-items:default"))
    assert done.erased
    assert not any(text in kept for text in ("Zebulonia", *done.episodes))
    assert not files_with(folder, "Zebulonia")
    store.put(("a",), "k", {"text": SAID})
    while "Zebulonia" not in str(command("XRANGE", items, "-", "+")):
        time.sleep(0.05)
    store.delete(("a",), "k")
    assert "Zebulonia" not in str(command("XRANGE", items, "-", "+"))


def test_forget_deletes_copy_left_by_killed_export(memory, namespace):
    added = memory.add(SAID, speaker="Ann", namespace=namespace)
    database, key = memory.driver.store.database, graph_key(namespace)
    with graph_swap.shadow_graph(database, key) as alive, graph_swap.shadow_graph(database, key) as dead:
        alive.copy(graph_key(namespace))
        dead.copy(graph_key(namespace))
        dead._connection.client_setname("")  # as if its connection were no more
        memory.privacy.forget(episode=added.episode, namespace=namespace)
        assert [database.command("EXISTS", each.key) for each in (alive, dead)] == [1, 0]


@pytest.fixture
def unanswered(monkeypatch) -> list[str]:
    """Make FalkorDB lose the answers to the copies with these numbers, as it sometimes does."""
    lost, begun, send = [1], [], redis.UnixDomainSocketConnection.send_command

    def send_command(self: Any, *words: Any, **options: Any) -> None:
        if words[0] == "GRAPH.COPY":
            begun.append(words[2])
            if len(begun) in lost:
                send(self, "CLIENT", "REPLY", "OFF")
        send(self, *words, **options)

    monkeypatch.setattr(graph_swap, "LOST_AFTER", 0.3)
    monkeypatch.setattr(redis.UnixDomainSocketConnection, "send_command", send_command)
    return lost


def test_copy_without_answer_is_retried(memory, namespace, unanswered):
    memory.add(SAID, speaker="Ann", namespace=namespace)
    database, key = memory.driver.store.database, graph_key(namespace)
    with graph_swap.shadow_graph(database, key) as shadow:
        shadow.copy(key)
        assert shadow.key == shadow.copies[-1] != shadow.copies[0]
        counts = [database.query(each, "MATCH (n) RETURN count(n) AS n", {}, write=False) for each in (key, shadow.key)]
        assert counts[0] == counts[1]
    assert left_aside(database) == [], "the one that was made without an answer is left"


def test_copy_raises_if_never_answered(memory, namespace, unanswered, monkeypatch):
    unanswered[:] = range(1, 100)
    monkeypatch.setattr(graph_swap, "LONGEST_WAIT", 1.0)
    memory.add(SAID, speaker="Ann", namespace=namespace)
    database, key = memory.driver.store.database, graph_key(namespace)
    with graph_swap.shadow_graph(database, key) as shadow, pytest.raises(DatabaseUnavailable, match="did not answer"):
        shadow.copy(key)
    assert left_aside(database) == []


@pytest.mark.parametrize("refused", ["BGREWRITEAOF", "INFO"])
def test_refused_rewrite_is_reported_with_advice(memory, namespace, monkeypatch, refused):
    database = memory.driver.store.database.__class__
    real = database.command_flow

    def command(self: Any, *words: str, at: str = "") -> Any:
        if words[0] == refused:
            raise QueryError("FalkorDB refused a query: NOPERM this user has no permissions")
        return real(self, *words, at=at)

    monkeypatch.setattr(database, "command_flow", command)
    added = memory.add(SAID, speaker="Ann", namespace=namespace)
    done = memory.privacy.forget(episode=added.episode, erase=True, namespace=namespace)
    assert (done.erased, "NOPERM" in done.advice, "BGREWRITEAOF" in done.advice) == (False, True, True)
    assert done.residue == ()


def test_forget_waits_for_running_rewrite_and_repeats_it(memory, namespace):
    added = memory.add(SAID, speaker="Ann", namespace=namespace)
    memory.driver.store.database.command("BGREWRITEAOF")
    assert memory.privacy.forget(episode=added.episode, erase=True, namespace=namespace).erased
