import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

import pytest
import redis

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import EmbeddedServer
from kg_memory.errors import DatabaseClosed, DatabaseUnavailable, DatabaseVersionError, QueryError, SettingsError
from kg_memory.falkor import connect
from kg_memory.falkor.connect import LONGEST_KEY, Database, graph_key
from kg_memory.falkor.wire import EncodedVector
from kg_memory.memory.open import NamedServer
from kg_memory.settings import Settings
from tests.children import ends_well_in_a_child
from tests.waiting import until

Query = Callable[..., Any]
NAMESPACES = [
    "ann@example.com", "two words", "用户 一", "🎉", "x" * 10_000, "é" * 10_000, "line\nbreak", "100%", "%41", "A", "a",
    "..", "../../etc", "/", "a/b", "{tag}", "*", "[ab]", "kg:", "#", "'; MATCH (n) DELETE n //", "`", '"', "\\",
    "\x01\x7f", "\x00", "\ud800", " ", "e\u0301", "\u00e9",
]  # fmt: skip


def test_graph_key_is_unique_and_valid_for_redis():
    keys = [graph_key(item) for item in NAMESPACES]
    assert len(set(keys)) == len(NAMESPACES)
    assert all(key.isascii() and key.isprintable() and " " not in key for key in keys)
    assert all(len(key) <= LONGEST_KEY + 3 for key in keys)


def test_namespaces_of_any_string_are_separate(database, namespace):
    named = [f"{namespace}{item}" for item in NAMESPACES]
    for place, item in enumerate(named):
        database.query(graph_key(item), "CREATE (:Own {place: $place})", {"place": place}, write=True)
    for place, item in enumerate(named):
        result = database.query(graph_key(item), "MATCH (o:Own) RETURN o.place AS place", {}, write=False)
        assert result == [{"place": place}]
    listed = set(database.namespaces())
    assert listed >= {item for item in named if not graph_key(item).startswith("kg:#")}


@pytest.fixture(params=["sync", "async"])
def query(request: pytest.FixtureRequest) -> Query:
    """Run a query on a database, in either form."""

    def run(database: Database, key: str, cypher: str, params: Any = MappingProxyType({}), *, write: bool) -> Any:
        if request.param == "sync":
            return database.query(key, cypher, params, write=write)
        return asyncio.run(database.aquery(key, cypher, params, write=write))

    return run


def test_read_of_missing_graph_returns_nothing_and_creates_none(query, database, namespace):
    key = graph_key(namespace)
    assert query(database, key, "MATCH (n) RETURN n", write=False) == []
    assert database.explain(key, "MATCH (n) RETURN n", {}) == ""
    database.delete(key)
    assert namespace not in database.namespaces()


def test_read_query_cannot_write(query, database, namespace):
    key = graph_key(namespace)
    database.query(key, "CREATE (:Own)", {}, write=True)
    with pytest.raises(QueryError):
        query(database, key, "CREATE (:Own)", write=False)


HOSTILE = [
    "'; MATCH (n) DELETE n //", '"} ) DETACH DELETE n //', "`", "\\", "\\'", "$x", "line\nbreak", "\u2028", "🎉", "CYPHER a=1 "
]  # fmt: skip


def test_query_parameters_cannot_become_cypher(query, database, namespace):
    key = graph_key(namespace)
    cypher = "CREATE (n:Own {text: $text, all: $all}) RETURN n.text AS text, n.all AS all, $map AS map"
    for text in HOSTILE:
        arguments = {"text": text, "all": [text], "map": {"inner": text}}
        assert query(database, key, cypher, arguments, write=True) == [arguments]
    counted = database.query(key, "MATCH (n:Own) RETURN count(n) AS n", {}, write=False)
    assert counted == [{"n": len(HOSTILE)}]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://localhost",
        "redis://localhost",
        "falkor:/x",
        "falkor://host:port",
        "falkor://host:99999",
        Path("memory"),
    ],
)
def test_database_refuses_invalid_url(url):
    with pytest.raises(SettingsError, match="falkor://"):
        Database(NamedServer(url)).client()


@pytest.mark.parametrize("url", ["unix://{folder}/none", "falkor://127.0.0.1:1"])
def test_database_raises_unavailable_if_server_is_missing(query, tmp_path, url):
    with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
        query(Database(NamedServer(url.format(folder=tmp_path))), "kg:x", "RETURN 1", write=False)


def test_database_refuses_old_version_unless_allowed(server, monkeypatch):
    monkeypatch.setattr(connect, "OLDEST_MODULE", 99_99_99)
    refused = Database(NamedServer(server.url))
    for _ in range(2):
        with pytest.raises(DatabaseVersionError, match="upgrade"):
            refused.query("kg:x", "RETURN 1", {}, write=False)
    asked_for = Database(NamedServer(server.url), allow_old=True)
    assert asked_for.client()
    asked_for.close()


def embedded_in(folder: Path) -> EmbeddedServer:
    return EmbeddedServer(Settings(data_dir=folder, idle_seconds=0), on_wait=lambda _: None)


def kill(database: Database) -> None:
    os.kill(database.client().info()["process_id"], signal.SIGKILL)


ONE = ("kg:x", "MERGE (n:One) RETURN 1 AS n")


