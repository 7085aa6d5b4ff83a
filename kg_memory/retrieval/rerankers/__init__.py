"""The rerankers of the package: the registry."""

from kg_memory.retrieval.rerankers.cross_encoder import ByCrossEncoder
from kg_memory.retrieval.rerankers.diversity import ByDiversity
from kg_memory.retrieval.rerankers.signals import ByConfidence, ByDistance, ByMentions, ByRecency, ByTrust, ByUse

__all__ = [
    "RERANKERS",
    "ByConfidence",
    "ByCrossEncoder",
    "ByDistance",
    "ByDiversity",
    "ByMentions",
    "ByRecency",
    "ByTrust",
    "ByUse",
]

RERANKERS = ByMentions | ByDistance | ByRecency | ByUse | ByConfidence | ByTrust | ByCrossEncoder | ByDiversity
