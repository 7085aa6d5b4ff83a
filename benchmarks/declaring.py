"""Measure how many declared facts are written per second: ``python benchmarks/declaring.py [--facts 2000]``.

The facts are about employees, their companies, cities and friends, over time; each fact is an episode. They are written
once with the local embedding model, and once with hash vectors, which shows the time of the memory itself.
"""

import argparse
import hashlib
import random
import tempfile
import time
from pathlib import Path

from langchain_core.embeddings import Embeddings

from kg_memory import GraphMemory, Settings


class Hashes(Embeddings):
    """Embeddings computed from a hash of the text."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[byte / 255 - 0.5 for byte in hashlib.sha512(text.encode()).digest()] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def make_rows(count: int) -> list[dict[str, str]]:
    """Return *count* random facts, by four predicates, about a fifth as many people."""
    rng = random.Random(7)
    people, things = max(count // 5, 1), max(count // 20, 1)
    rows = []
    for number in range(count):
        predicate = rng.choice(("WORKS_AT", "LIVES_IN", "KNOWS", "USES"))
        other = f"Person {rng.randrange(people)}b" if predicate == "KNOWS" else f"Thing {rng.randrange(things)}"
        row = {"subject": f"Person {number % people}", "predicate": predicate, "object": other}
        rows.append({**row, "valid_at": f"{rng.randrange(1990, 2025)}", "source_id": str(number)})
    return rows


def main() -> None:
    """Measure, and print a line for each embedding model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=2000)
    rows = make_rows(parser.parse_args().facts)
    for name, embeddings in (("local embeddings", None), ("no embeddings", Hashes())):
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(data_dir=Path(folder), model="offline", idle_seconds=0)
            with GraphMemory.open(settings=settings, embeddings=embeddings) as memory:
                memory.facts.add("Warm", "UP")
                began, computed = time.perf_counter(), time.process_time()
                memory.facts.add_many(rows)
                seconds, computed = time.perf_counter() - began, time.process_time() - computed
                stats = memory.stats()
        rate = f"{len(rows) / seconds:.0f} facts a second ({len(rows) / computed:.0f} a second of this process's CPU)"
        print(f"{name}: {len(rows)} facts, {stats.entities} entities: {seconds:.1f} s, {rate}")


if __name__ == "__main__":
    main()
