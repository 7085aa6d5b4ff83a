"""The server, a sweeper and a waking client are killed in turns while a namespace falls asleep and wakes."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import sleeping
from kg_memory.errors import KGMemoryError
from tests.scripted import HashEmbeddings, Scripted

pytestmark = pytest.mark.system
ROUNDS = 30
SPAWN = get_context("spawn")


def open_kept(settings: Settings) -> GraphMemory:
    return GraphMemory.open(settings=settings, model=Scripted(), embeddings=HashEmbeddings())


def repeat(settings: Settings, does: str) -> None:
    """Put the namespace to sleep, or wake it by a search, until killed."""
    sleeping.why_awake = lambda *_: ""  # what was not read when the server was killed would keep it awake
    with open_kept(settings) as memory:
        while True:
            with suppress(KGMemoryError):
                memory.data.sleep(namespace="n") if does == "sleep" else memory.search("Who knows B1?", namespace="n")
            time.sleep(0.05 if does == "sleep" else 0.2)


def lose_nothing(settings: Settings, kill_server: Callable[[], None], restore: Callable[[], None]) -> None:
    """Save facts while the server, a sweeper and a waking client are killed in turns; then check what is stored.

    *restore* is called before the check; until then, a part of the database may be down.
    """

    def spawn(does):
        process = SPAWN.Process(target=repeat, args=(settings, does), daemon=True)
        process.start()
        return process

    saved, slept, chance = [], 0, random.Random(7)
    with open_kept(settings) as memory:
        memory.facts.add("Ann", "KNOWS", "Bob", namespace="n")
        others = {does: spawn(does) for does in ("sleep", "wake")}
        for round_ in range(ROUNDS):
            until = time.monotonic() + chance.uniform(1.5, 3)
            while time.monotonic() < until:
                with suppress(KGMemoryError):
                    saved += memory.facts.add("Ann", "KNOWS", f"B{len(saved)}", namespace="n").facts
                    time.sleep(chance.uniform(0, 0.2))
                    slept += memory.data.namespaces("asleep") == ["n"]
            if (killed := ("server", "sleep", "wake")[round_ % 3]) == "server":
                kill_server()
            else:
                others[killed].kill()
                others[killed].join()
                others[killed] = spawn(killed)
        for process in others.values():
            process.kill()
            process.join()
        restore()
        with suppress(KGMemoryError):
            memory.data.namespaces()  # the first call after the loss of the server may fail
        assert (memory.data.namespaces("awake"), memory.data.namespaces("asleep")) in ((["n"], []), ([], ["n"]))
        stored = [fact.sentence for fact in memory.facts.list(namespace="n", limit=10_000)]
        assert memory.data.namespaces("awake") == ["n"]
        assert memory.search("Who knows B1?", namespace="n").facts
    assert slept > 5
    assert len(stored) == len(set(stored))
    assert set(saved) <= set(stored)


def test_kills_in_any_order_lose_nothing_and_leave_one_state(tmp_path):
    def kill_server():
        os.kill(int((tmp_path / "run" / "pid").read_text()), signal.SIGKILL)

    lose_nothing(Settings(data_dir=tmp_path, sleep_after=0), kill_server, lambda: None)
