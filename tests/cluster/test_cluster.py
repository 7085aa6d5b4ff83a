"""A memory on a Redis Cluster: namespaces are spread over its masters."""

import asyncio
import io
import json
import shutil
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing

import pytest
from redis.crc import key_slot

from kg_memory.cli import main
from kg_memory.contrib.leases import lease_key
from kg_memory.contrib.server import worker
from kg_memory.contrib.server.keys import KeyRing
from kg_memory.contrib.server.worker import Outbox, Worker
from kg_memory.errors import DatabaseUnavailable, DatabaseVersionError
from kg_memory.falkor import servers
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.graph_swap import PREFIX
from kg_memory.maintenance.forgetting.erase import STREAM
from kg_memory.memory.memory import GraphMemory
from tests.cluster.nodes import SLOTS, Cluster, Node, slot_of, until
from tests.faults.test_sleep_killed import lose_nothing
from tests.scripted import HashEmbeddings, Scripted

pytestmark = pytest.mark.system

SAID = "Ann lives in Oslo"


ASKED = "Where does Ann live?"


def opened(url: str, settings, **changes) -> GraphMemory:
    return GraphMemory(settings.with_(url=url, **changes), model=Scripted(), embeddings=HashEmbeddings())


@pytest.fixture
def memory(cluster: Cluster, settings):
    with opened(cluster.url, settings) as memory:
        yield memory


def found(memory: GraphMemory, namespace: str) -> list[str]:
    return [fact.sentence for fact in memory.search(ASKED, namespace=namespace).facts]


def replicas(cluster: Cluster, master: Node) -> list[Node]:
    return [node for node in cluster.nodes if node.redis.info("replication").get("master_port") == master.port]


@asynccontextmanager
async def working(memory: GraphMemory) -> AsyncIterator[None]:
    """Let a worker of *memory* read episodes."""
    worker_ = Worker(memory, look_seconds=3600)
    running = asyncio.create_task(worker_.run())
    yield
    worker_.stop()
    await running


@pytest.fixture
def spread(cluster: Cluster, namespace: str) -> list[str]:
    """Namespaces on three masters."""
    found = {}
    for number in range(100):
        name = f"{namespace}-{number}"
        found.setdefault(cluster.master(name).port, name)
    assert len(found) == 3
    return list(found.values())


def test_namespaces_are_spread_over_masters(memory, cluster, spread):
    for name in spread:
        memory.add(SAID, at="2024-01-01", namespace=name)
        assert found(memory, name) == [SAID]
        assert graph_key(name) in cluster.master(name).graphs()
    assert set(spread) <= set(memory.data.namespaces())
    assert [memory.stats(namespace=name).episodes for name in spread] == [1, 1, 1]


async def test_cluster_serves_parallel_first_calls(cluster, settings, namespace):
    names = [f"{namespace}+{number}" for number in range(20)]
    async with opened(cluster.url, settings) as memory:
        await asyncio.gather(*(memory.aadd(SAID, at="2024-01-01", namespace=name) for name in names))
        results = await asyncio.gather(*(memory.asearch(ASKED, namespace=name) for name in names))
    assert [[fact.sentence for fact in result.facts] for result in results] == [[SAID]] * 20


async def test_worker_reads_episodes_of_every_master(memory, spread):
    outbox = Outbox(memory.driver.store.database)
    async with working(memory):
        for name in spread:
            await memory.episodes.asave([{"content": SAID, "at": "2024-01-01"}], namespace=name)
            outbox.wake(name)
        await asyncio.to_thread(until, lambda: all(found(memory, name) == [SAID] for name in spread))
        await outbox.stop(60)


def test_cluster_imports_export_of_another_master(memory, cluster, spread):
    source, target, _ = spread
    memory.add(SAID, at="2024-01-01", namespace=source)
    memory.add("Bob lives in Rome", at="2024-01-01", namespace=target)
    file = io.BytesIO()
    memory.data.export(file, namespace=source)
    memory.data.import_(io.BytesIO(file.getvalue()), namespace=target, replace=True)
    assert found(memory, target) == [SAID]
    assert not any(graph.startswith(PREFIX) for node in cluster.nodes for graph in node.graphs())


def test_reembed_works_on_any_master(memory, cluster, spread, settings):
    memory.add(SAID, at="2024-01-01", namespace=spread[1])
    other = HashEmbeddings()
    other.model = "another"
    with GraphMemory(settings.with_(url=cluster.url), model=Scripted(), embeddings=other) as second:
        assert second.data.reembed(namespace=spread[1]) > 0
        assert found(second, spread[1]) == [SAID]


