"""Kill a master and workers of a Redis Cluster: measure lost writes and the time to recovery.

    python -m benchmarks.cluster [--quick] [--namespaces 1000] [--messages 3] [--node-timeout 1] [--replicas 1]

Run it from the root of the repository. Three masters, three replicas (six with ``--replicas 2``) and four ``kg-memory
worker`` processes share the processors of this machine, which limits the speeds. Messages are saved in all namespaces
in turns, and the workers are notified by the outbox of the HTTP server. Once half of the messages are accepted, ``kill
-9`` ends the master with the workers' stream, and two workers. The master is started again two seconds after its
replica has taken over. A writer that gets an error sends the same message again. ``--only takeover`` measures how long
Redis alone takes to replace an idle master.

At the end the graphs are read by Cypher on each server (see `benchmarks/cluster_accepted.py`). The exit code is 1 if a
message or fact is duplicated, out of order or dangling, or is lost although each write waited for a replica.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cluster_accepted import ACQUAINTANCES, holders, look, masters, message, problems, wait_until_read
from benchmarks.cluster_processes import Deployment, scripted_model
from kg_memory import GraphMemory
from kg_memory.contrib.server.worker import STREAM, Outbox
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.connect import graph_key
from tests.cluster.nodes import Cluster, Node, running, until

WORKERS, KILLED = 4, 2
WRITES = 16
"""Messages that are saved concurrently."""
FEW = 2
"""Namespaces that a worker reads at a time, if the model rather than the processors is to limit the speed."""
AGAIN = 0.1
"""Seconds after which a writer retries after an error."""
RESTART = 2
"""Seconds from the takeover to the restart of the killed server, which takes processor time from the others."""
GRACE = 2
"""Seconds after the node timeout by which messages must be saved again."""


@dataclass(frozen=True)
class Case:
    """The durability of an acknowledged write: settings of kg-memory, and when the servers sync to disk."""

    settings: Mapping[str, int]
    fsync: str

    def __str__(self) -> str:
        told = [f"`{name}={value}`" for name, value in self.settings.items()]
        return ", ".join([*told, f"`appendfsync {self.fsync}`"])


CASES = {
    "durable": Case({"wait_replicas": 1}, "always"),
    "alone": Case({"wait_replicas": 1, "min_replicas": 0}, "always"),
    "fast": Case({"wait_replicas": 0}, "everysec"),
}
"""The crashes to measure; "alone" is as durable, but a server without replicas also acknowledges writes."""


@dataclass
class Accepted:
    """The numbers of the messages that the database has acknowledged, by namespace, and the time of each."""

    numbers: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    times: list[tuple[float, str]] = field(default_factory=list)
    errors: int = 0

    def add(self, namespace: str, number: int) -> None:
        self.numbers[namespace].add(number)
        self.times.append((time.time(), namespace))

    def first_after(self, began: float, namespaces: set[str], timeout: float) -> float:
        """Return the seconds from *began* until a message of these *namespaces* was accepted again.

        Earlier answers, sent before their server was killed, arrive within half of the node *timeout*, and are skipped.
        """
        return next(at for at, name in self.times if at > began + timeout / 2 and name in namespaces) - began


async def save_all(deployment: Deployment, names: Sequence[str], each: int, accepted: Accepted) -> None:
    """Save *each* messages in each namespace of *names*, retrying until accepted, and notify the workers."""
    async with GraphMemory(deployment.settings) as memory:
        outbox, slots = Outbox(memory.driver.store.database), asyncio.Semaphore(WRITES)

        async def save(name: str, number: int) -> bool:
            async with slots:
                try:
                    await memory.episodes.asave([message(number)], namespace=name)
                except DatabaseUnavailable:
                    accepted.errors += 1
                    return False
                accepted.add(name, number)
                outbox.wake(name)
                return True

        async def write(name: str) -> None:
            for number in range(each):
                while not await save(name, number):  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(AGAIN)

        await asyncio.gather(*map(write, names))
        await outbox.stop(60)


def read_times(nodes: Sequence[Node], names: Sequence[str]) -> list[tuple[float, str]]:
    """Return (time, namespace) of each message that a worker has read, earliest first, in seconds of its clock."""
    keys, held = {graph_key(name): name for name in names}, holders(nodes)
    rows = [(row["read_at"] / 1e6, keys[key]) for key in keys for row in look(held[key][0], key, ACQUAINTANCES)]
    return sorted(rows)


# Killing processes


class Crash:
    """Kills the master of the workers' stream and some workers, and restarts the master once it is replaced."""

    def __init__(self, cluster: Cluster, workers: Sequence[subprocess.Popen[bytes]]) -> None:
        self._cluster, self._workers = cluster, workers

    def run(self) -> None:
        node = _master_of_stream(self._cluster)
        self.namespaces = {key for key, [holder, *_] in holders(self._cluster.nodes).items() if holder is node}
        self._before = _elections(node)
        self.at = time.time()
        node.kill()
        for worker in self._workers:
            worker.kill()
        _wait_until_replaced(self._cluster, node)
        self.takeover = time.time() - self.at
        time.sleep(RESTART)
        node.start()
        until(lambda: node.redis.info("replication").get("master_link_status") == "up")
        self.replica_back = time.time() - self.at

    def elections(self) -> int:
        """Return how many elections replicas have started since the master was killed; 1 is the normal number."""
        return max(map(_elections, self._cluster.nodes)) - self._before


