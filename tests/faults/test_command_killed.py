"""The ingest command is killed in the middle, and then the database server: the same command resumes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.falkor.connect import Database, graph_key
from tests.faults.whole import flaws
from tests.scripted import At

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
MESSAGES = 40
PLACES = ("Oslo", "Paris", "Rome", "Bergen")


def message(number: int) -> dict[str, str]:
    content = f"I live in {PLACES[number % 4]} with Friend{number % 7}."
    day = f"2024-01-01T{number // 4:02}:{number % 4:02}"
    return {"content": content, "speaker": "Ann", "at": day, "thread": "t", "source_id": f"m{number}"}


def test_ingest_command_resumes_after_kill_of_it_and_server(tmp_path):
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(json.dumps(message(number)) for number in range(MESSAGES)), encoding="utf-8")
    folder = tmp_path / "db"
    settings = {"KG_MEMORY_DATA_DIR": str(folder), "KG_MEMORY_MODEL": "offline", "KG_MEMORY_IDLE_SECONDS": "0"}
    environment = {**os.environ, **settings}
    command = [sys.executable, "-m", "kg_memory", "ingest", str(file)]

    first = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not embedded.is_running(folder):
        time.sleep(0.01)
    server = embedded.join(folder, binaries.download_missing(), idle_seconds=0)
    counting = Database(At(server))
    count = "MATCH (e:Episode {status: 'done'}) RETURN count(e) AS n"
    while sum(row["n"] for row in counting.query(graph_key("default"), count, {}, write=False)) < MESSAGES // 3:
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    first.kill()
    first.wait()
    with redis.Redis(unix_socket_path=server.socket) as client:
        os.kill(client.info()["process_id"], signal.SIGKILL)
    counting.close()
    server.close()

    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120)
    listing = [sys.executable, "-m", "kg_memory", "episodes", "--json", "--limit", "1000"]
    listed = subprocess.run(listing, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    episodes = json.loads(listed.stdout)
    assert sorted(each["source_id"] for each in episodes) == sorted(f"m{number}" for number in range(MESSAGES))
    assert {each["status"] for each in episodes} == {"done"}
    with embedded.join(folder, binaries.download_missing(), idle_seconds=0) as again:
        database = Database(At(again))
        assert flaws(lambda cypher: database.query(graph_key("default"), cypher, {}, write=False)) == []
        database.close()
    deadline = time.monotonic() + 60
    while embedded.is_running(folder):
        assert time.monotonic() < deadline, "the server did not end"
        time.sleep(0.02)