def test_forget_erases_text_from_logs_and_files_of_master(memory, cluster, spread):
    for name in spread:
        node = cluster.master(name)
        node.redis.config_set("slowlog-log-slower-than", 0)
        added = memory.add("Zebulonia lives in Oslo", at="2024-01-01", namespace=name)
        done = memory.privacy.forget(episode=added.episode, namespace=name, erase=True)
        assert (done.erased, "replicas" in done.advice) == (False, True)
        kept = node.redis.execute_command("XRANGE", STREAM.format(graph_key(name)), "-", "+")
        assert "Zebulonia" not in f"{kept}{node.redis.slowlog_get(1000)}"
        assert b"Zebulonia" not in b"".join(path.read_bytes() for path in node.folder.rglob("*") if path.is_file())
    assert len(memory.privacy.audit()) >= 3
    assert memory.privacy.verify().entries >= 3


def test_keyring_stores_api_keys_in_cluster(memory):
    ring = KeyRing(memory.driver.store.database)
    key, secret = ring.create("tests")
    assert ring.find(secret) == key


def test_doctor_checks_every_server(cluster, monkeypatch, capsys):
    monkeypatch.setenv("KG_MEMORY_URL", cluster.url)
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    for wait, least, states in ((0, 0, ("ok", "note")), (1, 1, ("ok", "note")), (2, 2, ("wrong",)), (2, 1, ("note",))):
        monkeypatch.setenv("KG_MEMORY_WAIT_REPLICAS", str(wait))
        monkeypatch.setenv("KG_MEMORY_MIN_REPLICAS", str(least))
        main(["doctor", "--json"])
        [check] = [check for check in json.loads(capsys.readouterr().out)["checks"] if check["what"] == "database"]
        assert check["state"] in states
        assert ("too few replicas" in check["mend"]) == (wait == 2)
        assert "on 3 servers" in check["found"]
        assert (f"waits for {wait} of its replicas" in check["found"]) == (wait > 0)


def test_server_without_module_fails_only_its_namespaces(tmp_path, settings, namespace):
    nodes = [Node(tmp_path / "whole"), Node(tmp_path / "bare", module=False)]
    try:
        nodes[0].cluster("MEET", "127.0.0.1", nodes[1].port, nodes[1].bus)
        for node, first, last in zip(nodes, (0, 8192), (8191, 16383), strict=True):
            node.cluster("ADDSLOTSRANGE", first, last)
        until(lambda: all(node.cluster("INFO")["cluster_state"] == "ok" for node in nodes))
        names = [f"{namespace}-{number}" for number in range(20)]
        with opened(nodes[0].url, settings) as memory:
            for name in names:
                if slot_of(name) < 8192:
                    memory.add(SAID, at="2024-01-01", namespace=name)
                    assert found(memory, name) == [SAID]
                else:
                    with pytest.raises(DatabaseVersionError, match=f"{nodes[1].port}.* no FalkorDB module"):
                        memory.add(SAID, at="2024-01-01", namespace=name)
    finally:
        for node in nodes:
            node.close()


# --- graphs that move ---


@pytest.fixture
def moving(memory, cluster, spread):
    """A namespace whose graph is migrating to another server, and a function that ends the migration."""
    name, source, target = spread[0], cluster.master(spread[0]), cluster.master(spread[1])
    memory.add(SAID, at="2024-01-01", namespace=name)
    slot = slot_of(name)
    target.cluster("SETSLOT", slot, "IMPORTING", source.id)
    source.cluster("SETSLOT", slot, "MIGRATING", target.id)
    keys = source.redis.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
    source.redis.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS", *keys)
    return name, lambda: [node.cluster("SETSLOT", slot, "NODE", target.id) for node in (target, source)]


def test_moving_graph_is_found_during_and_after_migration(memory, moving):
    name, settle = moving
    assert found(memory, name) == [SAID]  # ASK
    memory.add("Bob lives in Rome", at="2024-01-01", namespace=name)
    settle()
    assert SAID in found(memory, name)  # MOVED
    memory.add("Cid lives in Riga", at="2024-01-01", namespace=name)
    assert memory.stats(namespace=name).episodes == 3


async def test_moving_graph_is_found_by_parallel_tasks(cluster, settings, moving):
    name, settle = moving
    async with opened(cluster.url, settings) as memory:
        for _ in range(2):
            results = await asyncio.gather(*(memory.asearch(ASKED, namespace=name) for _ in range(20)))
            assert all(SAID in [fact.sentence for fact in result.facts] for result in results)
            await memory.aadd("Bob lives in Rome", at="2024-01-01", namespace=name)
            settle()