def _elections(node: Node) -> int:
    return int(node.cluster("INFO")["cluster_current_epoch"])


def _master_of_stream(cluster: Cluster) -> Node:
    [node] = [node for node in masters(cluster.nodes) if _holds(node, STREAM)]
    return node


def _wait_until_replaced(cluster: Cluster, killed: Node) -> None:
    others = [node for node in cluster.nodes if node is not killed]
    until(lambda: any(_holds(node, STREAM) for node in others))


def _holds(node: Node, key: str) -> bool:
    slot = node.cluster("KEYSLOT", key)
    slots = node.redis.execute_command("CLUSTER", "SLOTS")
    return any(first <= slot <= last and port == node.port for first, last, (_, port, *_), *_ in slots)


async def crash_in_the_middle(
    deployment: Deployment, crash: Crash, names: Sequence[str], each: int, accepted: Accepted
) -> None:
    """Save all messages, and run *crash* once half of them are accepted."""
    saving = asyncio.create_task(save_all(deployment, names, each, accepted))
    while len(accepted.times) < len(names) * each / 2:  # noqa: ASYNC110 - nor here
        await asyncio.sleep(0.01)
    await asyncio.to_thread(crash.run)
    await saving


def measure_crash(chosen: argparse.Namespace, case: Case) -> dict[str, Any]:
    """Return the figures of a crash in the middle of the writes."""
    names = [f"user-{number}" for number in range(chosen.namespaces)]
    with deployed(chosen, case) as (cluster, deployment):
        workers = [deployment.worker(chosen.at_once) for _ in range(WORKERS)]
        accepted, crash = Accepted(), Crash(cluster, workers[:KILLED])
        asyncio.run(crash_in_the_middle(deployment, crash, names, chosen.messages, accepted))
        wait_until_read(cluster.nodes, names, chosen.patience)
        ended = time.time()
        spread = Counter(holder[0].port for holder in holders(cluster.nodes).values())
        wrong = problems(cluster.nodes, accepted.numbers)
        for problem in wrong[:20]:
            print(*problem)
        kinds = Counter(problem.kind for problem in wrong)
        lost = {name for name in names if graph_key(name) in crash.namespaces}
        read_again = min(at for at, name in read_times(cluster.nodes, names) if at > crash.at and name in lost)
        return {
            "namespaces on each master": " / ".join(map(str, sorted(spread.values()))),
            "furthest from even, %": round(max(abs(3 * count / len(names) - 1) for count in spread.values()) * 100, 1),
            "messages accepted": len(accepted.times),
            "errors told to writers": accepted.errors,
            "lost": kinds["lost"],
            "doubled": kinds["doubled"],
            "out of order": kinds["out of order"],
            "overlapping, dangling, changed or unread": kinds.total()
            - sum(kinds[kind] for kind in ("lost", "doubled", "out of order")),
            "elections of a master": crash.elections(),
            "replica took over after, s": round(crash.takeover, 1),
            "killed server followed it after, s": round(crash.replica_back, 1),
            f"saving went on after, s (goal {chosen.node_timeout + GRACE:g})": round(
                accepted.first_after(crash.at, lost, chosen.node_timeout), 1
            ),
            "reading went on after, s": round(read_again - crash.at, 1),
            "all read after, s": round(ended - crash.at, 1),
        }


# Redis alone


def measure_takeovers(chosen: argparse.Namespace) -> list[float]:
    """Return the sorted seconds from the end of a master in an idle cluster until its replica has replaced it."""
    took = []
    for _ in range(chosen.runs):
        with (
            tempfile.TemporaryDirectory() as folder,
            running(Path(folder), *node_timeout(chosen), replicas=chosen.replicas) as cluster,
        ):
            time.sleep(2 + random.random())  # pings are sent in turns
            node = _master_of_stream(cluster)
            began = time.monotonic()
            node.kill()
            _wait_until_replaced(cluster, node)
            took.append(time.monotonic() - began)
    return sorted(took)


