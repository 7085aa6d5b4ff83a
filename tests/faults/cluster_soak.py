"""A deployment on a Redis Cluster under random faults; see `tests.faults.soak`, which runs it.

Writers send numbered messages over HTTP, each until it is accepted, to servers that only save; workers read them. All
of them, and the servers of the cluster, are killed, stopped for a while, cut off, or find the disk full. In the end
what was accepted is compared with the graphs, by Cypher on each server (see `tests.cluster.accepted`).
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import resource
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import redis

from kg_memory import GraphMemory
from kg_memory.falkor.connect import graph_key
from tests.cluster.accepted import Problem, holders, look, masters, message, problems, wait_until_read
from tests.cluster.nodes import Cluster, Node, free_ports, running
from tests.cluster.processes import Deployment, scripted_model

WRITERS, SERVERS, WORKERS = 3, 2, 3
NAMESPACES = 12
PAUSE = 0.3
"""Seconds between two messages of a writer, on average."""
ANSWERED_IN = 15.0
"""Seconds after which a writer sends a message again."""
FAILED = "MATCH (e:Episode) WHERE e.status = 'failed' RETURN e.source_id AS name, e.reason AS reason"


# Writers


def write(ports: Sequence[int], journal: Path, names: Sequence[str], until: float, seed: int) -> None:
    """Send messages to *names* in turns until that time, and list each in *journal* as soon as it is accepted."""
    draw, following = Random(seed), Counter(name for name, _ in journal_entries(journal))
    with journal.open("ab", buffering=0) as told:
        while time.time() < until:
            name = draw.choice(names)
            while not _send(draw.choice(ports), name, following[name]):
                time.sleep(0.1)
            told.write(f"{name} {following[name]}\n".encode())
            following[name] += 1
            time.sleep(draw.expovariate(1 / PAUSE))


def _send(port: int, namespace: str, number: int) -> bool:
    """Return whether the server at *port* accepted that message."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERED_IN)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/v1/namespaces/{namespace}/episodes", json.dumps(message(number)), headers)
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    if answer.status not in (202, 500, 503):
        raise AssertionError(content)
    return answer.status == 202


def journal_entries(journal: Path) -> Iterator[tuple[str, int]]:
    """Yield what was accepted, by namespace and number; a writer that was killed may have left half a line."""
    for line in journal.read_text().split("\n")[:-1] if journal.exists() else ():
        name, number = line.split()
        yield name, int(number)


# Faults