# --- failover ---


@pytest.fixture
def written(memory, cluster, spread):
    """Three namespaces with a fact each, and the node of the first, which is the server of the URL."""
    for name in spread:
        memory.add(SAID, at="2024-01-01", namespace=name)
    names = sorted(spread, key=lambda name: cluster.master(name).url != cluster.url)
    for name in names:
        cluster.master(name).redis.wait(1, 5000)
    return names, cluster.master(names[0])


def test_killed_master_raises_until_replica_takes_over(memory, cluster, written):
    names, node = written
    node.kill()
    began = time.monotonic()
    errors = []
    while time.monotonic() - began < 20:
        over = cluster.master(names[0]) is not node
        try:
            memory.add("Bob lives in Rome", at="2024-01-02", namespace=names[0])
            break
        except DatabaseUnavailable as error:
            assert not over, "the replica has taken over"
            errors.append(str(error))
        for name in names[1:]:
            assert found(memory, name) == [SAID], "the other masters still answer"
    assert errors
    assert all("check that the server runs" in error for error in errors)
    assert SAID in found(memory, names[0])
    assert {episode.content for episode in memory.episodes.list(namespace=names[0])} == {SAID, "Bob lives in Rome"}


async def test_killed_master_raises_in_async_calls_until_failover(cluster, settings, written):
    names, node = written
    async with opened(cluster.url, settings) as memory:
        assert [fact.sentence for fact in (await memory.asearch(ASKED, namespace=names[0])).facts] == [SAID]
        node.kill()
        with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
            await memory.asearch(ASKED, namespace=names[0])
        await asyncio.to_thread(until, lambda: cluster.master(names[0]) is not node)
        results = await asyncio.gather(*(memory.asearch(ASKED, namespace=name) for name in names * 5))
        assert [[fact.sentence for fact in result.facts] for result in results] == [[SAID]] * 15


def test_url_with_several_servers_connects_to_any(cluster, settings, written):
    names, node = written
    node.kill()
    until(lambda: cluster.master(names[0]) is not node)
    url = f"falkor://127.0.0.1:{node.port},127.0.0.1:{cluster.master(names[0]).port}"
    with opened(url, settings) as memory:
        assert [found(memory, name) for name in names] == [[SAID]] * 3


async def test_frozen_master_is_left_after_failover(cluster, settings, written, monkeypatch):
    monkeypatch.setattr(servers, "SILENT", 0.5)
    names, node = written
    async with opened(cluster.url, settings) as memory:
        assert (await memory.asearch(ASKED, namespace=names[0])).facts
        node.process.send_signal(signal.SIGSTOP)
        try:
            searches = [memory.asearch(ASKED, namespace=names[0]) for _ in range(40)]  # more than there are connections
            searches.append(asyncio.to_thread(memory.search, ASKED, namespace=names[0]))
            async with asyncio.timeout(20):
                results = await asyncio.gather(*searches, return_exceptions=True)
                assert {type(result) for result in results} == {DatabaseUnavailable}
                assert "another server has replaced it" in str(results[0])
                assert (await memory.asearch(ASKED, namespace=names[0])).facts
        finally:
            node.process.send_signal(signal.SIGCONT)


