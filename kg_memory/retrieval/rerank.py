"""Step 2, rerank: one order a kind from the three ways of searching (Zep 3.2)."""

from __future__ import annotations

from typing import Any

from kg_memory.flow import Flow
from kg_memory.rank import rrf
from kg_memory.retrieval.state import Hits, Kind, RetrievalState, Scored
from kg_memory.settings import Settings

DEFAULT_LIMIT = 10
# Words beat meaning on talk, and a rank constant of 60 lets many weak agreements outvote one strong hit.
K = 10.0
WEIGHTS: dict[Kind, tuple[float, float, float]] = {
    "facts": (2.0, 1.0, 0.5),
    "entities": (1.0, 1.0, 2.0),
    "communities": (1.0, 1.0, 0.5),
    "episodes": (2.0, 1.0, 0.5),
}
"""How much words, meaning and graph count; an entity is above all found by being named."""


def rerank(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Fuse the hits of each kind by weighted reciprocal rank, and keep the best."""
    yield from ()
    given = state.get("limit")
    limit = DEFAULT_LIMIT if given is None else max(given, 0)
    return {"ranked": {kind: _fused(kind, hits)[:limit] for kind, hits in state["hits"].items()}}


def _fused(kind: Kind, hits: Hits) -> list[Scored]:
    """Return the ids with scores from 0 to 1, which is first in every ranking."""
    rankings = [[(name, score) for name, score in arm] for arm in (hits["words"], hits["meaning"], hits["graph"])]
    most = sum(WEIGHTS[kind]) / (K + 1)
    fused = rrf(rankings, WEIGHTS[kind], K)
    return [[name, round(score / most, 6)] for name, score in fused]
