"""A Redis Cluster of three masters and their replicas with the FalkorDB module, on this machine."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from kg_memory.contrib.embedded import binaries
from kg_memory.falkor.connect import graph_key
from tests.waiting import until

SLOTS = 16384
NODE_TIMEOUT = 1.5
"""Seconds after which a master that does not answer is replaced by its replica."""
MODULE = ("THREAD_COUNT", "1", "OMP_THREAD_COUNT", "1", "NODE_CREATION_BUFFER", "128")


class Node:
    """A server of a cluster, on local ports; *restored* from the files of *folder*, or new."""

    def __init__(self, folder: Path, *options: str, module: bool = True, restored: bool = False) -> None:
        folder.mkdir(exist_ok=restored)
        self.folder = folder
        self._module = module
        self.port, self.bus = free_ports(2)
        self.options = (
            *f"--port {self.port} --bind 127.0.0.1 --appendonly yes --repl-diskless-sync-delay 0".split(),
            *f"--cluster-enabled yes --cluster-port {self.bus} --cluster-node-timeout {NODE_TIMEOUT * 1000:.0f}".split(),
            *"--cluster-require-full-coverage no --cluster-allow-replica-migration no".split(),
            *("--cluster-replica-validity-factor", "0", "--dir", str(folder), "--save", "", *options),
        )
        self.redis: Any = redis.Redis(port=self.port, decode_responses=True)
        self.start()
        self.id = self.redis.execute_command("CLUSTER", "MYID")

    @property
    def url(self) -> str:
        return f"falkor://127.0.0.1:{self.port}"

    def start(self) -> None:
        found = binaries.download_missing()
        module = ["--loadmodule", str(found.module), *MODULE] if self._module else []
        command = [str(found.redis_server), *self.options, *module]
        # Signals that Python ignores stay ignored: with SIGXFSZ a file that may not grow is an error, as on a full disk.
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, restore_signals=False)
        until(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, "the server ended"
        try:
            return bool(self.redis.ping())
        except redis.ConnectionError:  # or it is loading its data
            return False

    def kill(self) -> None:
        """Kill it as by kill -9."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.redis.close()
        self.kill()

    def cluster(self, word: str, *words: Any) -> Any:
        return self.redis.execute_command(f"CLUSTER {word}", *words)

    def graphs(self) -> set[str]:
        return set(self.redis.execute_command("GRAPH.LIST"))


class Cluster:
    """Three masters, each with *replicas* replicas; the roles change when a master is killed."""

    def __init__(self, nodes: list[Node], replicas: int = 1) -> None:
        self.nodes, self.replicas = nodes, replicas
        for node in nodes[1:]:
            nodes[0].cluster("MEET", "127.0.0.1", node.port, node.bus)
        for number, master in enumerate(nodes[:3]):
            master.cluster("ADDSLOTSRANGE", number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1)
        until(lambda: all(len(node.cluster("NODES")) == len(nodes) for node in nodes))
        for master, replica in zip(nodes[:3] * replicas, nodes[3:], strict=True):
            replica.cluster("REPLICATE", master.id)
        self.wait()

    @property
    def url(self) -> str:
        return self.nodes[0].url

    def wait(self) -> None:
        """Wait until every node sees three masters and all replicas that follow them."""
        until(self.is_well)

    def is_well(self) -> bool:
        try:
            return all(_is_well(node, self.replicas) for node in self.nodes)
        except redis.ConnectionError:
            return False

    def master(self, namespace: str) -> Node:
        """Return the node that holds the graph of *namespace*, as soon as all running nodes agree."""
        slot, ports = slot_of(namespace), set[int]()

        def agree() -> bool:
            ports.clear()
            for node in self.nodes:
                if node.process.poll() is None:
                    slots = node.redis.execute_command("CLUSTER", "SLOTS")
                    ports.update(port for first, last, (_, port, *_), *_ in slots if first <= slot <= last)
            return len(ports) == 1

        until(agree)
        return next(node for node in self.nodes if node.port in ports)

    def heal(self) -> None:
        """Start all killed nodes."""
        for node in self.nodes:
            if node.process.poll() is not None:
                node.start()
        self.wait()

    def empty(self) -> None:
        for node in self.nodes:
            if node.redis.info("replication")["role"] == "master":
                node.redis.flushall()


def slot_of(namespace: str) -> int:
    return key_slot(graph_key(namespace).encode())


def _is_well(node: Node, replicas: int) -> bool:
    flags = [line["flags"] for line in node.cluster("NODES").values()]
    role = node.redis.info("replication")
    return (
        node.cluster("INFO")["cluster_state"] == "ok"
        and sorted(flag.removeprefix("myself,") for flag in flags) == ["master"] * 3 + ["slave"] * 3 * replicas
        and (role["connected_slaves"] == replicas if role["role"] == "master" else role["master_link_status"] == "up")
    )


def free_ports(number: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def running(folder: Path, *options: str, replicas: int = 1) -> Iterator[Cluster]:
    """Run a cluster in *folder*, with *replicas* replicas of each master; each server gets *options*."""
    nodes: list[Node] = []
    try:
        for number in range(3 + 3 * replicas):
            nodes.append(Node(folder / str(number), *options))  # noqa: PERF401 - what was started is closed
        yield Cluster(nodes, replicas)
    finally:
        for node in nodes:
            node.close()
