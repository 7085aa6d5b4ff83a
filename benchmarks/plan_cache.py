"""Measure alternating adds and searches by the number of query plans that the server caches per graph (``CACHE_SIZE``).

    python -m benchmarks.plan_cache [--sizes 25,64,256] [--turns 100] [--tenants 30] [--quick] [--out FILE.json]

Run it from the root of the repository. An agent adds a message and asks two questions, again and again. The model and
the embeddings answer at once, so only this package and the database are measured. The servers take turns, message by
message, so that other load of the machine affects all alike. Times are medians in milliseconds; memory is the increase
per namespace for some more namespaces with a few messages and questions.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.database import fresh_database
from kg_memory.contrib.embedded import server
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted

NAMES = ("Ann", "Bob", "Carl", "Dora", "Eve", "Finn")
SAID = ("I know {other} and I work at Acme{number}", "I live in Oslo{number}", "I moved to Rome{number} with {other}")
SEARCHED, TOLD = "Where does {name} live?", "Whom did {name} know since last year?"
WARM = 20
Times = dict[str, list[float]]


@contextmanager
def opened(plans: int) -> Iterator[GraphMemory]:
    """Open a memory on a server of its own that caches *plans* query plans."""
    kept, server.QUERY_PLANS = server.QUERY_PLANS, plans
    with ExitStack() as ending:
        try:
            url = ending.enter_context(fresh_database())
        finally:
            server.QUERY_PLANS = kept
        settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
        yield ending.enter_context(GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()))


def turn(memory: GraphMemory, place: int, namespace: str) -> dict[str, float]:
    """Add a message and ask two questions; return the seconds that each call took."""
    dice = random.Random(place)
    name, other = dice.sample(NAMES, 2)
    said = dice.choice(SAID).format(other=other, number=dice.randrange(9))
    where = {"namespace": namespace, "thread": "t"}
    began = time.perf_counter()
    memory.add(said, speaker=name, **where)
    added = time.perf_counter()
    memory.search(SEARCHED.format(name=name), **where)
    searched = time.perf_counter()
    memory.context(TOLD.format(name=name), **where)
    return {"add": added - began, "search": searched - added, "context": time.perf_counter() - searched}


def used(memory: GraphMemory) -> int:
    """Return the memory used by the server, in bytes."""
    return int(memory.driver.store.database.client().info("memory")["used_memory"])


def measure(sizes: list[int], turns: int, tenants: int) -> dict[str, dict[str, float]]:
    """Return the figures by cache size."""
    with ExitStack() as ending:
        memories = {size: ending.enter_context(opened(size)) for size in sizes}
        times: dict[int, Times] = {size: defaultdict(list) for size in sizes}
        for place in range(WARM + turns):
            for size in sizes[place % len(sizes) :] + sizes[: place % len(sizes)]:
                taken = turn(memories[size], place, "agent")
                for verb, seconds in taken.items() if place >= WARM else ():
                    times[size][verb].append(1000 * seconds)
        figures = {str(size): {verb: statistics.median(each) for verb, each in times[size].items()} for size in sizes}
        for size, memory in memories.items():
            before = used(memory)
            for tenant in range(tenants):
                for place in range(5):
                    turn(memory, place, f"tenant {tenant}")
            figures[str(size)]["mb_a_namespace"] = (used(memory) - before) / 1e6 / tenants
    return figures


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="adding and searching in turns, by how many plans the server keeps")
    parser.add_argument("--sizes", default="25,64,256", help="how many plans it keeps for each graph")
    parser.add_argument("--turns", type=int, default=100, help="messages that are counted")
    parser.add_argument("--tenants", type=int, default=30, help="namespaces by which the memory is measured")
    parser.add_argument("--quick", action="store_true", help="a tenth of all")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    given = parser.parse_args()
    part = 10 if given.quick else 1
    sizes = [int(each) for each in given.sizes.split(",")]
    figures = measure(sizes, max(given.turns // part, 1), max(given.tenants // part, 1))
    print("| plans kept | add, ms | search, ms | context, ms | MB a namespace |")
    print("| --- | --- | --- | --- | --- |")
    for size, found in figures.items():
        told = " | ".join(f"{found[name]:.1f}" for name in ("add", "search", "context", "mb_a_namespace"))
        print(f"| {size} | {told} |")
    if given.out:
        given.out.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
