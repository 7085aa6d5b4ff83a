"""The rerankers of the package, one file each. To add one, import it here and add it to `RERANKERS`."""

from __future__ import annotations

from kg_memory.retrieval.rerankers.chain import ByChain
from kg_memory.retrieval.rerankers.confidence import ByConfidence
from kg_memory.retrieval.rerankers.cross_encoder import ByCrossEncoder
from kg_memory.retrieval.rerankers.decay import ByDecay
from kg_memory.retrieval.rerankers.distance import ByDistance
from kg_memory.retrieval.rerankers.diversity import ByDiversity
from kg_memory.retrieval.rerankers.half_life import ByHalfLife
from kg_memory.retrieval.rerankers.importance import ByImportance
from kg_memory.retrieval.rerankers.mentions import ByMentions
from kg_memory.retrieval.rerankers.recency import ByRecency
from kg_memory.retrieval.rerankers.time import ByTime
from kg_memory.retrieval.rerankers.trust import ByTrust
from kg_memory.retrieval.rerankers.use import ByUse

RERANKERS = (
    ByChain
    | ByConfidence
    | ByCrossEncoder
    | ByDecay
    | ByDistance
    | ByDiversity
    | ByHalfLife
    | ByImportance
    | ByMentions
    | ByRecency
    | ByTime
    | ByTrust
    | ByUse
)
"""The registry: each may be named in a recipe, and is a recipe of its own by that name."""

__all__ = [
    "RERANKERS",
    "ByChain",
    "ByConfidence",
    "ByCrossEncoder",
    "ByDecay",
    "ByDistance",
    "ByDiversity",
    "ByHalfLife",
    "ByImportance",
    "ByMentions",
    "ByRecency",
    "ByTime",
    "ByTrust",
    "ByUse",
]
