"""Connections to a server: by TLS, by a user with few rights, by a Sentinel, and to a server that does not answer."""

import asyncio
import io
import os
import signal
import socket
import time
from contextlib import ExitStack

import pytest

from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.server.worker import Outbox
from kg_memory.errors import DatabaseForbidden, DatabaseUnavailable, SettingsError
from kg_memory.falkor import connect, servers
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.servers import redis_urls
from kg_memory.memory.memory import GraphMemory
from kg_memory.memory.open import NamedServer
from tests.cluster import access
from tests.cluster.access import Certificates, secured
from tests.cluster.nodes import Cluster, free_ports, until
from tests.cluster.test_cluster import SAID, found, opened, working
from tests.falkor.test_replica import running, started

pytestmark = pytest.mark.system

# --- TLS ---


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server") / "data", "--repl-diskless-sync-delay", "0") as started:
        yield started


async def use(url: str, settings, namespace: str) -> None:
    """Write and read there, sync and async."""
    with opened(url, settings) as memory:
        await asyncio.to_thread(memory.add, SAID, at="2024-01-01", namespace=namespace)
        assert await asyncio.to_thread(found, memory, namespace) == [SAID]
    async with opened(url, settings) as memory:
        [fact] = (await memory.asearch("Where does Ann live?", namespace=namespace)).facts
        assert fact.sentence == SAID


async def test_tls_with_certificates_connects_to_server(certificates, node, settings, namespace):
    [own] = free_ports(1)
    with certificates.before(node.port, own):
        await use(f"falkors://127.0.0.1:{own}{certificates.query()}", settings, namespace)


async def test_tls_with_certificates_and_password_connects_to_cluster(tmp_path, settings, namespace):
    with secured(tmp_path / "cluster") as cluster:
        for node in cluster.nodes:
            name = next(each for n in range(99) if cluster.holds(node, each := f"{namespace}-{n}"))
            await use(cluster.url, settings, name)
        assert all(node.graphs() for node in cluster.nodes)


@pytest.mark.parametrize("wrong", ["name", "authority", "client"])
def test_tls_refuses_wrong_certificate(certificates, node, wrong):
    [own] = free_ports(1)
    with certificates.before(node.port, own, "elsewhere" if wrong == "name" else "server"):
        query = "" if wrong == "authority" else certificates.query(client=wrong != "client")
        with pytest.raises(DatabaseUnavailable):
            Database(NamedServer(f"falkors://127.0.0.1:{own}{query}")).client()


@pytest.mark.parametrize("scheme", ["falkor", "falkors"])
def test_silent_port_raises_database_unavailable(monkeypatch, scheme):
    monkeypatch.setattr(servers, "OPENING", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
            Database(NamedServer(f"{scheme}://127.0.0.1:{mute.getsockname()[1]}")).client()
        assert time.monotonic() - began < 3


def test_namespaces_raises_if_no_server_is_reachable():
    [port] = free_ports(1)
    with pytest.raises(DatabaseUnavailable):
        Database(NamedServer(f"falkor://127.0.0.1:{port}")).namespaces(reachable=True)


def test_tls_to_plain_port_raises_database_unavailable(monkeypatch, node):
    monkeypatch.setattr(servers, "OPENING", 0.3)
    with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
        Database(NamedServer(f"falkors://127.0.0.1:{node.port}")).client()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("falkor:/:s3cret@127.0.0.1:1", "must begin with one of falkor://"),
        (":s3cret@127.0.0.1:1", "must begin with one of falkor://"),
        ("falkor://:s3cret/x@127.0.0.1:1", "escape special characters in a password, %2F for /"),
        ("falkor://:s3cret@127.0.0.1:port", "an invalid port"),
        ("falkor://:12/s3cret@127.0.0.1:1", "escape special characters in a password, %2F for /"),
        ("falkor://:s3cret@127.0.0.1:1?protocol=9", "invalid option in the URL .*protocol"),
        ("falkor://:s3cret@127.0.0.1:1?bogus=1", "invalid option in the URL .*bogus"),
        ("falkor://:s3cret@127.0.0.1:1?socket_timeout=soon", "invalid option in the URL .*socket_timeout"),
    ],
)
def test_wrong_url_error_omits_password(url, says):
    with pytest.raises(SettingsError, match=says) as told:
        redis_urls(url)
    assert "s3cret" not in str(told.value)


# --- Users ---


