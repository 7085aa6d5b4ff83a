"""Measure a search over several namespaces beside a search of one, in turns, on one embedded server.

    python -m benchmarks.joint_search [--facts 1000] [--questions 60] [--out FILE.json]

Run it from the root of the repository. Every namespace holds a synthetic memory of its own (see `search_scale_data`)
with the given number of facts; the vectors of the questions are prepared, so no embedding model is timed. Each question
is asked of one, two and five namespaces, in an order that changes from question to question. The ratio is the median
over the questions of the time divided by that of one namespace.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.database import fresh_database
from benchmarks.opening import show, write
from benchmarks.search_scale_data import Data, Prepared
from benchmarks.search_scale_load import Texts, load
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings

DIMENSION = 384
WARM = 10
NUMBERS = (1, 2, 5)
"""The numbers of namespaces that are searched together."""


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1000, help="facts of each namespace (default: 1000)")
    parser.add_argument("--questions", type=int, default=60, help="questions to time (default: 60)")
    parser.add_argument("--quick", action="store_true", help="100 facts and 10 questions")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args()
    facts, count = (100, 10) if options.quick else (options.facts, options.questions)
    memories = [Data(facts, DIMENSION, seed) for seed in range(max(NUMBERS))]
    questions = list(memories[0].questions(WARM + count))
    times: defaultdict[int, list[float]] = defaultdict(list)
    with fresh_database() as url:
        settings = Settings(url=url)
        with GraphMemory(settings, model="offline", embeddings=Prepared(DIMENSION, questions)) as memory:
            database, names = memory.driver.store.database, [f"team{place}" for place in range(len(memories))]
            for name, data in zip(names, memories, strict=True):
                print(f"  {name} ...", file=sys.stderr, flush=True)
                schema.ensure(database, graph_key(name), DIMENSION, Prepared.name)
                load(database, name, data, Texts(data), lambda _: None)
            for place, question in enumerate(questions):
                turn = place % len(NUMBERS)
                for number in NUMBERS[turn:] + NUMBERS[:turn]:
                    began = time.perf_counter()
                    memory.search(question.text, namespace=names[:number] if number > 1 else names[0])
                    if place >= WARM:
                        times[number].append(time.perf_counter() - began)
    figures: dict[str, float] = {}
    for number in NUMBERS:
        ratios = [taken / one for taken, one in zip(times[number], times[1], strict=True)]
        figures[f"{number}_namespaces_p50_ms"] = round(1000 * statistics.median(times[number]), 1)
        figures[f"{number}_namespaces_ratio"] = round(statistics.median(ratios), 2)
    show(figures)
    write(figures, options.out)


if __name__ == "__main__":
    main()
