"""Measure the cost of reading a conversation, by plan and beside Graphiti, with one scripted model and one server.

    python -m benchmarks.ingest_cost --data locomo.json [--messages 150] [--plans standard,offline] [--sparse]
        [--no-graphiti] [--quick] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. The first messages of the first LoCoMo
conversation (Maharana et al. 2024) are read one by one with each plan of kg-memory, and by Graphiti. All use the same
model over HTTP, which finds four entities and three facts in nearly every message (see `ingest_cost_dense`): so they
get the same entities and facts, by different prompts. ``offline`` uses no model. The systems take turns. With
``--sparse`` the model finds what the offline reader finds, less than one fact per message (see `ingest_cost_model`).

Counted for each message are calls of the model, tokens of its prompts with the schemas of the answers, embedding
requests, database commands, and milliseconds: processor time of the client and the database, and elapsed time, in total
and without the time in which the model had a request in progress. The table has medians and 95th percentiles, and mean
calls, since a plan may read several messages in one call; messages that a plan holds back until the end are read then,
and their cost counts. A second table has the database commands, by plan, for a message with one entity besides its
speaker and for one with ten.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import redis

from benchmarks.database import fresh_database
from benchmarks.ingest_cost_dense import dense
from benchmarks.ingest_cost_model import counted, served
from kg_memory import GraphMemory, Settings
from kg_memory.contrib.chats import read
from kg_memory.memory.open import LOCAL_THRESHOLDS
from kg_memory.models.graph import EpisodeInput

THRESHOLDS = tuple(LOCAL_THRESHOLDS[f"{name}_threshold"] for name in ("merge", "ask", "compare"))
"""The thresholds to merge, ask and compare for the scripted server's embedding model."""
PLANS = ("economy", "standard", "thorough", "offline")
"""The reading plans of kg-memory; "offline" is reading without a model."""
COUNTED = ("calls", "prompt_tokens", "embedding_requests", "model_ms")
MEASURED = (*COUNTED[:3], "database_commands", "client_ms", "database_ms", "wall_ms", "without_model_ms")
QUICK = 15
PEOPLE = "Ann Bob Carol Dave Erin Frank Grace Heidi Ivan Judy".split()
Row = dict[str, float]


class System(Protocol):
    """The interface of a memory system that reads messages."""

    name: str

    def add(self, episode: EpisodeInput) -> None: ...

    def finish(self) -> None: ...

    def size(self) -> str: ...


def by_plan(plan: str, settings: Settings) -> Settings:
    """Return *settings* changed to the reading plan *plan*, one of `PLANS`."""
    return settings.with_(model="offline") if plan == "offline" else settings.with_(plan=plan)


class Ours:
    """kg-memory with one of its plans."""

    def __init__(
        self, plan: str, url: str, model: str, stack: ExitStack, *, namespace: str = "",
        thresholds: tuple[float, float, float] = THRESHOLDS,
    ) -> None:  # fmt: skip
        self.name, self._namespace = f"kg-memory {plan}", namespace or f"cost {plan}"
        embedding_model = "offline" if plan == "offline" else "local"
        settings = Settings(
            url=url, base_url=model, model="scripted", embedding_model=embedding_model, embedding_base_url=model,
            merge_threshold=thresholds[0], ask_threshold=thresholds[1], compare_threshold=thresholds[2],
        )  # fmt: skip
        self._memory = stack.enter_context(GraphMemory(by_plan(plan, settings)))

    def add(self, episode: EpisodeInput) -> None:
        self._memory.add(**dict(episode), namespace=self._namespace)

    def finish(self) -> None:
        self._memory.episodes.resume(namespace=self._namespace)

    def size(self) -> str:
        stats = self._memory.stats(namespace=self._namespace)
        return f"{stats.entities} entities, {stats.facts} facts"


class Graphiti:
    """Graphiti with its default configuration."""

    name = "Graphiti"

    def __init__(self, socket: str, model: str, stack: ExitStack, *, group: str = "cost") -> None:
        from benchmarks import ingest_cost_graphiti as beside  # noqa: PLC0415 - an extra, which the rest does without

        self._beside, self._group = beside, group
        self._runner = stack.enter_context(asyncio.Runner())
        self._graphiti = self._runner.run(beside.opened(socket, model, group))
        stack.callback(lambda: self._runner.run(self._graphiti.close()))

    def add(self, episode: EpisodeInput) -> None:
        self._runner.run(self._beside.add(self._graphiti, episode, self._group))

    def finish(self) -> None:
        """Do nothing, since Graphiti reads every message at once."""

    def size(self) -> str:
        return str(self._runner.run(self._beside.size(self._graphiti)))


