"""Measure the time of reports over many episodes: `python benchmarks/digest.py --episodes 10000`.

The episodes are declared facts about 500 people, stated over 400 days and all saved within the period of the digest,
which is its worst case. No model is used.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding

from kg_memory import GraphMemory, Settings
from kg_memory.memory.adding import Progress

NAMESPACE = "digest"
PEOPLE = 500
DAYS = 400
ROUNDS = 9


def rows(episodes: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield *episodes* facts; a third of them end another one, since a person lives in one city at a time."""
    chance = random.Random(seed)
    start = datetime.now(UTC) - timedelta(days=DAYS)
    for number in range(episodes):
        person = f"Person {chance.randrange(PEOPLE)}"
        predicate, things = chance.choice((("LIVES_IN", "City"), ("LIKES", "Dish"), ("USES", "Tool")))
        at = start + timedelta(days=DAYS) * (number / episodes)
        row = {"subject": person, "predicate": predicate, "object": f"{things} {chance.randrange(300)}"}
        yield {**row, "at": at, "valid_at": at, "source_id": f"digest/{number}"}


def seconds_of(report: Callable[[], Any]) -> list[float]:
    """Return the sorted seconds that each run of *report* took, without a first run to warm up."""
    report()
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        report()
        taken.append(time.perf_counter() - began)
    return sorted(taken)


def _tell(progress: Progress) -> None:
    if progress.done % 1000 == 0:
        print(f"{progress.done} stated", file=sys.stderr)


def main() -> None:
    """Fill a memory, and print a table of the times of its reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    count = parser.parse_args().episodes
    with tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True) as folder:
        settings = Settings(data_dir=Path(folder), fsync="everysec", idle_seconds=0)
        vectors = DeterministicFakeEmbedding(size=16)  # reports never search by meaning
        with GraphMemory.open(settings=settings, model="offline", embeddings=vectors) as memory:
            began = time.perf_counter()
            memory.facts.add_many(rows(count), namespace=NAMESPACE, progress=_tell)
            print(f"{count} episodes stated in {time.perf_counter() - began:.0f} s", flush=True)
            where = {"namespace": NAMESPACE}
            reports: dict[str, Callable[[], Any]] = {
                "digest, last week": lambda: memory.reports.digest(**where),
                "digest, a week ago": lambda: memory.reports.digest("2 weeks ago", "last week", **where),
                "digest, as it was believed": lambda: memory.reports.digest(believed_at="now", **where),
                "identity": lambda: memory.reports.identity("Person 1", **where),
                "handoff": lambda: memory.reports.handoff(**where),
            }
            print("| Report | Median ms | Slowest ms |\n| --- | --- | --- |")
            for name, report in reports.items():
                taken = seconds_of(report)
                print(f"| {name} | {1000 * median(taken):.0f} | {1000 * taken[-1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
