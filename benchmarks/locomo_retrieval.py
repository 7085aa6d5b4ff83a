"""Recall of the evidence turns on LoCoMo conversations (Maharana et al. 2024), offline: no key, no network.

    python benchmarks/locomo_retrieval.py --data locomo.json --out figures.json [--quick] [--folder FOLDER]

Each conversation is read into a namespace of its own in an embedded database. Recall at k is the share of a
question's evidence turns among the first k episodes found, averaged over the questions of categories 1 to 4.
With ``--folder`` the database is kept there, and what it holds already is not read again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from kg_memory import GraphMemory, Settings
from kg_memory.calls import Progress
from kg_memory.model import EpisodeInput
from kg_memory.readers import locomo

DEPTHS = (5, 10, 20)
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}
QUICK = 3
"""A quick run asks every third question of one conversation."""
_TURN = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the turns that hold its answer."""

    text: str
    category: str
    evidence: frozenset[str]


def main() -> None:
    """Run the benchmark and write its figures."""
    options = _options()
    samples = locomo.samples(json.loads(options.data.read_text(encoding="utf-8")))
    if samples is None:
        sys.exit(f"{options.data} is no LoCoMo file: give a JSON list of objects with a `conversation`")
    if options.quick:
        samples = samples[:1]
    figures: dict[str, Any] = {}
    with _folder(options.folder) as folder, _memory(folder) as memory:
        figures |= ingest(memory, samples)
        figures |= ask(memory, samples, QUICK if options.quick else 1)
    _show(figures)
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def ingest(memory: GraphMemory, samples: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Read the conversations that are not there yet, and tell how fast."""
    new = turns = 0
    began = time.perf_counter()
    for number, sample in enumerate(samples):
        namespace = _namespace(sample, number)
        episodes = [each for each in locomo.read_locomo(sample, namespace) if isinstance(each, EpisodeInput)]
        turns += len(episodes)
        stats = memory.stats(namespace=namespace)
        if stats.episodes < len(episodes) or stats.waiting:
            new += sum(each.new for each in memory.add_many(episodes, namespace=namespace, progress=_progress))
    seconds = time.perf_counter() - began
    fresh = {"ingest_seconds": round(seconds, 1), "ingest_turns_per_second": round(new / seconds, 2)} if new else {}
    return {"conversations": len(samples), "turns": turns, "turns_ingested": new, **fresh}


def ask(memory: GraphMemory, samples: list[Mapping[str, Any]], step: int) -> dict[str, Any]:
    """Ask every *step*-th question of each conversation; return recall and latency."""
    recalls: defaultdict[str, list[float]] = defaultdict(list)
    seconds: list[float] = []
    for number, sample in enumerate(samples):
        namespace = _namespace(sample, number)
        for question in _questions(sample)[::step]:
            began = time.perf_counter()
            found = memory.search(question.text, namespace=namespace, limit=max(DEPTHS))
            seconds.append(time.perf_counter() - began)
            turns = [(each.source_id or "").rpartition("/")[2] for each in found.episodes]
            for depth in DEPTHS:
                recall = len(question.evidence.intersection(turns[:depth])) / len(question.evidence)
                for group in ("", f"_{question.category}", f"_{namespace}"):
                    recalls[f"recall_at_{depth}{group}"].append(recall)
    cuts = quantiles(seconds, n=20, method="inclusive")
    return {
        "questions": len(seconds),
        **{name: round(mean(values), 4) for name, values in sorted(recalls.items())},
        "search_p50_ms": round(cuts[9] * 1000, 1),
        "search_p95_ms": round(cuts[18] * 1000, 1),
    }


def _questions(sample: Mapping[str, Any]) -> list[Question]:
    """Return the questions that have an answer (category 5 has none) and evidence that exists."""
    known = {
        turn["dia_id"]
        for name, session in sample["conversation"].items()
        if re.fullmatch(r"session_\d+", name)
        for turn in session
        if "dia_id" in turn
    }
    found = []
    for each in sample.get("qa", ()):
        turns = _TURN.findall(" ".join(each.get("evidence", ())))
        evidence = known.intersection(f"D{session}:{int(turn)}" for session, turn in turns)
        if each.get("category") in CATEGORIES and evidence:
            found.append(Question(each["question"], CATEGORIES[each["category"]], frozenset(evidence)))
    return found


def _namespace(sample: Mapping[str, Any], number: int) -> str:
    return str(sample.get("sample_id") or f"locomo-{number + 1}")


def _memory(folder: Path) -> GraphMemory:
    # The benchmark's server stops with it, and need not survive a power cut.
    settings = Settings(data_dir=folder, fsync="everysec", idle_seconds=0)
    return GraphMemory.open(settings=settings, model="offline", embeddings="offline", say=print)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _progress(progress: Progress) -> None:
    if progress.done % 100 == 0 or progress.done == progress.total:
        rate = progress.done / max(progress.seconds, 1e-9)
        print(f"  {progress.done} of {progress.total} turns, {rate:.1f} a second", file=sys.stderr, flush=True)


def _show(figures: Mapping[str, Any]) -> None:
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Recall of evidence turns on LoCoMo conversations, offline.")
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo JSON file")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--quick", action="store_true", help=f"one conversation, every {QUICK}rd question")
    parser.add_argument("--folder", type=Path, help="keep the database here, so that a rerun need not ingest again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