# Throughput


def measure_speeds(chosen: argparse.Namespace) -> dict[int, list[float]]:
    """Return the messages per second that 1, 2 and 4 workers read, by number of workers."""
    speeds: dict[int, list[float]] = {}
    with deployed(chosen, CASES["durable"]) as (cluster, deployment):
        for workers in (1, 2, 4):
            for at_once in (FEW, chosen.at_once):
                names = [f"speed-{workers}-{at_once}-{number}" for number in range(chosen.speed_namespaces)]
                asyncio.run(save_all(deployment, names, chosen.messages, Accepted()))
                started = [deployment.worker(at_once) for _ in range(workers)]
                wait_until_read(cluster.nodes, names, chosen.patience)
                for process in started:
                    process.terminate()
                for process in started:
                    process.wait()
                times = [at for at, _ in read_times(cluster.nodes, names)]
                middle = times[len(times) // 10 : -len(times) // 10]
                speeds.setdefault(workers, []).append(len(middle) / (middle[-1] - middle[0]))
    return speeds


def node_timeout(chosen: argparse.Namespace) -> tuple[str, str]:
    """Return the command line options that set a server's node timeout."""
    return "--cluster-node-timeout", f"{chosen.node_timeout * 1000:.0f}"


@contextmanager
def deployed(chosen: argparse.Namespace, case: Case) -> Iterator[tuple[Cluster, Deployment]]:
    """Run a cluster and a scripted model in the with block; yield the cluster and a starter of processes on it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        with (
            running(path, "--appendfsync", case.fsync, *node_timeout(chosen), replicas=chosen.replicas) as cluster,
            scripted_model(chosen.latency) as model,
        ):
            url = "falkor://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes[:3])
            with Deployment(url, model, path, **case.settings) as deployment:
                yield cluster, deployment


def main() -> int:
    """Run the chosen parts and print their tables; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespaces", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=3, help="in each namespace")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that the model takes for an answer")
    parser.add_argument("--at-once", type=int, default=8, help="namespaces that a worker reads at a time")
    parser.add_argument("--node-timeout", type=float, default=1, help="seconds, cluster-node-timeout of the servers")
    parser.add_argument("--replicas", type=int, default=1, help="of each master")
    parser.add_argument("--speed-namespaces", type=int, default=200, help="namespaces that are read for each speed")
    parser.add_argument("--patience", type=float, default=1800, help="seconds in which all must be read")
    parser.add_argument("--only", choices=(*CASES, "takeover", "speed"), help="one part")
    parser.add_argument("--runs", type=int, default=6, help="takeovers that are measured")
    parser.add_argument("--quick", action="store_true", help="60 namespaces, and 30 for speeds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.namespaces, chosen.speed_namespaces = 60, 30
    servers = 3 + 3 * chosen.replicas
    print(f"{os.cpu_count()} processors, shared by {servers} servers, the workers, the model and the writer")
    crashes = {}
    for name, case in CASES.items():
        if chosen.only in (None, name):
            crashes[str(case)] = measure_crash(chosen, case)
    if crashes:
        print("|  |", " | ".join(crashes), "|")
        print("| --- |", " | ".join("---" for _ in crashes), "|")
        for name in next(iter(crashes.values())):
            print(f"| {name} |", " | ".join(str(figures[name]) for figures in crashes.values()), "|")
    if chosen.only in (None, "takeover"):
        took = measure_takeovers(chosen)
        print(
            f"an idle master was replaced after {took[0]:.1f} to {took[-1]:.1f} s, median {statistics.median(took):.1f}"
        )
    if chosen.only in (None, "speed"):
        print(f"messages a second, between the first and the last tenth, {chosen.latency:g} s for an answer:")
        print(f"| workers | {FEW} namespaces at a time | {chosen.at_once} at a time |\n| --- | --- | --- |")
        for workers, speeds in measure_speeds(chosen).items():
            print(f"| {workers} |", " | ".join(f"{speed:.1f}" for speed in speeds), "|")
    wrong = ("doubled", "out of order", "overlapping, dangling, changed or unread")
    return int(
        any(figures[name] for figures in crashes.values() for name in wrong)
        or any(figures["lost"] for title, figures in crashes.items() if "=1" in title)
    )


if __name__ == "__main__":
    raise SystemExit(main())
