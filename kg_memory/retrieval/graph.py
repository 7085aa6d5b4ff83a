"""The retrieval graph: all that a question passes on its way to a context."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from kg_memory.flow import Driver
from kg_memory.nodes import node
from kg_memory.retrieval.construct import construct
from kg_memory.retrieval.rerank import rerank
from kg_memory.retrieval.search import search
from kg_memory.retrieval.state import RetrievalContext, RetrievalInput, RetrievalState
from kg_memory.settings import Settings


def build(
    driver: Driver, settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    for step in (search, rerank, construct):
        graph.add_node(step.__name__, node(step, driver, settings))
    graph.add_edge(START, "search")
    graph.add_edge("search", "rerank")
    graph.add_edge("rerank", "construct")
    graph.add_edge("construct", END)
    return graph
