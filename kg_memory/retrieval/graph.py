"""The retrieval graph: all that a question passes on its way to a context."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph

from kg_memory import telemetry
from kg_memory.flow import Driver, Flow
from kg_memory.nodes import news, node
from kg_memory.retrieval.construct import construct
from kg_memory.retrieval.rerank import rerank
from kg_memory.retrieval.search import search
from kg_memory.retrieval.state import RetrievalContext, RetrievalInput, RetrievalState
from kg_memory.settings import Settings

STEPS = (search, rerank, construct)


def build(
    driver: Driver, settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    for step in STEPS:
        graph.add_node(step.__name__, node(step, driver, settings))
    for before, after in pairwise((START, *(step.__name__ for step in STEPS), END)):
        graph.add_edge(before, after)
    return graph


def straight(asked: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Any]]:
    """Return what the graph makes of what is *asked* of a namespace: its steps one after another, without it."""
    state: Any = dict(asked)
    for step in STEPS:
        with telemetry.step("retrieval", step.__name__, asked["namespace"]) as told:
            update = yield from step(state, settings)
            told(news(update))
        state |= update
    return state  # type: ignore[no-any-return]
