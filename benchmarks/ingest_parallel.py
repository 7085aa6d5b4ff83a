"""Measure the time to add many messages of one conversation one by one and in parallel, and compare the graphs.

    python -m benchmarks.ingest_parallel --data locomo.json [--messages 200] [--latency 0.5] [--parallel 16]

Run it from the root of the repository. The first messages of the first LoCoMo conversation (Maharana et al. 2024) are
read with the plans ``standard`` and ``economy`` by a scripted model over HTTP (see `ingest_cost_model`), whose answers
take half a second. One by one, each message is added after the previous one is read; in parallel, all are passed to one
`add_many`. Vectors are computed before in a run that is not counted, so that they do not take processor time. The two
graphs of ``standard`` are compared completely, except for ids and transaction times (see `tests/whole_graph`).
``economy`` only runs in parallel, and reads several messages in one call.

Then eight processes add messages about the same new people and places to one namespace at once. The result must have
one entity for each name and one fact of each kind, and every message must be read.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from benchmarks.database import fresh_database
from benchmarks.ingest_cost import THRESHOLDS
from benchmarks.ingest_cost_model import counted, served
from kg_memory import GraphMemory, Settings
from kg_memory.contrib.chats import read
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.falkor.connect import graph_key
from kg_memory.models.graph import EpisodeInput
from tests.whole_graph import whole

WRITERS = 8
TOGETHER = 4
"""The number of messages that each writer adds."""
NAMES = "Alice Bruno Carmen Dmitri Elena Farid Greta Hiro".split()
Row = tuple[str, float, float, str]


class Computed(Embeddings):
    """Embeddings of the bundled model that are cached by text."""

    def __init__(self) -> None:
        self._vectors: dict[str, list[float]] = {}

    @cached_property
    def _model(self) -> LocalEmbeddings:
        return LocalEmbeddings()  # in the process that serves it

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of *texts*."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= dict(zip(new, self._model.embed_documents(new), strict=True))
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of *text*."""
        return self.embed_documents([text])[0]


def settings(url: str, model: str, **changes: Any) -> Settings:
    """Return settings for the database at *url* and the model server at the URL *model*, with *changes*."""
    return Settings(
        url=url, base_url=model, model="scripted", embedding_model="local", embedding_base_url=model,
        merge_threshold=THRESHOLDS[0], ask_threshold=THRESHOLDS[1], compare_threshold=THRESHOLDS[2], **changes,
    )  # fmt: skip


@contextmanager
def opened(chosen: Settings) -> Iterator[GraphMemory]:
    """Open a memory in the with block, with an empty cache of vectors."""
    with GraphMemory(chosen) as memory:
        memory.stats()
        yield memory


def one_by_one(memory: GraphMemory, episodes: Sequence[EpisodeInput], namespace: str) -> None:
    """Add the messages one at a time."""
    for each in episodes:
        memory.add(**dict(each), namespace=namespace)


def side_by_side(memory: GraphMemory, episodes: Sequence[EpisodeInput], namespace: str) -> None:
    """Add all messages in one call."""
    memory.add_many(episodes, namespace=namespace)


WAYS: dict[str, tuple[str, Callable[[GraphMemory, Sequence[EpisodeInput], str], None]]] = {
    "one by one": ("standard", one_by_one),
    "side by side": ("standard", side_by_side),
    "economy": ("economy", side_by_side),
}


def graph(memory: GraphMemory, namespace: str) -> dict[str, list[str]]:
    """Return the whole content of a namespace as sorted texts, by part ("entities", "facts" ...)."""
    database = memory.driver.store.database
    return whole(lambda query: database.query(graph_key(namespace), query, {}, write=False))


def measure(episodes: Sequence[EpisodeInput], latency: float, parallel: int) -> tuple[list[Row], list[str]]:
    """Return a row for each way to add messages, and the parts in which the first two graphs differ."""
    rows: list[Row] = []
    graphs: list[dict[str, list[str]]] = []
    with fresh_database() as url, served(episodes, latency=latency, embeddings=Computed()) as model:
        with opened(settings(url, model, parallel=parallel)) as memory:
            side_by_side(memory, episodes, "vectors")
        for way, (plan, add) in WAYS.items():
            with opened(settings(url, model, plan=plan, parallel=parallel)) as memory:
                before, began = counted(model)["calls"], time.perf_counter()
                add(memory, episodes, way)
                seconds = time.perf_counter() - began
                found = graph(memory, way)
                graphs.append(found)
                held = f"{len(found['entities'])} entities, {len(found['facts'])} ends of facts"
                rows.append((way, seconds, counted(model)["calls"] - before, held))
    return rows, [part for part in graphs[0] if graphs[0][part] != graphs[1][part]]


def together() -> dict[str, int]:
    """Let eight processes add messages about the same new entities at once; return counts of the result."""
    said = [
        EpisodeInput(content=f"I know {name} and I live in Lisbon.", speaker="Mallory", thread=f"{writer} {number}")
        for writer in range(WRITERS)
        for number, name in enumerate((NAMES * TOGETHER)[writer : writer + TOGETHER])
    ]
    with fresh_database() as url, served(said, latency=0.05) as model:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(WRITERS)
        shares = [said[start : start + TOGETHER] for start in range(0, len(said), TOGETHER)]
        writers = [context.Process(target=_write, args=(url, model, share, barrier)) for share in shares]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        with opened(settings(url, model)) as memory:
            stats = memory.stats(namespace="together")
            names = [each.name for each in memory.entities.list(namespace="together", limit=1000)]
            held = graph(memory, "together")
    facts = [row for row in held["facts"] if '"predicate": "LIVES_IN"' in row]
    return {
        "messages": len(said), "read": stats.episodes - stats.waiting - stats.failed, "entities": len(names),
        "names": len(set(names)), "facts that Mallory lives in Lisbon": len(facts),
        "processes that failed": sum(each.exitcode != 0 for each in writers),
    }  # fmt: skip


def _write(url: str, model: str, episodes: Sequence[EpisodeInput], barrier: Any) -> None:
    with opened(settings(url, model)) as memory:
        barrier.wait()
        memory.add_many(episodes, namespace="together")


def table(rows: Sequence[Row], messages: int) -> str:
    """Return a Markdown table of the ways to add messages."""
    first = rows[0][1]
    lines = ["| | seconds | ms a message | times as fast | calls a message | the graph |", "| --- |" + " --- |" * 5]
    for way, seconds, calls, held in rows:
        each = 1000 * seconds / messages
        lines.append(
            f"| {way} | {seconds:.1f} | {each:.0f} | {first / seconds:.1f} | {calls / messages:.2f} | {held} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that each answer of the model takes")
    parser.add_argument("--parallel", type=int, default=16)
    asked = parser.parse_args()
    episodes = list(read(asked.data))[: asked.messages]
    rows, differing = measure(episodes, asked.latency, asked.parallel)
    print(table(rows, len(episodes)))
    print(f"\nThe graphs differ in: {', '.join(differing) or 'nothing'}.\n")
    print("| eight processes | |\n| --- | --- |")
    for name, count in together().items():
        print(f"| {name} | {count} |")


if __name__ == "__main__":
    main()
