"""Measure search by size: kg-memory with 1,000 to 100,000 facts, beside raw queries and Graphiti, on one server.

    python -m benchmarks.search_scale [--sizes 1000,10000] [--dims 384,1024] [--no-graphiti] [--quick] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. The memories are synthetic, see
`search_scale_data`; the vectors of the questions are prepared, so no embedding model is timed. All methods answer
one question after another, in turns, so that other load of the machine affects all alike:

facts       `memory.search`, facts by words and by meaning
four kinds  `memory.search` by the default recipe: facts, entities, communities, episodes, also along the graph
raw vector  one query of the vector index of facts for the ten nearest
raw words   one query of the postings of the question's words for the ten best facts by BM25
Graphiti    its `search` (edges, by words and meaning) in one group, like our namespace, and in all groups; and its
            recipe of four kinds with breadth-first search; above 10,000 facts it gets only a part of the questions

Times are medians and 95th percentiles in milliseconds. The ratio of Graphiti's time to ours is the median over the
questions that both were asked. *Database* is the time of a search in which a query was running, *added* the rest.
Recall is the share of the exact ten best facts among the first ten, by each retriever alone and by both fused. Growth
is the median at the largest size divided by that at the smallest.

``--memory`` measures the bytes per fact instead: what each step of writing adds, what remains after a restart, and
what indices and vectors take. All memory is divided by the number of facts, including that of other nodes.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.database import fresh_database
from benchmarks.search_scale_check import check
from benchmarks.search_scale_data import Data, Prepared, Question
from benchmarks.search_scale_exact import Exact
from benchmarks.search_scale_load import Texts, load
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.wire import EncodedVector
from kg_memory.memory.memory import GraphMemory
from kg_memory.retrieval.ranking import Hits
from kg_memory.retrieval.recipe import FACTS, Weights
from kg_memory.retrieval.retrievers import K1, B
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

NAMESPACE = "scale"
WARM = 20
LARGEST_GRAPHITI = 50_000
INDICES_GO = 5
"""Seconds in which the server frees dropped indices."""
RECIPE = FACTS.with_(name="words and meaning", facts=Weights(words=1, meaning=0.7, graph=0))
RAW_VECTOR = """
CALL db.idx.vector.queryNodes('Fact', 'embedding', 10, vecf32($vector)) YIELD node, score
RETURN node.id AS id, score
"""
RAW_WORDS = """
MATCH (t:Term)
WHERE t.s IN $terms
WITH t, outdegree(t, 'IN_FACT') AS often
WITH t, log(1.0 + ($count - often + 0.5) / (often + 0.5)) AS rarity
MATCH (t)-[p:IN_FACT]->(d:Fact)
WITH d, sum(rarity / (1.0 + $k1 * (1.0 - $b + $b * d.n / $average) / coalesce(p.f, 1))) AS score
ORDER BY score DESC LIMIT 10
RETURN d.id AS id, score
"""
OURS = ("facts", "four kinds")
RAW = ("raw vector", "raw words")
GRAPHITI = ("Graphiti facts", "Graphiti four kinds")
ALL_GROUPS = "Graphiti facts, all groups"
Figures = dict[str, float]
Ask = Callable[[Question], object]


class Clock:
    """Records the times in which queries of a database are running."""

    def __init__(self, database: Database) -> None:
        self.spans: list[tuple[float, float]] = []
        for name in ("query_flow", "read_all_flow"):
            setattr(database, name, self._clocked(getattr(database, name)))

    def _clocked(self, flow: Callable[..., Flow[Any]]) -> Callable[..., Flow[Any]]:
        def clocked(*args: Any, **kwargs: Any) -> Flow[Any]:
            began = time.perf_counter()
            try:
                return (yield from flow(*args, **kwargs))
            finally:
                self.spans.append((began, time.perf_counter()))

        return clocked

    def under_way(self) -> float:
        """Return the seconds in which at least one query was running since the last call."""
        seconds, last = 0.0, 0.0
        for began, ended in sorted(self.spans):
            seconds += max(0.0, ended - max(began, last))
            last = max(last, ended)
        self.spans.clear()
        return seconds


class Size:
    """A memory of one size on a server of its own, and the searches to measure."""

    def __init__(self, url: str, facts: int, dimension: int, questions: int) -> None:
        self.data = Data(facts, dimension)
        self.questions = list(self.data.questions(WARM + questions))
        self.embeddings = Prepared(dimension, self.questions)
        self.memory = GraphMemory(Settings(url=url), model="offline", embeddings=self.embeddings)
        self.url, self.figures = url, Figures()
        self.texts = Texts(self.data)
        self.asks: dict[str, Ask] = {}

    def load(self) -> None:
        """Fill the graph with the synthetic data, and define the searches to measure."""
        database = self.memory.driver.store.database
        schema.ensure(database, graph_key(NAMESPACE), self.data.dimension, Prepared.name)
        used, resident = self.memory_taken()
        self.figures["load_s"] = load(database, NAMESPACE, self.data, self.texts, self.say)
        now_used, now_resident = self.memory_taken()
        self.figures["rss_mb"] = (now_resident - resident) / 2**20
        self.figures["bytes_a_fact"] = (now_used - used) / self.data.count
        self.clock = Clock(database)
        average = statistics.mean(each.total() for each in self.texts.facts)
        constants = {"count": self.data.count, "average": average, "k1": K1, "b": B}
        self.asks |= {
            "facts": lambda asked: self.memory.search(asked.text, namespace=NAMESPACE, recipe=RECIPE),
            "four kinds": lambda asked: self.memory.search(asked.text, namespace=NAMESPACE),
            "raw vector": lambda asked: self._raw(RAW_VECTOR, {"vector": EncodedVector(asked.vector)}),
            "raw words": lambda asked: self._raw(RAW_WORDS, {"terms": asked.terms, **constants}),
        }

    def _raw(self, query: str, params: dict[str, Any]) -> object:
        return self.memory.driver.store.database.query(graph_key(NAMESPACE), query, params, write=False)

    @contextmanager
    def beside_graphiti(self) -> Iterator[None]:
        """Load the same data into Graphiti on the same server, for the with block."""
        from benchmarks.search_scale_graphiti import Beside  # noqa: PLC0415 - an extra, which the rest does without

        graphiti = Beside(self.url.removeprefix("unix://"), self.embeddings)
        try:
            before = self.memory_taken()[1]
            self.figures["graphiti_load_s"] = graphiti.load(self.data, self.texts, self.say)
            self.figures["graphiti_rss_mb"] = (self.memory_taken()[1] - before) / 2**20
            self.asks |= {
                "Graphiti facts": lambda asked: graphiti.facts(asked.text),
                "Graphiti four kinds": lambda asked: graphiti.four_kinds(asked.text),
                ALL_GROUPS: lambda asked: graphiti.facts(asked.text, None),
            }
            yield
        finally:
            graphiti.close()

    def measure(self) -> None:
        """Run all searches in turns; the first questions are not counted."""
        self.say("questions")
        gc.collect()
        gc.freeze()  # keep the garbage collector from scanning the loaded data again and again
        times: defaultdict[str, dict[int, float]] = defaultdict(dict)
        step = max(1, self.data.count // 10_000)
        names = list(self.asks)
        for place, question in enumerate(self.questions):
            turn = place % len(names)
            for name in names[turn:] + names[:turn]:
                if name in (*GRAPHITI, ALL_GROUPS) and place % step:
                    continue
                self.clock.spans.clear()
                began = time.perf_counter()
                self.asks[name](question)
                seconds = time.perf_counter() - began
                if place >= WARM:
                    times[name][place] = seconds
                    if name in OURS:
                        database = self.clock.under_way()
                        times[f"{name}, database"][place] = database
                        times[f"{name}, added"][place] = seconds - database
        gc.unfreeze()
        self._sum_up(times)

    def _sum_up(self, times: Mapping[str, Mapping[int, float]]) -> None:
        """Record the median seconds of each search, and the median over questions of Graphiti's time divided by ours.

        Ratios are taken by question, since the clock rate of a shared machine can change by half within a minute.
        """
        for name, taken in times.items():
            self.figures[f"{name}_p50_ms"] = 1000 * statistics.median(taken.values())
            self.figures[f"{name}_p95_ms"] = 1000 * statistics.quantiles(taken.values(), n=20, method="inclusive")[18]
        for ours, theirs in zip(OURS, GRAPHITI, strict=True):
            if theirs in times:
                each = [seconds / times[ours][place] for place, seconds in times[theirs].items()]
                self.figures[f"{theirs} by {ours}"] = statistics.median(each)

    def compare(self) -> None:
        """Compare the results with the exact answers, and record the recall."""
        self.say("recall")
        exact = Exact(self.data, self.texts)
        told = {"namespace": NAMESPACE, "recipe": RECIPE.model_dump(mode="json")}
        recalls: defaultdict[str, list[float]] = defaultdict(list)
        for question in self.questions[WARM:]:
            state = self.memory.graphs.retrieval.invoke({"question": question.text, **told})
            found = exact.recalls(question, Hits(**state["hits"]["facts"]), state["ranked"]["facts"], RECIPE)
            for name, share in found.items():
                recalls[name].append(share)
        self.figures |= {f"recall_{name}": statistics.mean(shares) for name, shares in recalls.items()}

    def restart(self) -> None:
        """Restart the server, and record the time and the bytes per fact afterwards."""
        self.say("restart")
        database = self.memory.driver.store.database
        folder = Path(self.url.removeprefix("unix://")).parents[1]
        self.figures["restart_s"] = _restart(database.client(), folder, database, graph_key(NAMESPACE))
        self.figures["bytes_a_fact_restarted"] = self.memory_taken()[0] / self.data.count

    def memory_taken(self) -> tuple[int, int]:
        """Return the memory of the server in bytes: used, and resident."""
        info = self.memory.driver.store.database.client().info("memory")
        return info["used_memory"], info["used_memory_rss"]

    def say(self, what: str) -> None:
        print(f"  {self.data.count:,} x {self.data.dimension}: {what} ...", file=sys.stderr, flush=True)


def measure(facts: int, dimension: int, questions: int, *, graphiti: bool, restart: bool) -> Figures:
    """Return the figures of one size, measured on a temporary server."""
    with fresh_database() as url:
        size = Size(url, facts, dimension, questions)
        with size.memory:
            size.load()
            if graphiti:
                with size.beside_graphiti():
                    size.measure()
            else:
                size.measure()
            size.compare()
            if restart:
                size.restart()
        return size.figures


class Bytes:
    """Records the server memory per fact by step of *size*: used, its change, and resident."""

    def __init__(self, size: Size) -> None:
        self.size, self.rows, self.step = (
            size,
            ["| step | in use | change | resident |", "| --- | --- | --- | --- |"],
            "",
        )
        self.last = self.start = self._read()
        size.say = self.begin  # type: ignore[method-assign]

    def begin(self, step: str) -> None:
        """Record the memory of the previous step, and start *step*."""
        used, resident = self._read()
        if self.step:
            row = (self.step, used - self.start[0], used - self.last[0], resident - self.start[1])
            self.rows.append("| {} | {:,.0f} | {:+,.0f} | {:,.0f} |".format(*row))
        print(f"  {step} ...", file=sys.stderr, flush=True)
        self.step, self.last = step, (used, resident)

    def _read(self) -> tuple[float, float]:
        used, resident = self.size.memory_taken()
        return used / self.size.data.count, resident / self.size.data.count


def measure_memory(facts: int, dimension: int) -> str:
    """Return a table of the bytes per fact, and the time of a restart."""
    with fresh_database() as url:
        size = Size(url, facts, dimension, 0)
        with size.memory:
            counted = Bytes(size)
            size.load()
            counted.begin("a restart")
            database, key = size.memory.driver.store.database, graph_key(NAMESPACE)
            seconds = _restart(database.client(), Path(url.removeprefix("unix://")).parents[1], database, key)
            counted.begin("without the vector indices")
            for label in schema.EMBEDDED:
                database.query(key, f"DROP VECTOR INDEX FOR (n:{label}) ON (n.embedding)", {}, write=True)
            time.sleep(INDICES_GO)
            counted.begin("without the vectors")
            for label in schema.EMBEDDED:
                database.query(key, f"MATCH (n:{label}) SET n.embedding = NULL", {}, write=True)
            counted.begin("without the other indices")
            for label, names in schema.RANGE.items():
                for name in names:
                    database.query(key, f"DROP INDEX FOR (n:{label}) ON (n.{name})", {}, write=True)
            time.sleep(INDICES_GO)
            counted.begin("")
    head = f"bytes a fact at {facts:,} facts of {dimension} dimensions; a restart took {seconds:.0f} s:"
    return "\n".join([head, "", *counted.rows])


def _restart(client: Any, folder: Path, database: Database, key: str) -> float:
    """Restart the server of *folder* from a snapshot, and return the seconds until all its indices work."""
    client.bgrewriteaof()
    while client.info("persistence")["aof_rewrite_in_progress"] or client.info("persistence")["aof_rewrite_scheduled"]:
        time.sleep(0.1)
    client.shutdown(nosave=True)
    began = time.perf_counter()
    while embedded.is_running(folder):
        time.sleep(0.01)
    with embedded.join(folder, binaries.download_missing(), fsync="everysec", idle_seconds=0):
        schema.wait_for_indices(database, key)
    return time.perf_counter() - began


def tables(dimension: int, rows: Mapping[int, Figures]) -> str:
    """Return Markdown tables by size."""
    names = [
        name for name in (*OURS, *RAW, *GRAPHITI, ALL_GROUPS) if any(f"{name}_p50_ms" in row for row in rows.values())
    ]
    times = {name: {size: _times(row, name) for size, row in rows.items()} for name in names}
    growth = {name: _growth(name, rows) for name in names}
    parts = [_table(f"{dimension} dimensions, milliseconds (median / 95th percentile)", rows, times, growth)]
    ratios: dict[str, dict[int, str]] = {}
    raw = {size: sum(row[f"{name}_p50_ms"] for name in RAW) for size, row in rows.items()}
    for name, other in zip(OURS, GRAPHITI, strict=True):
        ratios[f"{name} by raw vector and words"] = {
            size: f"{row[f'{name}_p50_ms'] / raw[size]:.2f}" for size, row in rows.items()
        }
        ratios[f"{other} by {name}"] = {
            size: f"{row[f'{other} by {name}']:.1f}" for size, row in rows.items() if f"{other} by {name}" in row
        }
    parts.append(_table("ratios, of the medians to the raw queries, of each question to Graphiti", rows, ratios))
    own = {part: {size: _times(row, part) for size, row in rows.items()}
           for name in OURS for part in (f"{name}, database", f"{name}, added")}  # fmt: skip
    parts.append(_table("of which", rows, own))
    rest = (
        *("recall_meaning", "recall_words", "recall_fused", "load_s", "rss_mb", "graphiti_load_s", "graphiti_rss_mb"),
        *("bytes_a_fact", "restart_s", "bytes_a_fact_restarted"),
    )
    others = {name: {size: f"{row[name]:,.4g}" for size, row in rows.items() if name in row} for name in rest}
    parts.append(_table("recall, seconds to load, memory that it takes", rows, others))
    return "\n\n".join(parts)


def _times(row: Figures, name: str) -> str:
    return f"{row[f'{name}_p50_ms']:.2f} / {row[f'{name}_p95_ms']:.2f}" if f"{name}_p50_ms" in row else "-"


def _growth(name: str, rows: Mapping[int, Figures]) -> str:
    known = [row[f"{name}_p50_ms"] for row in rows.values() if f"{name}_p50_ms" in row]
    return f"{known[-1] / known[0]:.1f}"


def _table(
    title: str, rows: Mapping[int, Figures], columns: Mapping[str, Mapping[int, str]], growth: Mapping[str, str] = {}
) -> str:
    columns = {name: column for name, column in columns.items() if any(cell != "-" for cell in column.values())}
    lines = [f"{title}:", "", f"| facts | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    lines += [f"| {size:,} | {' | '.join(column.get(size, '-') for column in columns.values())} |" for size in rows]
    if len(rows) > 1 and growth:
        lines.append(f"| growth | {' | '.join(growth[name] for name in columns)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes, print the tables and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=_numbers, default=[1000, 10_000, 50_000, 100_000])
    parser.add_argument("--dims", type=_numbers, default=[384, 1024])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--no-graphiti", action="store_true")
    parser.add_argument("--memory", action="store_true", help="measure the bytes a fact instead, of each size")
    parser.add_argument("--restart", action="store_true", help="restart the server of each size, and tell how long")
    parser.add_argument("--quick", action="store_true", help="1,000 facts, 384 dimensions, 40 questions, and a check")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    asked = parser.parse_args()
    if asked.quick:
        asked.sizes, asked.dims, asked.questions = [1000], [384], 40
        with fresh_database() as url:
            check(url)
    if asked.memory:
        for size, dimension in product(asked.sizes, asked.dims):
            print(measure_memory(size, dimension), end="\n\n", flush=True)
        return
    kept: Figures = {}
    for dimension in asked.dims:
        rows: dict[int, Figures] = {}
        for size in sorted(asked.sizes):
            graphiti = not asked.no_graphiti and size <= LARGEST_GRAPHITI
            rows[size] = measure(size, dimension, asked.questions, graphiti=graphiti, restart=asked.restart)
            kept |= {f"{dimension} {size} {name}": value for name, value in rows[size].items()}
            if asked.out:
                asked.out.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        print(tables(dimension, rows), end="\n\n", flush=True)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    main()
