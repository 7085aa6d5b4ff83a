"""Measure namespaces that sleep: their memory, how long it takes to wake them, and what a restart takes.

``python -m benchmarks.sleeping --namespaces 20000`` (from the root of the repository) reads five messages into each of
50 namespaces offline, and copies these (``GRAPH.COPY``) until there are enough; each copy is put to sleep at once. It
prints the memory of a namespace awake and asleep, the time to wake one and to search in it first, the searches of
another user while 200 users a minute are woken and put to sleep, and the time to start the server with all asleep.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.opening import kept, opened, show, write
from benchmarks.server import CITIES
from kg_memory import GraphMemory
from kg_memory.falkor.connect import graph_key

MADE, WOKEN = 50, 200
BUSY, QUESTION = "busy", "Where does Ann live?"


def timed(call: Callable[[], Any]) -> float:
    """Return the milliseconds that *call* takes."""
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def spread(times: list[float]) -> str:
    """Return the median, the 95th percentile and the maximum of *times*."""
    return f"{median(times):.1f} / {quantiles(times, n=20)[-1]:.1f} / {max(times):.1f}"


def used(memory: GraphMemory) -> float:
    """Return the memory that the server has allocated, in kB."""
    return float(memory.driver.store.database.client().info("memory")["used_memory"]) / 1000


def read(memory: GraphMemory, namespace: str, number: int) -> None:
    """Read five messages into *namespace*."""
    city = CITIES[number % len(CITIES)]
    for text in (f"I live in {city}.", "I like sailing.", "I work at Acme.", "I have a dog called Rex.", "Thanks!"):
        memory.add(text, speaker="Ann", namespace=namespace)


def make(memory: GraphMemory, count: int) -> dict[str, Any]:
    """Make *count* namespaces and put them to sleep; return the memory that one takes awake and asleep, in kB."""
    client, before = memory.driver.store.database.client(), used(memory)
    names = [f"user-{number}" for number in range(count)]
    for number, name in enumerate(names[:MADE]):
        read(memory, name, number)
        memory.search(QUESTION, namespace=name)
    awake = (used(memory) - before) / MADE
    for place, name in enumerate(names):
        if place >= MADE:
            client.execute_command("GRAPH.COPY", graph_key(names[place % MADE]), graph_key(name))
            memory.data.sleep(namespace=name)
        if place % 1000 == 999:
            print(f"  {place + 1} of {count} namespaces", flush=True)
    for name in names[:MADE]:
        memory.data.sleep(namespace=name)
    asleep = (used(memory) - before) / count
    return {"kB of memory, awake": round(awake), "kB of memory, asleep": round(asleep, 1)}


def wake(memory: GraphMemory, count: int) -> dict[str, Any]:
    """Wake namespaces at random; return the times that this, and the first and second search in them, take."""
    chosen = random.Random(1).sample(range(count), min(WOKEN, count))
    woken = [timed(lambda: memory.data.wake(namespace=f"user-{number}")) for number in chosen]  # noqa: B023
    first, second = (
        [timed(lambda: memory.search(QUESTION, namespace=f"user-{number}")) for number in chosen]  # noqa: B023
        for _ in range(2)
    )
    slept = [timed(lambda: memory.data.sleep(namespace=f"user-{number}")) for number in chosen]  # noqa: B023
    return {
        "to wake one, ms": spread(woken),
        "first search after that, ms": spread(first),
        "next search, ms": spread(second),
        "to put one to sleep, ms": spread(slept),
    }


def change_users(memory: GraphMemory, count: int, seconds: float) -> dict[str, Any]:
    """Search for one user while others are woken and put to sleep; return the times of these searches."""
    memory.facts.add("Ann", "LIVES_IN", "Oslo", namespace=BUSY)
    alone = [timed(lambda: memory.search(QUESTION, namespace=BUSY)) for _ in range(200)]
    stop, changed = time.monotonic() + seconds, [0]

    def change() -> None:
        choose = random.Random(2)
        while time.monotonic() < stop:
            began, name = time.monotonic(), f"user-{choose.randrange(count)}"
            memory.search(QUESTION, namespace=name)
            memory.data.sleep(namespace=name)
            changed[0] += 1
            time.sleep(max(0.0, 60 / WOKEN - (time.monotonic() - began)))

    changing = threading.Thread(target=change)
    changing.start()
    beside = []
    while time.monotonic() < stop:
        beside.append(timed(lambda: memory.search(QUESTION, namespace=BUSY)))
        time.sleep(0.02)
    changing.join()
    return {
        "search of another user, alone, ms": spread(alone),
        f"the same while {changed[0]} were woken and put to sleep, ms": spread(beside),
    }


def main() -> None:
    """Run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespaces", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60, help="how long users are woken and put to sleep")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    chosen = parser.parse_args()
    with kept(None) as folder:
        with opened(folder) as memory:
            figures = make(memory, chosen.namespaces)
            figures |= wake(memory, chosen.namespaces)
            figures |= change_users(memory, chosen.namespaces, chosen.seconds)
            os.kill(int((folder / "run" / "pid").read_text()), signal.SIGKILL)
        began = time.perf_counter()
        with opened(folder) as memory:
            memory.search(QUESTION, namespace="user-0")
            figures["to start the killed server with all asleep, and search, s"] = round(time.perf_counter() - began, 1)
            listed = timed(lambda: memory.data.namespaces("asleep"))
            figures["to list the sleeping namespaces, ms"] = round(listed)
    show(figures)
    write(figures, chosen.out)


if __name__ == "__main__":
    main()
