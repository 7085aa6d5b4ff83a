"""By meaning: cosine similarity, in the vector index or, of few, of each (Zep 3.1)."""

from __future__ import annotations

from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.retrieval.records import Scored
from kg_memory.retrieval.scope import EVERYTHING, Scope
from kg_memory.runtime.effects import Vector
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import SESSION_GAP

COMPARED = 300
"""So many vectors are all compared, which takes as long as the index and finds all."""
LINES_COMPARED, LINES_EXAMINED = 1000, 120
"""The same of episodes, and how many of more are looked at: one between two that fit may not be near by itself."""
NEIGHBOUR_SHARE = 0.5
MOST_NEIGHBOURS = 1000
"""So many of the nearest are looked through for those that pass; if too few do, all are compared."""


def by_meaning(scope: Scope, vector: Vector) -> Flow[list[Scored]]:
    """Return what is nearest to *vector*."""
    if not scope.count:
        return []
    constants: dict[str, Any] = {"vector": vector}
    is_lines = scope.kind == "episodes"
    if is_lines:
        constants |= {"share": NEIGHBOUR_SHARE, "gap": SESSION_GAP}
    sifting = scope.sifting(*cypher.CARRIED)
    if scope.few is None and scope.count > (LINES_COMPARED if is_lines else COMPARED):
        query = cypher.vector_search(scope.kind, sifting.cypher)
        examined = max(scope.examined, LINES_EXAMINED if is_lines else 0)
        hits = yield from scope.best(query, MOST_NEIGHBOURS, examined, **constants, **sifting.params)
        if len(hits) >= scope.wanted or not scope.is_sifted:
            return hits
    first = scope.few or EVERYTHING
    query = cypher.exact_vector_search(scope.kind, sifting.cypher, first.cypher)
    hits = yield from scope.best(query, scope.count, scope.count, **constants, **first.params, **sifting.params)
    return hits
