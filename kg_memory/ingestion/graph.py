"""The ingestion graph: all that an episode passes on its way in."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from kg_memory.flow import Driver
from kg_memory.ingestion.date import date
from kg_memory.ingestion.extract import extract
from kg_memory.ingestion.facts import facts
from kg_memory.ingestion.failure import note_failure
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.judge import judge
from kg_memory.ingestion.link import link
from kg_memory.ingestion.receive import receive
from kg_memory.ingestion.reflect import reflect
from kg_memory.ingestion.resolve import resolve
from kg_memory.ingestion.save import save
from kg_memory.ingestion.state import IngestionContext, IngestionInput, IngestionState
from kg_memory.ingestion.summarise import summarise
from kg_memory.nodes import node
from kg_memory.settings import Settings

STEPS = (receive, extract, reflect, resolve, facts, date, judge, invalidate, save, summarise)


def build(
    driver: Driver, settings: Settings, *, received: bool = False
) -> StateGraph[IngestionState, IngestionContext, Any, IngestionState]:
    """Return the graph, to be compiled; its nodes run sync and async.

    One for what was *received* begins behind that step, and leaves the summaries to whoever runs it for many. The last
    step, `link`, is there only where the settings ask for it.
    """
    schema: type[Any] = IngestionState if received else IngestionInput
    graph = StateGraph(IngestionState, IngestionContext.of(settings), input_schema=schema)
    for step in STEPS:
        graph.add_node(step.__name__, node(step, driver, settings, metered=True, on_failure=note_failure))
    if received:
        graph.add_conditional_edges(START, _unless_done, {"extract": "extract", "done": END})
    else:
        graph.add_edge(START, "receive")
    graph.add_conditional_edges("receive", _unless_done, {"extract": "extract", "done": END})
    for before, after in pairwise(STEPS[1:-1]):
        graph.add_edge(before.__name__, after.__name__)
    last = END
    if settings.note_linking:
        last = link.__name__
        graph.add_node(last, node(link, driver, settings, metered=True))
        graph.add_edge(last, END)
    done = last if received else "summarise"
    graph.add_conditional_edges("save", _unless_forgotten, {"again": "receive", "done": done})
    graph.add_edge("summarise", last)
    return graph


def _unless_done(state: IngestionState) -> Literal["extract", "done"]:
    return "done" if state["done"] else "extract"


def _unless_forgotten(state: IngestionState) -> Literal["again", "done"]:
    return "again" if state.get("again") else "done"