class ClusterSoak:
    """One run of so many *minutes*, with a fault *every* so many seconds on average."""

    def __init__(self, folder: Path, minutes: float, seed: int, every: float = 3.0) -> None:
        self._folder, self._seconds, self._every = folder, minutes * 60, every
        self._draw = Random(seed)
        self.done: Counter[str] = Counter()
        """What happened, how often."""
        self._later: list[tuple[float, Callable[[], None]]] = []
        """What ends the faults that last, and when."""
        self._sick: Node | None = None
        """The server of the cluster that has a fault: of these one at a time has one, as each master has one replica."""
        self._recovers_at = 0.0
        """When its fault ends."""

    def run(self, say: Callable[[str], None] = lambda _: None) -> list[Problem]:
        """Return what is wrong in the end: nothing."""
        with (
            running(self._folder, "--appendfsync", "always") as self._cluster,
            scripted_model(0.05) as model,
            Deployment(_url(self._cluster), model, self._folder, wait_replicas=1) as self._deployment,
            self._writing(),
        ):
            self._storm(say)
            say(f"waiting until all is read: {dict(self.done)}")
            return self._finish()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the writers, the servers and the workers."""
        self._ports = free_ports(SERVERS)
        self._until = time.time() + self._seconds
        self._context = multiprocessing.get_context("spawn")
        self._servers = [self._deployment.server(port) for port in self._ports]
        self._workers = [self._deployment.worker() for _ in range(WORKERS)]
        self._writers = [self._writer(place) for place in range(WRITERS)]
        try:
            yield
        finally:
            for process in self._writers:
                process.kill()
                process.join()

    def _storm(self, say: Callable[[str], None]) -> None:
        """Let faults happen until the writers are through, then end them."""
        said, due = time.time(), time.time() + self._draw.expovariate(1 / self._every)
        while any(writer.is_alive() for writer in self._writers):
            time.sleep(0.05)
            self._end_faults(time.time())
            if time.time() >= due and time.time() < self._until:
                self._draw.choice(self._faults())()
                due = time.time() + self._draw.expovariate(1 / self._every)
            if time.time() >= said + 30:
                said = time.time()
                say(f"{sum(map(len, self._accepted().values()))} accepted: {dict(self.done)}")
        self._end_faults(float("inf"))
        self._cluster.heal()

    def _end_faults(self, now: float) -> None:
        for at, end in list(self._later):
            if at <= now:
                self._later.remove((at, end))
                end()
        if self._sick is not None and now >= self._recovers_at and self._cluster.is_well():
            self._sick = None

    def _faults(self) -> list[Callable[[], None]]:
        """Return what may happen now."""
        if self._sick is None and self._draw.random() < 0.5:
            return [self._kill_node, self._kill_master, self._stop_master, self._fill]
        return [self._kill_writer, self._kill_worker, self._kill_server, self._stop_worker, self._cut]

    def _kill_writer(self) -> None:
        place = self._draw.randrange(WRITERS)
        self._writers[place].kill()
        self._writers[place].join()
        self._writers[place] = self._writer(place)
        self.done["killed writers"] += 1

    def _kill_worker(self) -> None:
        place = self._draw.randrange(WORKERS)
        self._workers[place].kill()
        self._workers[place].wait()
        self._workers[place] = self._deployment.worker()
        self.done["killed workers"] += 1

    def _kill_server(self) -> None:
        place = self._draw.randrange(SERVERS)
        self._servers[place].kill()
        self._servers[place].wait()
        self._servers[place] = self._deployment.server(self._ports[place])
        self.done["killed HTTP servers"] += 1

    def _stop_worker(self) -> None:
        worker = self._draw.choice(self._workers)
        worker.send_signal(signal.SIGSTOP)
        self._until_then(self._draw.uniform(1, 20), lambda: worker.send_signal(signal.SIGCONT))
        self.done["stopped workers"] += 1

    def _cut(self) -> None:
        with suppress(redis.ConnectionError):
            self._running_node(self._cluster.nodes).redis.execute_command("CLIENT", "KILL", "TYPE", "normal")
            self.done["times all connections of a server were cut"] += 1

    def _kill_node(self) -> None:
        self._kill(self._running_node(self._cluster.nodes), 0)
        self.done["killed nodes, started at once"] += 1

    def _kill_master(self) -> None:
        self._kill(self._running_node(masters(self._cluster.nodes)), self._draw.uniform(4, 8))
        self.done["killed masters, replaced"] += 1

    def _kill(self, node: Node, seconds: float) -> None:
        node.kill()
        self._harm(node, seconds, node.start)

    def _harm(self, node: Node, seconds: float, end: Callable[[], None]) -> None:
        self._sick = node
        self._recovers_at = time.time() + seconds
        self._until_then(seconds, end)

    def _stop_master(self) -> None:
        node = self._running_node(masters(self._cluster.nodes))
        node.process.send_signal(signal.SIGSTOP)
        self._harm(node, self._draw.uniform(0.2, 12), lambda: node.process.send_signal(signal.SIGCONT))
        self.done["stopped masters"] += 1

    def _fill(self) -> None:
        """Let the files of a server grow by so many bytes only; it ends itself then, and starts when there is room."""
        node = self._running_node(self._cluster.nodes)
        sizes = [path.stat().st_size for path in node.folder.glob("appendonlydir/*.aof")]
        limit = max(sizes) + self._draw.randrange(20_000)
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        def free() -> None:
            if node.process.poll() is None:
                resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            else:
                self.done["servers that ended for want of space"] += 1
                node.start()

        self._harm(node, self._draw.uniform(2, 8), free)
        self.done["full disks"] += 1

    def _until_then(self, seconds: float, end: Callable[[], None]) -> None:
        self._later.append((time.time() + seconds, end))

    def _running_node(self, nodes: Sequence[Node]) -> Node:
        return self._draw.choice([node for node in nodes if node is not self._sick])

    def _writer(self, place: int) -> BaseProcess:
        names = [f"n{number}" for number in range(place, NAMESPACES, WRITERS)]
        arguments = (self._ports, self._journal(place), names, self._until, self._draw.randrange(10**9))
        writer = self._context.Process(target=write, args=arguments)
        writer.start()
        return writer

    def _journal(self, place: int) -> Path:
        return self._folder / f"journal {place}"

    def _accepted(self) -> dict[str, set[int]]:
        accepted: defaultdict[str, set[int]] = defaultdict(set)
        for place in range(WRITERS):
            for name, number in journal_entries(self._journal(place)):
                accepted[name].add(number)
        return accepted

    # The end

    def _finish(self) -> list[Problem]:
        """Wait until all is read, read again what failed, and return what is not as it must be."""
        accepted = self._accepted()
        wait_until_read(self._cluster.nodes, list(accepted), 300)
        late: dict[str, set[int]] = {}
        with GraphMemory(self._deployment.settings) as memory:
            for key, [node, *_] in holders(self._cluster.nodes).items():
                for row in look(node, key, FAILED):
                    late.setdefault(key, set()).add(int(row["name"][1:]))
            for name in accepted:
                if graph_key(name) in late:
                    memory.episodes.retry(namespace=name)
        self.done["read again, as three workers ended while they read it"] = sum(map(len, late.values()))
        self.done["accepted messages"] = sum(map(len, accepted.values()))
        ended = [f"writer {place} ended with {each.exitcode}" for place, each in enumerate(self._writers)]
        return [
            *(Problem("ended", "", line) for line, each in zip(ended, self._writers, strict=True) if each.exitcode),
            *problems(self._cluster.nodes, accepted, late),
        ]


def _url(cluster: Cluster) -> str:
    return "falkor://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
