"""Shared parts of the conversation benchmarks: options, an offline memory in a folder, and ingestion."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kg_memory import GraphMemory, Settings
from kg_memory.memory.adding import Progress
from kg_memory.models.graph import EpisodeInput


def arguments(description: str, data: str, quick: str) -> argparse.ArgumentParser:
    """Return a parser with the common options; *data* and *quick* are the help texts of these two options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help=data)
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--folder", type=Path, help="keep the database here, so that a rerun need not ingest again")
    return parser


@contextmanager
def kept(folder: Path | None) -> Iterator[Path]:
    """Yield *folder*, or a temporary folder if it is None."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


@contextmanager
def opened(folder: Path) -> Iterator[GraphMemory]:
    """Open an embedded memory in *folder* that reads offline and embeds with the bundled model."""
    # The server stops with the benchmark, and its data need not survive a power failure.
    settings = Settings(data_dir=folder, fsync="everysec", idle_seconds=0)
    with GraphMemory.open(settings=settings, model="offline", embeddings="offline", on_wait=print) as memory:
        yield memory


def ingest(
    memory: GraphMemory, conversations: Iterable[tuple[str, list[EpisodeInput]]], every: int = 100
) -> dict[str, Any]:
    """Ingest each conversation into its namespace, unless it is there already; return counts and speed."""
    new = turns = 0
    began = time.perf_counter()
    for namespace, episodes in conversations:
        turns += len(episodes)
        stats = memory.stats(namespace=namespace)
        if stats.episodes < len(episodes) or stats.waiting:
            new += sum(each.new for each in memory.add_many(episodes, namespace=namespace, progress=_telling(every)))
    seconds = time.perf_counter() - began
    fresh = {"ingest_seconds": round(seconds, 1), "ingest_turns_per_second": round(new / seconds, 2)} if new else {}
    return {"turns": turns, "turns_ingested": new, **fresh}


def show(figures: Mapping[str, Any]) -> None:
    """Print the figures, one on each line."""
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value}")


def write(figures: Mapping[str, Any], out: Path | None) -> None:
    """Write the figures as JSON to *out*, unless it is None."""
    if out:
        out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _telling(every: int) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if progress.done % every == 0 or progress.done == progress.total:
            rate = progress.done / max(progress.seconds, 1e-9)
            print(f"  {progress.done} of {progress.total} turns, {rate:.1f} a second", file=sys.stderr, flush=True)

    return tell
