"""Measure the time to build a profile of 50, 500 and 2,000 current facts, each stated one to three times.

    python benchmarks/profile_view.py [--rounds 30]

Prints the median and the 95th percentile, the median within 300 tokens, and the length of the whole text.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opening import opened

from kg_memory import GraphMemory
from kg_memory.text.predicates import canonical_predicates

SIZES = (50, 500, 2000)
SEVERAL = ("LIKES", "HAS_FRIEND", "OWNS", "USES", "WORKS_ON", "SPEAKS", "IS_INTERESTED_IN", "KNOWS", "PLAYS", "WANTS")


def rows(size: int) -> Iterator[dict[str, Any]]:
    """Yield statements of *size* current facts about Ann, some of them repeated, with frequent and rare predicates."""
    draw = random.Random(size)
    rare = [name for name in canonical_predicates() if name.isascii()]
    for number in range(size):
        predicate = draw.choice(SEVERAL) if number % 4 else f"ALSO_{draw.choice(rare)}"
        row = {"subject": "Ann", "predicate": predicate, "object": f"thing {number}", "valid_at": f"20{number % 25:02}"}
        for again in range(draw.choice((1, 1, 1, 2, 3))):
            yield {**row, "source_id": f"{number}/{again}"}


def measure(memory: GraphMemory, namespace: str, rounds: int, **how: Any) -> tuple[list[float], int]:
    """Return the sorted milliseconds of *rounds* profiles, and the number of tokens of one profile."""
    memory.profile("Ann", namespace=namespace, **how)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        profile = memory.profile("Ann", namespace=namespace, **how)
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times), profile.tokens


def main() -> None:
    """Run the benchmark and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=30)
    rounds = options.parse_args().rounds
    print("| Facts | In the profile | Median | 95th percentile | Median within 300 tokens | Tokens of the whole |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, opened(Path(folder)) as memory:
        for size in SIZES:
            namespace = f"facts {size}"
            memory.facts.add_many(rows(size), namespace=namespace)
            shown = len(memory.profile("Ann", namespace=namespace).facts)
            times, tokens = measure(memory, namespace, rounds)
            short, _ = measure(memory, namespace, rounds, max_tokens=300)
            late = times[int(len(times) * 0.95)]
            print(
                f"| {size} | {shown} | {statistics.median(times):.1f} ms | {late:.1f} ms | "
                f"{statistics.median(short):.1f} ms | {tokens:,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
