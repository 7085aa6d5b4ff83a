"""Reads that may be stale use a replica, and the primary if the replica fails."""

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseClosed, QueryError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_store import RETRY_AFTER
from kg_memory.maintenance.forgetting import erase
from kg_memory.memory.memory import GraphMemory
from kg_memory.memory.open import open_driver
from kg_memory.runtime.effects import embed, fetch, in_step, write
from kg_memory.runtime.flow import every
from tests.cluster.nodes import free_ports
from tests.scripted import HashEmbeddings, Scripted
from tests.waiting import until

NEAR = "CALL db.idx.vector.queryNodes('Episode', 'embedding', 1, vecf32($v)) YIELD node RETURN node.id AS id"
COUNT = "MATCH (n:Own) RETURN count(n) AS n"
MAKE = "CREATE (:Own)"


class Node:
    """A server on a local port, with its statistics."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.redis: Any = redis.Redis(port=port, decode_responses=True)

    def url(self) -> str:
        return f"falkor://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Do nothing: the fixture stops the server."""

    def calls(self) -> dict[str, int]:
        """Return how many queries the server received, by command."""
        stats = self.redis.info("commandstats")
        return {name: stats.get(f"cmdstat_graph.{name}", {"calls": 0})["calls"] for name in ("QUERY", "RO_QUERY")}


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Node]:
    folder.mkdir()
    [port] = free_ports(1)
    result = binaries.download_missing()
    command = [str(result.redis_server), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    module = ["--loadmodule", str(result.module), "THREAD_COUNT", "2", "NODE_CREATION_BUFFER", "128"]
    with started([*command, *options, *module], port) as node:
        yield node


@contextmanager
def started(command: list[str], port: int) -> Iterator[Node]:
    """Run a server by *command*, and kill it in the end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    node = Node(port)
    try:
        until(lambda: answers(node))
        yield node
    finally:
        node.redis.close()
        process.kill()
        process.wait()


def answers(node: Node) -> bool:
    try:
        return bool(node.redis.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture(scope="module")
def primary(tmp_path_factory) -> Iterator[Node]:
    # Without the delay that lets several replicas share one copy.
    with running(tmp_path_factory.mktemp("replica") / "primary", "--repl-diskless-sync-delay", "0") as node:
        yield node


@pytest.fixture(scope="module")
def replica(primary, tmp_path_factory) -> Iterator[Node]:
    follow = ("--replicaof", "127.0.0.1", str(primary.port))
    with running(tmp_path_factory.mktemp("replica") / "copy", *follow) as node:
        until(lambda: node.redis.info("replication")["master_link_status"] == "up")
        yield node


@pytest.fixture
def database(primary, replica) -> Iterator[Database]:
    opened = Database(primary, replica=replica)
    yield opened
    opened.close()


@pytest.fixture(params=["sync", "async"])
def drive(request, driver, database, namespace):
    """Flows whose reads may be stale."""

    async def once(flow):
        try:
            return await driver.for_reads().arun(flow, namespace)
        finally:
            for server in database.replica._connected():
                if client := server.loops.pop():
                    await client.aclose()

    if request.param == "sync":
        return lambda flow: driver.for_reads().run(flow, namespace)
    return lambda flow: asyncio.run(once(flow))


@pytest.fixture
def sent(primary, replica):
    """How many queries each of the two servers was sent since this was asked last."""
    before = {}

    def verb() -> tuple[dict[str, int], dict[str, int]]:
        now = {"primary": primary.calls(), "replica": replica.calls()}
        since = {
            name: {command: calls - before.get(name, {}).get(command, 0) for command, calls in result.items()}
            for name, result in now.items()
        }
        before.update(now)
        return since["primary"], since["replica"]

    verb()
    return verb


def test_replica_gets_reads_and_primary_gets_writes(drive, primary, sent):
    drive(write(MAKE))
    primary.redis.wait(1, 5000)
    assert drive(fetch(COUNT)) == [{"n": 1}]
    sent()
    assert drive(every([fetch(COUNT), in_step([fetch(COUNT), fetch(COUNT)])])) == [[{"n": 1}], [[{"n": 1}]] * 2]
    drive(write(MAKE))
    assert sent() == ({"QUERY": 1, "RO_QUERY": 0}, {"QUERY": 0, "RO_QUERY": 3})


def test_search_reads_replica_but_add_and_stats_do_not(primary, replica, settings, namespace, sent):
    own = settings.with_(url=primary.url(), replica_url=replica.url())
    with GraphMemory(own, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        memory.add("Ann lives in Oslo", at="2024-01-01", namespace=namespace)
        assert sent()[1]["RO_QUERY"] == 0
        primary.redis.wait(1, 5000)
        result = memory.search("Where does Ann live?", namespace=namespace)
        assert [fact.sentence for fact in result.facts] == ["Ann lives in Oslo"]
        assert [episode.content for episode in result.episodes] == ["Ann lives in Oslo"]
        at_primary, at_replica = sent()
        assert at_primary["QUERY"] == 0
        assert at_primary["RO_QUERY"] <= 3  # checks that the graph is ready
        assert at_replica["RO_QUERY"] > 8
        memory.search("Who is in Oslo?", namespace=namespace)
        assert memory.stats(namespace=namespace).episodes == 1
        assert 1 <= sent()[0]["RO_QUERY"] < 8


def test_graph_missing_on_replica_is_read_from_primary(drive, replica, primary, namespace):
    replica.redis.replicaof("NO", "ONE")  # what is written from now on does not come
    try:
        drive(write(MAKE))
        assert drive(fetch(COUNT)) == [{"n": 1}]
        assert drive(in_step([fetch(COUNT), fetch(COUNT)])) == [[{"n": 1}]] * 2
        assert graph_key(namespace) not in replica.redis.execute_command("GRAPH.LIST")
    finally:
        follow(replica, primary)


@pytest.mark.parametrize("named", [True, False])
def test_forget_reports_disconnected_replica(primary, replica, settings, namespace, named):
    own = settings.with_(url=primary.url(), replica_url=replica.url() if named else None)
    with socket.socket() as taken, GraphMemory(own, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        added = memory.add("Ann lives in Oslo", namespace=namespace)
        memory.add("Bob lives in Rome", namespace=namespace)
        done = memory.privacy.forget(episode=added.episode, erase=True, namespace=namespace)
        assert (done.residue, done.erased, "BGREWRITEAOF" in done.advice) == ((), False, True), "its files have it"
        assert "reconnect them" not in done.advice
        taken.bind(("127.0.0.1", 0))
        replica.redis.replicaof("127.0.0.1", taken.getsockname()[1])
        until(lambda: not primary.redis.info("replication")["connected_slaves"])
        try:
            done = memory.privacy.forget(everything=True, erase=True, namespace=namespace)
            assert graph_key(namespace) in replica.redis.execute_command("GRAPH.LIST")
        finally:
            follow(replica, primary)
    [left] = done.residue
    expected = "replica_url" if named else erase.LOST_REPLICA
    assert (left.label, left.name, left.trace, done.erased) == ("Replica", expected, "replica", False)
    assert "reconnect them" in done.advice
    assert named or "replica_url" not in done.advice


def test_forget_reports_unreachable_replica(primary, settings, namespace):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        own = settings.with_(url=primary.url(), replica_url=Node(taken.getsockname()[1]).url())
        with GraphMemory(own, model=Scripted(), embeddings=HashEmbeddings()) as memory:
            added = memory.add("Ann lives in Oslo", namespace=namespace)
            done = memory.privacy.forget(episode=added.episode, namespace=namespace)
    assert ([left.name for left in done.residue], done.erased) == (["replica_url"], False)


def follow(replica: Node, primary: Node) -> None:
    replica.redis.replicaof("127.0.0.1", primary.port)
    until(lambda: replica.redis.info("replication")["master_link_status"] == "up")


def test_failing_replica_gets_no_queries_for_a_while(drive, driver, primary, replica, namespace, caplog):
    [vector] = drive(embed(["x"]))
    drive(write("CREATE (:Episode {id: 'a', embedding: vecf32($v)})", v=vector))
    primary.redis.wait(1, 5000)
    replica.redis.replicaof("NO", "ONE")
    try:
        drop = "DROP VECTOR INDEX FOR (n:Episode) ON (n.embedding)"
        replica.redis.execute_command("GRAPH.QUERY", graph_key(namespace), drop)
        sent = replica.calls()["RO_QUERY"]
        assert drive(fetch(NEAR, v=vector)) == [{"id": "a"}]
        assert replica.calls()["RO_QUERY"] == sent + 1
        assert drive(in_step([fetch(NEAR, v=vector)])) == [[{"id": "a"}]]
        assert replica.calls()["RO_QUERY"] == sent + 1
        assert "the replica failed and gets no queries for 30 s" in caplog.text
        driver.store._replica._retry_at -= RETRY_AFTER
        drive(fetch(COUNT))
        assert replica.calls()["RO_QUERY"] > sent + 1
    finally:
        follow(replica, primary)


def test_replica_url_can_be_read_without_vector_indices(primary, replica, namespace, settings):
    with GraphMemory(settings.with_(url=primary.url()), model=Scripted(), embeddings=HashEmbeddings()) as memory:
        memory.episodes.save(["Ann lives in Oslo"], namespace=namespace)
    primary.redis.wait(1, 5000)
    with GraphMemory(settings.with_(url=replica.url()), model=Scripted(), embeddings=HashEmbeddings()) as memory:
        memory.driver.embedder.embed(["Oslo"])  # from now on the indices of vectors could be made
        assert [episode.content for episode in memory.episodes.list(namespace=namespace)] == ["Ann lives in Oslo"]


def test_wrong_query_raises_with_replica(drive):
    drive(write(MAKE))
    with pytest.raises(QueryError, match="refused"):
        drive(fetch("MATCH"))


def test_unreachable_replica_falls_back_to_primary(primary, namespace, caplog):
    with socket.socket() as taken:  # bound, and does not listen
        taken.bind(("127.0.0.1", 0))
        database = Database(primary, replica=Node(taken.getsockname()[1]))
        driver = open_driver(Scripted(), HashEmbeddings(), database)
        driver.run(write(MAKE), namespace)
        both = driver.for_reads().run(every([fetch(COUNT), in_step([fetch(COUNT)])]), namespace)
        assert both == [[{"n": 1}], [[{"n": 1}]]]
        assert asyncio.run(driver.for_reads().arun(embed(["x"]), namespace))
        assert "cannot be reached" in caplog.text
        driver.close()
        database.close()


async def test_close_closes_connections_to_both_servers(primary, replica, namespace):
    database = Database(primary, replica=replica)
    driver = open_driver(Scripted(), HashEmbeddings(), database)
    before = await asyncio.to_thread(lambda: len(replica.redis.client_list()))
    await driver.arun(write(MAKE), namespace)
    await driver.for_reads().arun(fetch(COUNT), namespace)
    await database.aclose()
    await asyncio.to_thread(until, lambda: len(replica.redis.client_list()) <= before)
    with pytest.raises(DatabaseClosed):
        await driver.for_reads().arun(fetch(COUNT), namespace)
    driver.close()
