"""The walks along the graph of the package: the registry."""

from kg_memory.retrieval.walks.bfs import BreadthFirst
from kg_memory.retrieval.walks.pagerank import PageRank
from kg_memory.retrieval.walks.synapse import Synapse

__all__ = ["WALKS", "BreadthFirst", "PageRank", "Synapse"]

WALKS = BreadthFirst | Synapse | PageRank
