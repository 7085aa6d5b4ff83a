"""The retrieval graph: all that a question passes on its way to a context."""

from __future__ import annotations

from itertools import pairwise

from langgraph.graph import END, START, StateGraph

from kg_memory.retrieval.construct import construct
from kg_memory.retrieval.records import RetrievalContext, RetrievalInput, RetrievalState
from kg_memory.retrieval.rerankers.rerank import rerank
from kg_memory.retrieval.search import search
from kg_memory.runtime.flow import Driver
from kg_memory.runtime.graph import Course
from kg_memory.runtime.nodes import node
from kg_memory.settings import Settings

STEPS = (search, rerank, construct)


def build(
    driver: Driver, settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    return course(driver, settings).graph


def course(driver: Driver, settings: Settings) -> Course:
    """Return the steps, each of which the next one follows."""
    nodes = {step.__name__: node(step, driver, settings) for step in STEPS}
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    return Course("retrieval", graph, nodes, dict(pairwise((START, *nodes, END))))
