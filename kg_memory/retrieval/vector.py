"""The second retriever: cosine similarity, in the vector index or, of few nodes, with each of them (Zep 3.1)."""

from __future__ import annotations

from kg_memory.falkor.queries import search as cypher
from kg_memory.retrieval.bm25 import Params
from kg_memory.retrieval.fuse import Scored
from kg_memory.retrieval.scope import EVERYTHING, Scope
from kg_memory.runtime.effects import Vector
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import SESSION_GAP

COMPARED = 300
"""The most vectors that are all compared, which takes as long as the index and misses none."""
LINES_COMPARED, LINES_EXAMINED = 1000, 120
"""The same for episodes, and the least that are examined of more: one between two that fit may not be near itself."""
NEIGHBOUR_SHARE = 0.5
MOST_NEIGHBOURS = 1000
"""The most of the nearest that are checked for those that pass; if too few do, all are compared."""


def search_meaning(scope: Scope, vector: Vector | None) -> Flow[list[Scored]]:
    """Return the nodes nearest to *vector*; none without one."""
    if vector is None or not scope.count:
        return []
    params: Params = {"vector": vector}
    is_lines = scope.kind == "episodes"
    if is_lines:
        params |= {"share": NEIGHBOUR_SHARE, "gap": SESSION_GAP}
    sifting = scope.sift_step(*cypher.CARRIED)
    if scope.few is None and scope.count > (LINES_COMPARED if is_lines else COMPARED):
        query = cypher.vector_search(scope.kind, sifting.cypher)
        examined = max(scope.examined, LINES_EXAMINED if is_lines else 0)
        hits = yield from scope.best(query, MOST_NEIGHBOURS, examined, **params, **sifting.params)
        if len(hits) >= scope.limit or not scope.is_sifted:
            return hits
    first = scope.few or EVERYTHING
    query = cypher.exact_vector_search(scope.kind, sifting.cypher, first.cypher)
    hits = yield from scope.best(query, scope.count, scope.count, **params, **first.params, **sifting.params)
    return hits
