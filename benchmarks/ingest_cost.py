"""What reading a conversation costs, by plan and beside Graphiti: one scripted model, one server, message by message.

    python -m benchmarks.ingest_cost --data locomo.json [--messages 150] [--no-graphiti] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. The first messages of the first LoCoMo
conversation (Maharana et al. 2024) are read with each plan of kg-memory, and by Graphiti. All ask the same model over
HTTP, which says of each message what the offline reader finds in it (see `ingest_cost_model`): so the entities and
facts are the same, what is asked to get them is not. ``offline`` asks nothing. The systems take turns.

Of each message are counted the calls of the model, the tokens of its prompts with the schemas of the answers, the
requests for embeddings, the commands that the database got, and milliseconds: of the processor in the client and in the
database, and of the clock. Medians and 95th percentiles; the model answers at once, so the clock shows what is added.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import redis

from benchmarks.database import fresh_database
from benchmarks.ingest_cost_model import counted, served
from kg_memory import GraphMemory, Settings
from kg_memory.model import EpisodeInput
from kg_memory.opening import LOCAL_THRESHOLDS
from kg_memory.readers import read

MERGE, ASK = LOCAL_THRESHOLDS
"""The name thresholds of the embedding model that the scripted server has."""
COUNTED = ("calls", "prompt_tokens", "embedding_requests")
MEASURED = (*COUNTED, "database_commands", "client_ms", "database_ms", "wall_ms")
Row = dict[str, float]


class System(Protocol):
    """What reads messages."""

    name: str

    def add(self, episode: EpisodeInput) -> None: ...

    def size(self) -> str: ...


class Ours:
    """kg-memory by one of its plans; ``offline`` is without a model."""

    def __init__(self, plan: str, url: str, model: str, stack: ExitStack) -> None:
        self.name, self._namespace = f"kg-memory {plan}", f"cost {plan}"
        settings = Settings(
            url=url, base_url=model, model="scripted", embedding_model="local", embedding_base_url=model,
            merge_threshold=MERGE, ask_threshold=ASK,
        )  # fmt: skip
        settings = (
            settings.with_(model="offline", embedding_model="offline")
            if plan == "offline"
            else settings.with_(plan=plan)
        )
        self._memory = stack.enter_context(GraphMemory(settings))

    def add(self, episode: EpisodeInput) -> None:
        self._memory.add_many([episode], namespace=self._namespace)

    def size(self) -> str:
        stats = self._memory.stats(namespace=self._namespace)
        return f"{stats.entities} entities, {stats.facts} facts"


class Graphiti:
    """Graphiti as it is by itself."""

    name = "Graphiti"

    def __init__(self, socket: str, model: str, stack: ExitStack) -> None:
        from benchmarks import ingest_cost_graphiti as beside  # noqa: PLC0415 - an extra, which the rest does without

        self._beside = beside
        self._runner = stack.enter_context(asyncio.Runner())
        self._graphiti = self._runner.run(beside.opened(socket, model))
        stack.callback(lambda: self._runner.run(self._graphiti.close()))

    def add(self, episode: EpisodeInput) -> None:
        self._runner.run(self._beside.add(self._graphiti, episode))

    def size(self) -> str:
        return str(self._runner.run(self._beside.size(self._graphiti)))


class Meter:
    """Counts what one message costs."""

    def __init__(self, socket: str, model: str) -> None:
        self._model = model
        self._database = redis.Redis(unix_socket_path=socket)

    @contextmanager
    def row(self) -> Iterator[Row]:
        """Give a row, which is filled at the end."""
        row: Row = {}
        before, cpu, began = self._look(), time.process_time(), time.perf_counter()
        yield row
        row |= {"wall_ms": 1000 * (time.perf_counter() - began), "client_ms": 1000 * (time.process_time() - cpu)}
        row |= {name: count - before[name] for name, count in self._look().items()}

    def _look(self) -> Row:
        told: Row = {name: counted(self._model)[name] for name in COUNTED}
        commands: Any = self._database.info("commandstats")
        told["database_commands"] = sum(each["calls"] for name, each in commands.items() if "graph." in name.lower())
        used: Any = self._database.info("cpu")
        told["database_ms"] = 1000 * (used["used_cpu_user"] + used["used_cpu_sys"])
        return told


def measure(episodes: list[EpisodeInput], *, graphiti: bool) -> dict[str, list[Row]]:
    """Return a row for each message, by system."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database())
        model = stack.enter_context(served(episodes))
        socket = url.removeprefix("unix://")
        systems: list[System] = [Ours(plan, url, model, stack) for plan in ("standard", "thorough", "offline")]
        systems += [Graphiti(socket, model, stack)] if graphiti else []
        meter = Meter(socket, model)
        for place, episode in enumerate(episodes, start=1):
            for system in systems:
                with meter.row() as row:
                    system.add(episode)
                rows[system.name].append(row)
            if place % 25 == 0:
                print(f"  {place} of {len(episodes)} messages", file=sys.stderr, flush=True)
        for system in systems:
            print(f"  {system.name}: {system.size()}", file=sys.stderr)
    return dict(rows)


def table(rows: dict[str, list[Row]]) -> str:
    """Return Markdown: a row a system, medians and 95th percentiles."""
    lines = [f"| | {' | '.join(name.replace('_', ' ') for name in MEASURED)} |", "| --- |" + " --- |" * len(MEASURED)]
    for system, told in rows.items():
        cells = [_cell([row[name] for row in told]) for name in MEASURED]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    p95 = statistics.quantiles(values, n=20, method="inclusive")[18]
    return f"{statistics.median(values):,.0f} / {p95:,.0f}"


def main() -> None:
    """Measure, print the table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--messages", type=int, default=150)
    parser.add_argument("--no-graphiti", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures of each message to this JSON file")
    asked = parser.parse_args()
    episodes = list(read(asked.data))[: asked.messages]
    rows = measure(episodes, graphiti=not asked.no_graphiti)
    print(table(rows))
    if asked.out:
        asked.out.write_text(json.dumps(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
