import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database
from tests.scripted import At

HOLD = """
import sys
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database
from kg_memory.memory.open import NamedServer
schema.LOCK_SECONDS = 0.4
with schema.index_lock(Database(NamedServer(sys.argv[1])), "kg:x"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def short_lock(monkeypatch):
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.4)


def test_index_lock_excludes_others_while_renewed(server, database):
    other = Database(At(server))
    order = []

    def second() -> None:
        with schema.index_lock(other, "kg:x"):
            order.append("second")

    waiting = threading.Thread(target=second)
    with schema.index_lock(database, "kg:x"):
        waiting.start()
        time.sleep(1.5)  # several times as long as a lock lasts without renewal
        order.append("first")
    waiting.join(60)
    other.close()
    assert order == ["first", "second"]
    assert [item.name for item in threading.enumerate() if item.name == "kg-memory-index-lock"] == []


def test_index_lock_of_killed_process_expires(server, database):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGKILL)
    with schema.index_lock(database, "kg:x"):
        assert holder.wait(120) == -signal.SIGKILL
    holder.stdin.close()
    holder.stdout.close()


def test_index_lock_is_released_after_error(database):
    with pytest.raises(ZeroDivisionError), schema.index_lock(database, "kg:x"):
        raise ZeroDivisionError
    begin = time.monotonic()
    with schema.index_lock(database, "kg:x"):
        assert time.monotonic() - begin < schema.LOCK_SECONDS


def test_index_lock_works_if_no_thread_can_start(database, monkeypatch):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with schema.index_lock(database, "kg:x"):
        assert database.command("EXISTS", schema.LOCK) == 1
    assert database.command("EXISTS", schema.LOCK) == 0