def test_killed_embedded_server_restarts_at_next_query(query, tmp_path):
    database = Database(embedded_in(tmp_path / "db"))
    assert query(database, *ONE, write=True) == [{"n": 1}]
    stored = database.generation
    kill(database)
    with pytest.raises(DatabaseUnavailable):
        query(database, *ONE, write=True)
    assert query(database, *ONE, write=True) == [{"n": 1}]
    assert database.generation > stored
    database.close()
    until(lambda: not embedded.is_running(tmp_path / "db"))


def test_closed_database_raises_and_releases_server(query, tmp_path):
    database = Database(embedded_in(tmp_path / "db"))
    query(database, *ONE, write=True)
    database.close()
    database.close()
    until(lambda: not embedded.is_running(tmp_path / "db"))
    with pytest.raises(DatabaseClosed, match="was closed"):
        query(database, *ONE, write=False)
    assert not embedded.is_running(tmp_path / "db")


def connected(database: Database) -> int:
    return len(database.client().client_list())


def wait_for_connections(number: int, database: Database) -> None:
    """Wait until the server has at most *number* connections.

    The server notices a closed connection late, and an ending thread still refers to its loop: so each check collects
    garbage.
    """

    def are_left() -> bool:
        gc.collect()
        return connected(database) <= number

    until(are_left, 60)


def test_ended_event_loops_leave_no_connection(server, namespace):
    database = Database(NamedServer(server.url))
    key = graph_key(namespace)
    loops = WeakSet()

    async def many() -> None:
        loops.add(asyncio.get_running_loop())
        queries = (database.aquery(key, "RETURN $n AS n", {"n": number}, write=True) for number in range(20))
        assert await asyncio.gather(*queries) == [[{"n": number}] for number in range(20)]

    before = connected(database)
    for _ in range(10):
        asyncio.run(many())
    wait_for_connections(before, database)
    assert len(loops) <= 1  # the last one goes at the next use
    database.close()


def test_abruptly_closed_event_loop_leaves_no_connection(server, namespace):
    database = Database(NamedServer(server.url))

    before = connected(database)
    for _ in range(6):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(database.aquery(graph_key(namespace), "RETURN 1 AS one", {}, write=True))
        loop.close()
    wait_for_connections(before + 1, database)
    database.close()
    gc.collect()


async def test_database_creates_one_client_per_event_loop(server, namespace, monkeypatch):
    made = []

    class Counted(redis.asyncio.Redis):
        def __init__(self, **given: Any) -> None:
            made.append(self)
            super().__init__(**given)

    monkeypatch.setattr(redis.asyncio, "Redis", Counted)
    database = Database(NamedServer(server.url))
    await asyncio.gather(*(database.aquery(graph_key(namespace), "RETURN 1 AS one", {}, write=True) for _ in range(10)))
    assert len(made) == 1
    await database.aclose()


async def test_cancelled_connecting_query_does_not_affect_others(server, namespace):
    database = Database(NamedServer(server.url))
    asking = [
        asyncio.create_task(database.aquery(graph_key(namespace), "RETURN 1 AS one", {}, write=True)) for _ in range(4)
    ]
    await asyncio.to_thread(database.client)
    await asyncio.sleep(0)
    asking[0].cancel()
    async with asyncio.timeout(20):
        assert await asyncio.gather(*asking[1:]) == [[{"one": 1}]] * 3
    await database.aclose()


async def test_aclose_leaves_no_connection(server, database, namespace):
    before = await asyncio.to_thread(connected, database)
    own = Database(NamedServer(server.url))
    await asyncio.gather(*(own.aquery(graph_key(namespace), "RETURN 1 AS one", {}, write=True) for _ in range(4)))
    await own.aclose()
    await own.aclose()
    await asyncio.to_thread(wait_for_connections, before, database)


async def test_lost_connection_raises_at_once_during_reconnect(database):
    with database._opening:  # another thread holds it while a slow server starts
        begin = time.monotonic()
        with pytest.raises(DatabaseUnavailable), database.map_errors():
            raise redis.ConnectionError("gone")
        assert time.monotonic() - begin < 30


async def test_database_in_forked_child_opens_own_connections(server, namespace):
    database = Database(NamedServer(server.url))
    key = graph_key(namespace)
    assert await database.aquery(key, "RETURN 1 AS one", {}, write=True) == [{"one": 1}]

    def work() -> bool:
        result = database.query(key, "RETURN 2 AS two", {}, write=True)
        gc.collect()
        database.close()
        return result == [{"two": 2}]

    assert ends_well_in_a_child(work)
    async with asyncio.timeout(10):
        assert await database.aquery(key, "RETURN 1 AS one", {}, write=True) == [{"one": 1}]
    assert database.generation == 1
    await database.aclose()


async def test_long_parameters_are_encoded_off_the_event_loop(database, namespace):
    threads = set()

    class Watched(EncodedVector):
        @property
        def text(self) -> str:
            threads.add(threading.get_ident())
            return "[1.0]"

    query, rows = "UNWIND $rows AS row RETURN count(row) AS n", [Watched()] * 500
    assert await database.aquery(graph_key(namespace), query, {"rows": rows}, write=True) == [{"n": 500}]
    assert threads
    assert threading.get_ident() not in threads
