"""Step 3, rerank: one order a kind from the three ways of searching (Zep 3.2)."""

from __future__ import annotations

from typing import Any

from kg_memory.effects import read
from kg_memory.falkor import search_cypher as cypher
from kg_memory.flow import Flow
from kg_memory.rank import decayed, ordered, rrf
from kg_memory.retrieval.state import DEFAULT_LIMIT, Hits, Kind, RetrievalState, Scored
from kg_memory.settings import Settings

DAY = 24 * 3600 * 1_000_000
DECAYING: tuple[Kind, ...] = ("facts", "episodes")
"""The kinds that are said at a time."""
# Words beat meaning on talk, and a rank constant of 60 lets many weak agreements outvote one strong hit.
K = 10.0
WEIGHTS: dict[Kind, tuple[float, float, float]] = {
    "facts": (2.0, 1.0, 0.5),
    "entities": (1.0, 1.0, 2.0),
    "communities": (1.0, 1.0, 0.5),
    "episodes": (2.0, 1.0, 0.5),
}
"""How much words, meaning and graph count; an entity is above all found by being named."""


def rerank(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:
    """Fuse the hits of each kind by weighted reciprocal rank, prefer newer ones if that is set, and keep the best."""
    given = state.get("limit")
    limit = DEFAULT_LIMIT if given is None else max(given, 0)
    fused = {kind: _fused(kind, hits) for kind, hits in state["hits"].items()}
    rate = settings.temporal_decay_rate
    if rate and fused:
        said = yield from read(cypher.LAST_SAID, **{kind: [id_ for id_, _ in fused[kind]] for kind in DECAYING})
        ages = {row["id"]: (state["instants"]["believed_at"] - row["at"]) / DAY for row in said}
        for kind in DECAYING:
            newer = ((id_, decayed(score, ages[id_], rate)) for id_, score in fused[kind] if id_ in ages)
            fused[kind] = [[id_, round(score, 6)] for id_, score in ordered(newer)]
    return {"ranked": {kind: scored[:limit] for kind, scored in fused.items()}}


def _fused(kind: Kind, hits: Hits) -> list[Scored]:
    """Return the ids with scores from 0 to 1, which is first in every ranking."""
    rankings = [[(name, score) for name, score in arm] for arm in (hits["words"], hits["meaning"], hits["graph"])]
    most = sum(WEIGHTS[kind]) / (K + 1)
    fused = rrf(rankings, WEIGHTS[kind], K)
    return [[name, round(score / most, 6)] for name, score in fused]
