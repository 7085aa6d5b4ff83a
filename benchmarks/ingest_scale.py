"""Measure ingestion by size: one message read into memories of 1,000 to 50,000 facts, beside Graphiti.

    python -m benchmarks.ingest_scale [--sizes 1000,10000,50000] [--dims 384,1024] [--messages 200] [--stated 3]
        [--no-graphiti] [--quick] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. The memories (see `search_scale_data`) and
the messages (see `ingest_scale_data`) are synthetic and the same for both systems: each message states some new facts
about existing entities, often well-known ones, and one message of four names a new entity. Both systems use the same
scripted model over HTTP, which answers at once, and take turns. So do the memories, each on a server of its own, so
that other load of the machine affects all alike. Above 10,000 facts Graphiti gets only a part of the messages. The
first messages are not counted.

Measured for each message are the elapsed milliseconds without those in which the model had a request in progress,
processor time of the client and the database, and database commands; the table has medians and 95th percentiles. Growth
is the median divided by that at the smallest size.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.database import fresh_database
from benchmarks.ingest_cost import Graphiti, Meter, Ours, Row, System
from benchmarks.ingest_cost_model import served
from benchmarks.ingest_scale_data import Message, messages, vectors
from benchmarks.search_scale_data import Data, Prepared
from benchmarks.search_scale_load import Texts, load
from kg_memory import GraphMemory, Settings
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key

NAMESPACE = "scale"
WARM = 20
"""Messages that are not counted; they also introduce the predicates of the memory."""
ALL_TO_GRAPHITI = 10_000
"""The number of facts up to which Graphiti gets every message; above it, proportionally fewer."""
MERGE, ASK, COMPARE = 0.92, 0.60, 0.50
"""Name thresholds, for names of one cluster with a cosine of about 0.55."""
MEASURED = ("without_model_ms", "client_ms", "database_ms", "database_commands")
Rows = dict[str, list[Row]]


class Size:
    """A memory of one size on a server of its own."""

    def __init__(self, url: str, facts: int, dimension: int, count: int, stated: int) -> None:
        self.url = url
        self.data = Data(facts, dimension)
        self.texts = Texts(self.data)
        self.messages = list(messages(self.data, WARM + count, stated))
        self.step = max(1, facts // ALL_TO_GRAPHITI)

    def load(self, *, graphiti: bool) -> None:
        """Fill the graphs of kg-memory and, with *graphiti*, of Graphiti with the same data."""
        dimension = self.data.dimension
        with GraphMemory(Settings(url=self.url), model="offline", embeddings=Prepared(dimension)) as memory:
            database = memory.driver.store.database
            schema.ensure(database, graph_key(NAMESPACE), dimension, "local")
            load(database, NAMESPACE, self.data, self.texts, self.say)
        if graphiti:
            from benchmarks.search_scale_graphiti import Beside  # noqa: PLC0415 - an extra

            beside = Beside(self.url.removeprefix("unix://"), Prepared(dimension))
            try:
                beside.load(self.data, self.texts, self.say)
            finally:
                beside.close()

    @contextmanager
    def systems(self, *, graphiti: bool) -> Iterator[tuple[list[System], Meter]]:
        """Open kg-memory and, with *graphiti*, Graphiti in the with block; yield them and a meter."""
        socket = self.url.removeprefix("unix://")
        readings = {each.episode.content: each.reading for each in self.messages}
        episodes = [each.episode for each in self.messages]
        with ExitStack() as stack:
            model = stack.enter_context(
                served(episodes, readings=readings, embeddings=vectors(self.data, self.messages))
            )
            ours = Ours("standard", self.url, model, stack, namespace=NAMESPACE, thresholds=(MERGE, ASK, COMPARE))
            others = [Graphiti(socket, model, stack, group=NAMESPACE)] if graphiti else []
            yield [ours, *others], Meter(socket, model)

    def read(self, place: int, systems: list[System], meter: Meter, rows: Rows) -> None:
        """Let *systems* read the message with index *place*, and add the measurements to *rows*."""
        for system in systems[:: 1 if place % 2 else -1]:
            if isinstance(system, Ours) or place % self.step == 0:
                row = _measured(system, self.messages[place], meter)
                if place >= WARM:
                    rows[system.name].append(row)

    def say(self, what: str) -> None:
        """Print the progress."""
        print(f"  {self.data.count:,} x {self.data.dimension}: {what} ...", file=sys.stderr, flush=True)


def _measured(system: System, message: Message, meter: Meter) -> Row:
    with meter.row() as row:
        system.add(message.episode)
    return row


def measure(sizes: Sequence[int], dimension: int, count: int, stated: int, *, graphiti: bool) -> dict[int, Rows]:
    """Return the measurements of each message, by size and system. Each size has a temporary server."""
    found: dict[int, Rows] = {}
    with ExitStack() as stack:
        opened = []
        for facts in sizes:
            size = Size(stack.enter_context(fresh_database()), facts, dimension, count, stated)
            size.load(graphiti=graphiti)
            systems, meter = stack.enter_context(size.systems(graphiti=graphiti))
            found[facts] = {system.name: [] for system in systems}
            opened.append((size, systems, meter))
        gc.collect()
        gc.freeze()  # keep the garbage collector from scanning the loaded data again and again
        for place in range(WARM + count):
            for size, systems, meter in opened[:: 1 if place % 2 else -1]:
                size.read(place, systems, meter, found[size.data.count])
            if place % WARM == 0:
                print(f"  message {place} of {WARM + count} ...", file=sys.stderr, flush=True)
        gc.unfreeze()
        for size, systems, _ in opened:
            for system in systems:
                size.say(f"{system.name} has {system.size()}")
    return found


def table(sizes: Mapping[int, Rows]) -> str:
    """Return a Markdown table by size and system."""
    smallest = sizes[min(sizes)]
    heads = ("facts", "system", "ms without the model", *(name.replace("_", " ") for name in MEASURED[1:]))
    lines = [f"| {' | '.join((*heads, 'growth', 'times ours'))} |", "| --- |" + " --- |" * (len(heads) + 1)]
    for facts, rows in sizes.items():
        for system, told in rows.items():
            cells = [f"{_median(told, name):,.0f} / {_p95(told, name):,.0f}" for name in MEASURED]
            own = _median(told, MEASURED[0])
            growth = own / _median(smallest[system], MEASURED[0])
            times = own / _median(next(iter(rows.values())), MEASURED[0])
            lines.append(f"| {facts:,} | {system} | {' | '.join(cells)} | {growth:.2f} | {times:.1f} |")
    return "\n".join(lines)


def _median(rows: list[Row], name: str) -> float:
    return statistics.median(row[name] for row in rows)


def _p95(rows: list[Row], name: str) -> float:
    return statistics.quantiles((row[name] for row in rows), n=20, method="inclusive")[18]


def main() -> None:
    """Measure all sizes, print a table for each dimension, and write the figures of each message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=_numbers, default=[1000, 10_000, 50_000])
    parser.add_argument("--dims", type=_numbers, default=[384, 1024])
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--stated", type=int, default=3, help="how many facts a message states")
    parser.add_argument("--no-graphiti", action="store_true")
    parser.add_argument("--quick", action="store_true", help="1,000 and 3,000 facts, 384 dimensions, 20 messages")
    parser.add_argument("--out", type=Path, help="write the figures of each message to this JSON file")
    asked = parser.parse_args()
    if asked.quick:
        asked.sizes, asked.dims, asked.messages = [1000, 3000], [384], 20
    found: dict[int, dict[int, Rows]] = {}
    for dimension in asked.dims:
        found[dimension] = measure(
            sorted(asked.sizes), dimension, asked.messages, asked.stated, graphiti=not asked.no_graphiti
        )
        if asked.out:
            asked.out.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(f"{dimension} dimensions:\n\n{table(found[dimension])}", end="\n\n", flush=True)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    main()
