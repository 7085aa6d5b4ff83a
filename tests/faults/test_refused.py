"""Refusals and delays of the database: a replica, no memory, a restart, a failover, a timeout, a new index."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseUnavailable, QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.memory.open import open_driver
from kg_memory.runtime.effects import fetch, write
from tests.cluster.nodes import free_ports
from tests.falkor.test_replica import Node, follow, running, started, until
from tests.faults.proxy import Plan, Proxy
from tests.scripted import HashEmbeddings, Scripted

OSLO, PARIS = "Ann lives in Oslo.", "Ann lives in Paris."
SLOW = "UNWIND range(1, 3000000) AS i CREATE (:Slow {i: i})"


def opened(url: str) -> GraphMemory:
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
    return GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings())


def add(memory: GraphMemory, content: str) -> None:
    memory.add(content, speaker="Ann", at=f"2001-01-0{1 + (content == PARIS)}")


def homes(memory: GraphMemory) -> list[str]:
    return [fact.sentence for fact in memory.search("Where does Ann live?").facts]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with running(tmp_path / "primary", "--repl-diskless-sync-delay", "0", "--unixsocket", f"{tmp_path}/s") as made:
        yield made


def test_replica_as_url_reads_and_write_error_names_setting(node, tmp_path):
    with running(tmp_path / "copy", "--replicaof", "127.0.0.1", str(node.port)) as copy:
        until(lambda: copy.redis.info("replication")["master_link_status"] == "up")
        with opened(node.url()) as memory, opened(copy.url()) as reader:
            add(memory, OSLO)
            node.redis.wait(1, 5000)
            assert homes(reader) == ["Ann lives in Oslo"]
            for name in ("default", "new"):
                with pytest.raises(
                    DatabaseUnavailable, match=r"is a replica and accepts no writes .*set url to its primary"
                ):
                    reader.add(PARIS, speaker="Ann", namespace=name)


def test_failover_behind_one_url_loses_no_replicated_write(node, tmp_path):
    address = f"{tmp_path}/other"
    with (
        running(tmp_path / "copy", "--replicaof", "127.0.0.1", str(node.port), "--unixsocket", address) as copy,
        Proxy(Plan(), f"{tmp_path}/s") as proxy,
        opened(proxy.url) as memory,
    ):
        until(lambda: copy.redis.info("replication")["master_link_status"] == "up")
        add(memory, OSLO)
        assert node.redis.wait(1, 5000) == 1
        # The roles change; new connections reach the new primary, and old ones stay at the old one.
        copy.redis.replicaof("NO", "ONE")
        follow(node, copy)
        proxy.upstream = address
        with pytest.raises(DatabaseUnavailable, match="is a replica and accepts no writes"):
            add(memory, PARIS)
        add(memory, PARIS)
        assert homes(memory) == ["Ann lives in Paris"]
        assert memory.stats().facts == 2
        assert copy.redis.info("replication")["role"] == "master"


def test_server_out_of_memory_serves_reads_and_recovers(node):
    with opened(node.url()) as memory:
        add(memory, OSLO)
        node.redis.config_set("maxmemory", "1mb")
        with pytest.raises(DatabaseUnavailable, match=r"out of memory and accepts no writes \(.*raise its maxmemory"):
            add(memory, PARIS)
        assert homes(memory) == ["Ann lives in Oslo"]
        node.redis.config_set("maxmemory", "0")
        add(memory, PARIS)
        assert memory.stats().facts == 2


def test_missing_password_error_names_url(node):
    node.redis.config_set("requirepass", "x")
    with opened(node.url()) as memory, pytest.raises(DatabaseUnavailable, match="check name and password in the URL"):
        memory.stats()
    with opened(node.url().replace("//", "//:x@")) as memory:
        add(memory, OSLO)
    node.redis.config_set("requirepass", "")


def test_write_over_timeout_is_rolled_back(node):
    database = Database(node)
    driver = open_driver(Scripted(), HashEmbeddings(), database)
    driver.run(write("CREATE (:Own)"), "n")
    for name in ("TIMEOUT_MAX", "TIMEOUT_DEFAULT"):
        node.redis.execute_command("GRAPH.CONFIG", "SET", name, 100)
    with pytest.raises(QueryError, match=r"took too long .*raise TIMEOUT_DEFAULT"):
        driver.run(write(SLOW), "n")
    assert driver.run(fetch("MATCH (s:Slow) RETURN count(s) AS n"), "n") == [{"n": 0}]
    driver.close()
    database.close()


MANY = """
UNWIND range(1, 1500) AS i
CREATE (:Fact {id: toString(i), embedding: vecf32([x IN range(1, 64) | toFloat((i * x * 7919) % 1009) + 1])})
"""


def running_persistent(folder: Path, port: int) -> AbstractContextManager[Node]:
    """Run a server that keeps what it is told, is killed in the end, and answers before its indices are made."""
    found = binaries.download_missing()
    where = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly", "yes"]
    module = ["--loadmodule", str(found.module), "THREAD_COUNT", "2", "DELAY_INDEXING", "yes"]
    return started([str(found.redis_server), *where, *module], port)


def test_restarted_server_is_used_after_indices_are_built(tmp_path):
    [port] = free_ports(1)
    with running_persistent(tmp_path, port) as node:
        memory = opened(node.url())
        add(memory, OSLO)
        memory.driver.run(write(MANY), "default")
    with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
        homes(memory)
    with running_persistent(tmp_path, port) as node:
        states = node.redis.execute_command("GRAPH.RO_QUERY", graph_key("default"), schema.INDEX_STATES)[1]
        assert "UNDER CONSTRUCTION" in str(states)
        assert homes(memory)[0] == "Ann lives in Oslo"
        add(memory, PARIS)
        assert memory.stats().facts == 1502
        memory.close()
