"""The communities graph: keeps the highest tier of the memory fresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from kg_memory.communities.compare import compare
from kg_memory.communities.detect import detect
from kg_memory.communities.records import CommunitiesContext, CommunitiesInput, CommunitiesState
from kg_memory.communities.save import save
from kg_memory.communities.summarise import summarise
from kg_memory.falkor.queries.communities import KEEP_ANSWER
from kg_memory.runtime.answer_cache import Durable
from kg_memory.runtime.flow import Driver
from kg_memory.runtime.nodes import node
from kg_memory.settings import Settings


def build(
    driver: Driver, settings: Settings
) -> StateGraph[CommunitiesState, CommunitiesContext, CommunitiesInput, CommunitiesState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    graph = StateGraph(CommunitiesState, CommunitiesContext.of(settings), input_schema=CommunitiesInput)
    for step in (detect, compare, summarise, save):
        graph.add_node(step.__name__, node(step, driver, settings, metered=True, store=beside_the_communities))
    graph.add_edge(START, "detect")
    graph.add_edge("detect", "compare")
    graph.add_conditional_edges("compare", _if_changed, {"summarise": "summarise", "unchanged": END})
    graph.add_edge("summarise", "save")
    graph.add_conditional_edges("save", _unless_others_came, {"again": "detect", "done": END})
    return graph


def beside_the_communities(state: Mapping[str, Any], model: str) -> Durable | None:
    """Keep the answers in the graph, where no reader looks for them, until all that was asked about is saved."""
    if "revision" not in state:
        return None
    return Durable(None, model, state.get("answers") or {}, KEEP_ANSWER, {"revision": state["revision"]})


def _if_changed(state: CommunitiesState) -> Literal["summarise", "unchanged"]:
    return "summarise" if state["groups"] or state["removed"] or state["strayed"] else "unchanged"


def _unless_others_came(state: CommunitiesState) -> Literal["again", "done"]:
    return "again" if state["tries"] else "done"