class Meter:
    """Measures what it costs a memory system to read one message: model calls, tokens, commands and time."""

    def __init__(self, socket: str, model: str) -> None:
        self._model = model
        self._database = redis.Redis(unix_socket_path=socket)

    @contextmanager
    def row(self) -> Iterator[Row]:
        """Yield an empty row, and fill it with the cost of the with block when the block ends."""
        row: Row = {}
        before, cpu, began = self._look(), time.process_time(), time.perf_counter()
        yield row
        row |= {"wall_ms": 1000 * (time.perf_counter() - began), "client_ms": 1000 * (time.process_time() - cpu)}
        row |= {name: count - before[name] for name, count in self._look().items()}
        row["without_model_ms"] = row["wall_ms"] - row["model_ms"]

    def _look(self) -> Row:
        told: Row = {name: counted(self._model)[name] for name in COUNTED}
        commands: Any = self._database.info("commandstats")
        told["database_commands"] = sum(each["calls"] for name, each in commands.items() if "graph." in name.lower())
        used: Any = self._database.info("cpu")
        told["database_ms"] = 1000 * (used["used_cpu_user"] + used["used_cpu_sys"])
        return told


@contextmanager
def opened(
    episodes: list[EpisodeInput], plans: Sequence[str], *, graphiti: bool, is_sparse: bool
) -> Iterator[tuple[list[System], Meter]]:
    """Start a database and a scripted model of *episodes* for the with block; yield the memory systems and a meter."""
    people = {each.speaker for each in episodes}
    readings = None if is_sparse else {each.content: dense(each, people) for each in episodes}
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database())
        model = stack.enter_context(served(episodes, readings=readings))
        socket = url.removeprefix("unix://")
        systems: list[System] = [Ours(plan, url, model, stack) for plan in plans]
        systems += [Graphiti(socket, model, stack)] if graphiti else []
        yield systems, Meter(socket, model)


def measure(
    episodes: list[EpisodeInput], plans: Sequence[str], *, graphiti: bool, is_sparse: bool
) -> dict[str, list[Row]]:
    """Let all systems read the episodes in turns; return the cost of each message by system name."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    with opened(episodes, plans, graphiti=graphiti, is_sparse=is_sparse) as (systems, meter):
        for place, episode in enumerate(episodes, start=1):
            for system in systems:
                with meter.row() as row:
                    system.add(episode)
                rows[system.name].append(row)
            if place % 25 == 0:
                print(f"  {place} of {len(episodes)} messages", file=sys.stderr, flush=True)
        for system in systems:
            with meter.row() as row:
                system.finish()
            last = rows[system.name][-1]
            rows[system.name][-1] = {name: last[name] + count for name, count in row.items()}
            print(f"  {system.name}: {system.size()}", file=sys.stderr)
    return dict(rows)


def commands(plans: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the number of database commands for messages with one and with ten other entities, by system."""
    said = ["Hello, it is me.", "I know Zoe.", f"I know {', '.join(PEOPLE[:-1])} and {PEOPLE[-1]}."]
    episodes = [EpisodeInput(content=each, speaker="Mallory", thread="few and many") for each in said]
    found: dict[str, tuple[float, float]] = {}
    with opened(episodes, plans, graphiti=False, is_sparse=True) as (systems, meter):
        for system in systems:
            counts = []
            for episode in episodes:
                with meter.row() as row:
                    system.add(episode)
                counts.append(row["database_commands"])
            found[system.name] = (counts[1], counts[2])  # the first makes the graph
    return found


def table(rows: dict[str, list[Row]]) -> str:
    """Return a Markdown table by system: mean calls, then medians and 95th percentiles."""
    heads = ("calls on average", *(name.replace("_", " ") for name in MEASURED))
    lines = [f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for system, told in rows.items():
        cells = [_cell([row[name] for row in told]) for name in MEASURED]
        lines.append(f"| {system} | {statistics.mean(row['calls'] for row in told):.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_commands(found: Mapping[str, tuple[float, float]]) -> str:
    """Return a Markdown table of database commands by system."""
    lines = ["| database commands | one entity | ten entities |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {one:.0f} | {ten:.0f} |" for name, (one, ten) in found.items())])


def _cell(values: list[float]) -> str:
    p95 = statistics.quantiles(values, n=20, method="inclusive")[18]
    return f"{statistics.median(values):,.0f} / {p95:,.0f}"


def main() -> None:
    """Run the benchmark, print the tables and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--messages", type=int, default=150)
    parser.add_argument("--plans", default=",".join(PLANS), help="which plans to measure, all if left out")
    parser.add_argument("--sparse", action="store_true", help="the model finds what the offline reader finds")
    parser.add_argument("--no-graphiti", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} messages")
    parser.add_argument("--out", type=Path, help="write the figures of each message to this JSON file")
    asked = parser.parse_args()
    plans = asked.plans.split(",")
    episodes = list(read(asked.data))[: QUICK if asked.quick else asked.messages]
    rows = measure(episodes, plans, graphiti=not asked.no_graphiti, is_sparse=asked.sparse)
    found = commands(plans)
    print(table(rows), table_of_commands(found), sep="\n\n")
    if asked.out:
        asked.out.write_text(json.dumps({"messages": rows, "commands": found}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
