"""Measure what the HTTP server adds to a call: the async method and the HTTP request are run in turns on one database.

``python -m benchmarks.server`` (from the root of the repository) states facts, starts ``kg-memory serve`` in a separate
process, creates a key, and sends requests over one persistent connection.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.opening import kept, opened, write
from kg_memory import GraphMemory
from kg_memory.contrib.server.keys import KeyRing

NAMESPACE = "bench"
ROOT = f"/v1/namespaces/{NAMESPACE}"
CITIES = ("Oslo", "Bergen", "Rome", "Paris", "Kyoto", "Lima", "Accra", "Perth")
THINGS = ("tea", "chess", "hiking", "jazz", "baking", "sailing", "painting", "running")
WARM_UP = 10
Run = Callable[[Coroutine[Any, Any, Any]], Any]
Pair = tuple[Callable[[], Any], Callable[[], Any]]
"""A call by the method, and the same call over HTTP."""


class Client:
    """One connection to the server."""

    def __init__(self, port: int, secret: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        self._connection.request(method, path, json.dumps(body) if body else None, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content)
        return content


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """Run the server on the database in *folder* in the with block; yield its port and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "KG_MEMORY_DATA_DIR": str(folder), "KG_MEMORY_MODEL": "offline"}
    command = [sys.executable, "-m", "kg_memory", "serve", "--port", str(port), "--rate", "100000"]
    with subprocess.Popen(command, env=environment) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield port, process.pid
        finally:
            process.terminate()


def calls(
    memory: GraphMemory, run: Run, client: Client, people: Sequence[str], chance: random.Random
) -> dict[str, Pair]:
    """Return one call of each kind, as (by method, over HTTP)."""
    name = chance.choice(people)
    question = f"What does {name} like, and where in {chance.choice(CITIES)} {chance.randrange(10**6)}?"
    path = f"{ROOT}/entities/{name}"

    def verb(call: Callable[..., Any], *arguments: str) -> Callable[[], Any]:
        return lambda: run(call(*arguments, namespace=NAMESPACE))

    return {
        "search": (
            verb(memory.asearch, question),
            partial(client.ask, "POST", f"{ROOT}/search", {"question": question}),
        ),
        "context": (
            verb(memory.acontext, question),
            partial(client.ask, "POST", f"{ROOT}/context", {"question": question}),
        ),
        "facts.about": (verb(memory.facts.aabout, name), partial(client.ask, "GET", f"{path}/facts")),
        "entities.card": (verb(memory.entities.acard, name), partial(client.ask, "GET", path)),
        "stats": (verb(memory.astats), partial(client.ask, "GET", f"{ROOT}/stats")),
    }


def measure(memory: GraphMemory, client: Client, people: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each kind of call by method and over HTTP; either is first in turns."""
    chance = random.Random(1)
    seconds: dict[str, tuple[list[float], list[float]]] = {}
    with asyncio.Runner() as runner:
        for number in range(rounds + WARM_UP):
            for kind, pair in calls(memory, runner.run, client, people, chance).items():
                times = seconds.setdefault(kind, ([], []))
                for place in (0, 1) if number % 2 else (1, 0):
                    began = time.perf_counter()
                    pair[place]()
                    if number >= WARM_UP:
                        times[place].append(1000 * (time.perf_counter() - began))
    return {kind: _figures(*times) for kind, times in seconds.items()}


def _figures(verb: Sequence[float], http_: Sequence[float]) -> dict[str, float]:
    added = [over - direct for direct, over in zip(verb, http_, strict=True)]
    return {
        "verb_p50": round(statistics.median(verb), 2),
        "http_p50": round(statistics.median(http_), 2),
        "http_p95": round(statistics.quantiles(http_, n=20)[-1], 2),
        "added_p50": round(statistics.median(added), 2),
    }


def load(port: int, secret: str, people: Sequence[str], clients: int, each: int) -> float:
    """Return how many reads per second the server answers for *clients* concurrent clients."""

    def ask(number: int) -> None:
        client = Client(port, secret)
        for turn in range(each):
            client.ask("GET", f"{ROOT}/entities/{people[(number * each + turn) % len(people)]}/facts")

    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        list(pool.map(ask, range(clients)))
    return clients * each / (time.perf_counter() - began)


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep the database here")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="200 facts, 30 rounds")
    chosen = parser.parse_args()
    facts, rounds = (200, 30) if chosen.quick else (chosen.facts, chosen.rounds)
    people = [f"Person{number}" for number in range(max(10, facts // 10))]
    chance = random.Random(0)
    rows = [
        {
            "subject": people[number % len(people)],
            "predicate": "LIKES",
            "object": chance.choice(THINGS),
            "at": "2024-01-01",
        }
        for number in range(facts - len(people))
    ]
    rows += [{"subject": name, "predicate": "LIVES_IN", "object": chance.choice(CITIES)} for name in people]
    with kept(chosen.folder) as folder, opened(folder) as memory:
        if not memory.stats(namespace=NAMESPACE).facts:
            memory.facts.add_many(rows, namespace=NAMESPACE)
        _, secret = KeyRing(memory.driver.store.database).create("benchmark", ["read"], [NAMESPACE])
        with served(folder) as (port, _):
            figures: dict[str, Any] = {"facts": memory.stats(namespace=NAMESPACE).facts}
            figures |= measure(memory, Client(port, secret), people, rounds)
            figures["reads_a_second_of_16_clients"] = round(load(port, secret, people, 16, rounds))
    print(f"{'call':<16}{'verb p50':>10}{'http p50':>10}{'http p95':>10}{'added p50':>11}   ms")
    for kind, row in figures.items():
        if isinstance(row, dict):
            print(f"{kind:<16}{row['verb_p50']:>10}{row['http_p50']:>10}{row['http_p95']:>10}{row['added_p50']:>11}")
    print(f"{figures['facts']} facts; {figures['reads_a_second_of_16_clients']} reads a second of 16 clients")
    write(figures, chosen.out)


if __name__ == "__main__":
    main()
