"""BM25 over the messages; no model."""

from __future__ import annotations

from kg_memory.contrib.evaluation import ranking
from kg_memory.contrib.evaluation.records import System, Tools
from kg_memory.contrib.evaluation.systems._turns import TurnSearch


def open_system(tools: Tools, variant: str | None = None) -> System:
    """Return the search; it takes no variant."""
    del tools, variant
    return TurnSearch("bm25", ranking.words)