@pytest.fixture
def granted(cluster: Cluster, settings):
    """A memory for a user with those rights only."""
    with ExitStack() as stack:

        def open_with(*rights: str, **values: int) -> GraphMemory:
            for node in cluster.nodes:
                node.redis.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">secret", *access.KEYS, *rights)
            return stack.enter_context(opened(cluster.url.replace("//", "//ann:secret@"), settings, **values))

        yield open_with


def test_documented_rights_suffice_for_each_task(granted, cluster, namespace):
    memory = granted(*access.USED)
    added = memory.add(SAID, at="2024-01-01", namespace=namespace)
    assert found(memory, namespace) == [SAID]
    assert memory.data.namespaces() == [namespace]
    memory = granted(*access.USED, *access.SLEEPING)
    assert memory.data.sleep(namespace=namespace)
    assert memory.data.namespaces("asleep") == [namespace]
    assert found(memory, namespace) == [SAID]
    memory = granted(*access.USED, *access.COPIES)
    file = io.BytesIO()
    memory.data.export(file, namespace=namespace)
    memory.data.import_(io.BytesIO(file.getvalue()), namespace=namespace, replace=True)
    memory = granted(*access.USED, *access.COPIES, *access.FORGETTING, *access.ERASING)
    done = memory.privacy.forget(episode=added.episode, namespace=namespace, erase=True)
    assert "replicas" in done.advice


def test_wait_replicas_needs_wait_and_role_rights(granted, namespace):
    memory = granted(*access.USED, *access.WAITING, wait_replicas=1, min_replicas=0)
    memory.add(SAID, at="2024-01-01", namespace=namespace)
    assert found(memory, namespace) == [SAID]


def test_missing_right_is_named_in_error(granted, namespace):
    memory = granted("+module|list", "+cluster|slots", "+graph.ro_query")
    with pytest.raises(DatabaseForbidden, match=r"'set' command.*docs/operations.md"):
        memory.add(SAID, at="2024-01-01", namespace=namespace)


async def test_worker_needs_only_documented_rights(granted, cluster, namespace):
    memory = granted(*access.USED, *access.WORKING)
    for node in cluster.nodes:
        node.redis.acl_log_reset()
    async with working(memory):
        await memory.episodes.asave([{"content": SAID, "at": "2024-01-01"}], namespace=namespace)
        Outbox(memory.driver.store.database).wake(namespace)
        await asyncio.to_thread(until, lambda: found(memory, namespace) == [SAID])
        assert [entry for node in cluster.nodes for entry in node.redis.acl_log()] == []


def test_forget_without_erase_rights_is_audited_with_advice(granted, cluster, namespace):
    memory = granted(*access.USED, *access.FORGETTING)
    added = memory.add(SAID, at="2024-01-01", namespace=namespace)
    cluster.master(namespace).redis.execute_command(
        "GRAPH.COPY", graph_key(namespace), f"kg-aside:{{{graph_key(namespace)}}}x"
    )
    done = memory.privacy.forget(episode=added.episode, namespace=namespace, erase=True)
    assert "permissions" in done.advice
    assert not done.erased
    assert len(memory.privacy.audit()) == 1


# --- Sentinel, and a server that froze ---


@pytest.fixture
def sentinel(tmp_path, node):
    [port] = free_ports(1)
    (tmp_path / "sentinel.conf").write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor own 127.0.0.1 {node.port} 1\n"
    )
    command = [str(binaries.download_missing().redis_server), str(tmp_path / "sentinel.conf"), "--sentinel"]
    with started(command, port) as running_sentinel:
        yield running_sentinel.url()


async def test_sentinel_url_connects_to_primary(sentinel, settings, namespace):
    await use(sentinel, settings, namespace)


def test_frozen_replica_is_skipped_after_timeout(tmp_path, node, settings, namespace, monkeypatch):
    monkeypatch.setattr(connect, "ANSWERED_IN", 0.3)
    with running(tmp_path / "copy", "--replicaof", "127.0.0.1", str(node.port)) as copy:
        until(lambda: copy.redis.info("replication")["master_link_status"] == "up")
        with opened(node.url(), settings.with_(replica_url=copy.url())) as memory:
            memory.add(SAID, at="2024-01-01", namespace=namespace)
            assert found(memory, namespace) == [SAID]
            process = copy.redis.info()["process_id"]
            os.kill(process, signal.SIGSTOP)
            try:
                began = time.monotonic()
                assert found(memory, namespace) == [SAID]
                assert time.monotonic() - began < 3
                began = time.monotonic()
                assert found(memory, namespace) == [SAID]
                assert time.monotonic() - began < 0.3, "the frozen replica was asked again"
            finally:
                os.kill(process, signal.SIGCONT)
