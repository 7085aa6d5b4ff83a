"""Killed in the middle, for real: the process that ingests, then the database server."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from kg_memory import reading
from kg_memory.driver import Driver
from kg_memory.falkor import binaries, launch
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.graph import build
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END
from tests.scripted import At, HashEmbeddings, Scripted

ROOT = Path(__file__).parents[1]
MESSAGES = 40
PLACES = ("Oslo", "Paris", "Rome", "Bergen")

INGEST = """
import sys
from pathlib import Path
from tests.test_kill import ingest
ingest(Path(sys.argv[1]), lambda number: print(number, flush=True))
"""


def message(number: int) -> dict[str, str]:
    content = f"I live in {PLACES[number % 4]} with Friend{number % 7}."
    day = f"2024-01-01T{number // 4:02}:{number % 4:02}"
    return {"content": content, "speaker": "Ann", "at": day, "thread": "t", "source_id": f"m{number}", "namespace": "n"}


def ingest(folder: Path, told) -> None:
    """Add all messages to the embedded database of *folder*."""
    with launch.join(folder, binaries.fetch(), idle_seconds=0) as server:
        database = Database(At(server))
        driver = Driver(Scripted(), HashEmbeddings(), database)
        graph = build(driver, Settings(merge_threshold=0.98, ask_threshold=0.6)).compile()
        for number in range(MESSAGES):
            told(number)
            graph.invoke(message(number))
        driver.close()
        database.close()


def begin(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", INGEST, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def gone(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while launch.is_running(folder):
        assert time.monotonic() < deadline, "the server did not end"
        time.sleep(0.02)


@pytest.mark.parametrize(("process_at", "pause"), [(9, 0.004), (26, 0.02)])
def test_after_the_process_and_the_server_were_killed_the_same_command_goes_on(tmp_path, process_at, pause):
    folder = tmp_path / "db"
    first = begin(folder)
    for told in first.stdout:
        if int(told) == process_at:
            break
    time.sleep(pause)
    server = launch.join(folder, binaries.fetch(), idle_seconds=0)
    first.kill()
    first.wait()
    first.stdout.close()
    with redis.Redis(unix_socket_path=server.socket) as client:
        os.kill(client.info()["process_id"], signal.SIGKILL)
    server.close()

    second = begin(folder)
    assert second.communicate(timeout=60)[0].split() == [str(number) for number in range(MESSAGES)]
    assert second.returncode == 0
    with launch.join(folder, binaries.fetch(), idle_seconds=0) as again:
        check(Database(At(again)))
    gone(folder)


def test_the_command_ingest_goes_on_after_it_and_the_server_were_killed(tmp_path):
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(json.dumps(message(number)) for number in range(MESSAGES)), encoding="utf-8")
    folder = tmp_path / "db"
    settings = {"KG_MEMORY_DATA_DIR": str(folder), "KG_MEMORY_MODEL": "offline", "KG_MEMORY_IDLE_SECONDS": "0"}
    environment = {**os.environ, **settings}
    command = [sys.executable, "-m", "kg_memory.cli", "ingest", str(file)]

    first = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not launch.is_running(folder):
        time.sleep(0.01)
    server = launch.join(folder, binaries.fetch(), idle_seconds=0)
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
    listing = [sys.executable, "-m", "kg_memory.cli", "episodes", "--json", "--limit", "1000"]
    listed = subprocess.run(listing, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    episodes = json.loads(listed.stdout)
    assert sorted(each["source_id"] for each in episodes) == sorted(f"m{number}" for number in range(MESSAGES))
    assert {each["status"] for each in episodes} == {"done"}
    gone(folder)


def check(database: Database) -> None:
    """Every message is there exactly once and whole, and so is all that follows from it."""
    key = graph_key("n")

    def rows(cypher: str):
        return database.query(key, cypher, {}, write=False)

    driver = Driver(Scripted(), HashEmbeddings(), database)
    episodes = driver.run(reading.episodes(1000, 0, None), "n")
    assert sorted(each.source_id for each in episodes) == sorted(f"m{number}" for number in range(MESSAGES))
    by_id = {f"m{number}": message(number) for number in range(MESSAGES)}
    assert all(each.content == by_id[each.source_id]["content"] for each in episodes)
    assert {each.status for each in episodes} == {"done"}
    stats = driver.run(reading.stats(), "n")
    assert (stats.waiting, stats.entities, stats.facts) == (0, 1 + 4 + 7, 4 + 7)
    assert stats.current_facts == 1 + 7
    # Each episode states its two facts once, mentions its three entities once, and follows the one before it.
    assert rows(
        "MATCH (e:Episode) RETURN outdegree(e, 'STATES') AS s, outdegree(e, 'MENTIONS') AS m, count(e) AS n"
    ) == [{"s": 2, "m": 3, "n": MESSAGES}]
    links = rows("MATCH (a:Episode)-[:NEXT]->(b:Episode) RETURN a.source_id AS a, b.source_id AS b")
    assert {(each["a"], each["b"]) for each in links} == {(f"m{n}", f"m{n + 1}") for n in range(MESSAGES - 1)}
    assert len(links) == MESSAGES - 1
    # Nothing is half there.
    assert rows("MATCH (b:Belief) WHERE NOT (:Fact)-[:HELD]->(b) RETURN b") == []
    assert rows("MATCH (f:Fact) WHERE NOT (f)-[:HELD]->(:Belief) RETURN f") == []
    assert (
        rows("MATCH (f:Fact) WHERE NOT (:Entity)-[:SUBJECT_OF]->(f) OR NOT (f)-[:OBJECT_IS]->(:Entity) RETURN f") == []
    )
    assert rows("MATCH (f:Fact) WHERE NOT (:Episode)-[:STATES]->(f) RETURN f") == []
    assert rows("MATCH (n) WHERE (n:Episode OR n:Fact OR n:Entity) AND n.embedding IS NULL RETURN n") == []
    assert rows("MATCH (a:Alias) WHERE NOT (a)-[:NAMES]->(:Entity) RETURN a") == []
    for relation, label in (("IN_EPISODE", "Episode"), ("IN_FACT", "Fact"), ("IN_ENTITY", "Entity")):
        sums = rows(f"MATCH (:Term)-[p:{relation}]->(d:{label}) RETURN d.id AS id, d.n AS n, sum(p.f) AS total")
        assert sums
        assert all(each["n"] == each["total"] for each in sums)
    assert rows("MATCH (e:Entity) WHERE e.stale > 0 RETURN e") == []
    # Ann lives in one place at a time, without a gap.
    spans = rows(
        "MATCH (f:Fact {predicate: 'LIVES_IN'})-[:HELD]->(b:Belief) "
        f"WHERE b.expired_at = {OPEN_END} RETURN b.valid_at AS a, b.invalid_at AS b"
    )
    ordered = sorted((each["a"], each["b"]) for each in spans)
    assert len(ordered) == MESSAGES
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(ordered))
    driver.close()
    database.close()
