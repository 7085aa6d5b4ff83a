"""`forget` is killed before each write: repeated, it completes, and the audit log counts it once."""

import os
import signal
from collections import Counter
from itertools import count
from typing import Any

import pytest

from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import audit
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.effects import Query, RedisCommand
from tests.faults import whole

pytestmark = pytest.mark.system

READING = {"GET", "HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "EXISTS", "INFO", "GRAPH.RO_QUERY", "GRAPH.CONFIG"}
MESSAGES: list[dict[str, Any]] = [
    {"content": "I moved to Oslo.", "speaker": "Ann", "at": "2024-01-01", "thread": "t", "source_id": "m0"},
    {"content": "I moved to Paris.", "speaker": "Ann", "at": "2024-02-01", "thread": "u", "source_id": "m1"},
    {"content": "I know Bob, I moved to Rome.", "speaker": "Ann", "at": "2024-03-01", "thread": "t", "source_id": "m2"},
]
NAMED: dict[str, Any] = {"thread": {"thread": "t"}, "span": {"span": (12, 27)}, "everything": {"everything": True}}


class Killed:
    """A namespace in which children repeat the same `forget` and are killed at different writes."""

    def __init__(self, memory: GraphMemory, namespace: str, kind: str) -> None:
        self.memory, self.namespace, self.kind = memory, namespace, kind
        self.named: dict[str, Any] = {}
        self.since = memory.driver.clock()

    def look(self, cypher: str) -> list[dict[str, Any]]:
        return self.memory.driver.store.database.query(graph_key(self.namespace), cypher, {}, write=False)

    def begin(self) -> None:
        """Store the messages and empty the log."""
        database = self.memory.driver.store.database
        database.command("DEL", audit.LOG)
        if self.namespace in self.memory.data.namespaces():
            database.delete(graph_key(self.namespace))
        messages = MESSAGES if self.kind == "thread" else MESSAGES[-1:]
        added = self.memory.add_many(messages, namespace=self.namespace)
        self.named = {**NAMED[self.kind], **({"episode": added[-1].episode} if self.kind == "span" else {})}

    def forget(self) -> None:
        self.memory.privacy.forget(**self.named, namespace=self.namespace)

    def die(self, at: int) -> bool:
        """Forget in a child that is killed before write number *at*; return whether it was killed."""
        child = os.fork()
        if child == 0:
            try:
                self._die(at)
            finally:
                os._exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (-signal.SIGKILL, 0)
        return status != 0

    def _die(self, at: int) -> None:
        driver, number = self.memory.driver, count()
        perform = driver._perform
        deleted = driver.store.database.delete

        def arrive() -> None:
            if next(number) == at:
                os.kill(os.getpid(), signal.SIGKILL)

        def dying(key: str, effect: Any) -> Any:
            match effect:
                case Query(write=True):
                    arrive()
                case RedisCommand(words) if words[0] not in READING:
                    arrive()
            return perform(key, effect)

        def delete(key: str) -> None:
            arrive()
            deleted(key)

        driver._perform = dying  # type: ignore[method-assign]
        driver.store.database.delete = delete  # type: ignore[method-assign]
        self.forget()
        os._exit(0)

    def graph(self) -> Counter[str]:
        """Return the graph once everything is extracted and summarised."""
        if self.namespace in self.memory.data.namespaces():
            self.memory.episodes.resume(namespace=self.namespace)
        return whole.graph(self.look, self.since)


@pytest.mark.parametrize("kind", NAMED)
def test_killed_forget_is_consistent_and_completes_on_retry(memory, namespace, monkeypatch, kind):
    monkeypatch.setattr(forgetting, "AT_ONCE", 1)
    monkeypatch.setattr(audit, "LOG", f"{audit.LOG}:{namespace}")
    killed = Killed(memory, namespace, kind)
    killed.begin()
    killed.forget()
    clean, gone = killed.graph(), memory.privacy.audit()[0].episodes
    # The writes of a span are among those of a thread: every second one is enough.
    for at in count(0, 2 if kind == "span" else 1):
        killed.begin()
        dead = killed.die(at)
        assert whole.flaws(killed.look) == []
        told = memory.privacy.audit()
        try:
            killed.forget()
        except InputError as error:
            assert "forgotten" in str(error)  # noqa: PT017 - it may be gone already
        entries = memory.privacy.audit()
        completed = sum(each.episodes for each in entries if each.complete)
        begun = sum(each.episodes for each in entries if not each.complete)
        assert completed == gone or completed < gone <= begun, (at, told, entries)
        assert memory.privacy.verify().ok
        assert killed.graph() == clean, at
        if not dead:
            break
    assert at > {"thread": 6, "span": 4, "everything": 4}[kind]