async def test_worker_continues_after_failover(memory, cluster, settings, spread):
    slot = key_slot(worker.STREAM.encode())
    name = next(name for name in spread if slot_of(name) * 3 // SLOTS == slot * 3 // SLOTS)
    other = next(one for one in spread if one != name)
    said = [{"content": f"Ann knows P{number}", "at": f"2024-01-{number + 1:02}"} for number in range(30)]
    done = lambda name: len(memory.episodes.list(namespace=name, status="done"))  # noqa: E731
    async with opened(cluster.url, settings) as second, working(second):
        outbox = Outbox(second.driver.store.database)
        await second.episodes.asave(said, namespace=name)
        outbox.wake(name)
        node = cluster.master(name)
        await asyncio.to_thread(until, lambda: done(name))
        node.kill()
        await second.episodes.asave(said[:1], namespace=other)
        outbox.wake(other)  # the master of the stream is away
        await asyncio.to_thread(until, lambda: cluster.master(name) is not node)
        await asyncio.to_thread(until, lambda: (done(name), done(other)) == (30, 1))


async def test_worker_reads_while_master_of_hints_is_down(cluster, settings, spread, monkeypatch):
    monkeypatch.setattr(worker, "LOOK_WITHOUT_HINTS", 0.3)
    third = key_slot(worker.STREAM.encode()) * 3 // SLOTS
    away, here = sorted(spread, key=lambda name: slot_of(name) * 3 // SLOTS != third)[:2]
    async with opened(cluster.url, settings) as memory:
        await memory.aadd(SAID, at="2024-01-01", namespace=here)
        async with working(memory):
            master = cluster.master(away)
            for node in (master, *replicas(cluster, master)):
                node.kill()
            await memory.episodes.asave([{"content": "Bob lives in Rome", "at": "2024-01-01"}], namespace=here)
            await asyncio.to_thread(until, lambda: len(memory.episodes.list(namespace=here, status="done")) == 2)


def test_lease_key_is_on_the_server_of_its_graph(spread):
    assert [key_slot(lease_key(name).encode()) for name in spread] == [slot_of(name) for name in spread]


# --- acknowledgements ---


@pytest.mark.parametrize("asynchronous", [False, True])
def test_write_without_replica_is_not_acknowledged(cluster, settings, namespace, monkeypatch, asynchronous):
    monkeypatch.setattr(servers, "REPLICATED_IN", 0.3)
    with opened(cluster.url, settings, wait_replicas=1) as memory:

        def write() -> None:
            if asynchronous:
                asyncio.run(memory.aadd(SAID, at="2024-01-01", namespace=namespace))
            else:
                memory.add(SAID, at="2024-01-01", namespace=namespace)

        memory.add("Bob lives in Rome", at="2024-01-01", namespace=namespace)
        following = replicas(cluster, cluster.master(namespace))
        for node in following:
            node.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(DatabaseUnavailable, match="0 of 1 replicas"):
                write()
        finally:
            for node in following:
                node.process.send_signal(signal.SIGCONT)
        write()
        assert memory.stats(namespace=namespace).episodes == 2


@pytest.mark.parametrize("least", [None, 0], ids=["until it is back", "and goes on alone"])
def test_acknowledged_writes_survive_kill_of_master_once(cluster, settings, namespace, monkeypatch, least):
    monkeypatch.setattr(servers, "REPLICATED_IN", 0.3)
    acknowledged, last = [], 10_000
    with opened(cluster.url, settings, wait_replicas=1, min_replicas=least) as memory:
        node, deadline = cluster.master(namespace), time.monotonic() + 40
        killing = threading.Timer(0.7, node.kill)
        killing.start()
        while len(acknowledged) < last:
            assert time.monotonic() < deadline
            name = f"m{len(acknowledged)}"
            try:
                memory.episodes.save([{"content": f"message {name}", "source_id": name}], namespace=namespace)
                acknowledged.append(name)
            except DatabaseUnavailable:  # then again with the same message
                killing.join()
            if last == 10_000 and node.process.poll() is not None and cluster.master(namespace) is not node:
                last = len(acknowledged) + 10
                if least is None:
                    cluster.heal()  # the new master has no replica until the killed one is back
        cluster.heal()
        stored = [episode.source_id for episode in memory.episodes.list(namespace=namespace, limit=10_000)]
    assert len(acknowledged) > 20
    assert sorted(stored) == sorted(acknowledged)


def test_kills_while_namespace_falls_asleep_and_wakes_lose_nothing(cluster, settings):
    def kill_master():
        cluster.wait()
        cluster.master("n").kill()
        threading.Timer(2, cluster.heal).start()

    lose_nothing(settings.with_(url=cluster.url, wait_replicas=1, sleep_after=0), kill_master, cluster.wait)


def test_copies_of_all_masters_form_cluster_at_new_addresses(cluster, settings, spread, tmp_path):
    with opened(cluster.url, settings) as memory:
        for name in spread:
            memory.add(SAID, at="2024-01-01", namespace=name)
        masters = list({cluster.master(name).port: cluster.master(name) for name in spread}.values())
        for node in masters:
            node.redis.config_set("auto-aof-rewrite-percentage", 0)
            until(lambda node=node: not node.redis.info("persistence")["aof_rewrite_in_progress"])
            shutil.copytree(node.folder, tmp_path / str(node.port))
            node.redis.config_set("auto-aof-rewrite-percentage", 100)
    for node in cluster.nodes:
        node.kill()  # the copies have the same node ids
    with ExitStack() as stack:
        restored = [stack.enter_context(closing(Node(tmp_path / str(node.port), restored=True))) for node in masters]
        for node in restored[1:]:
            restored[0].cluster("MEET", "127.0.0.1", node.port, node.bus)
        until(lambda: all(node.cluster("INFO")["cluster_state"] == "ok" for node in restored))
        with opened(restored[0].url, settings) as memory:
            assert memory.data.namespaces() == sorted(spread)
            assert [found(memory, name) for name in spread] == [[SAID]] * 3
