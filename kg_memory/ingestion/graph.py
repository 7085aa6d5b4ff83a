"""The ingestion graph: all that an episode passes on its way in."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from kg_memory.ingestion.contradictions import judge
from kg_memory.ingestion.date import date
from kg_memory.ingestion.extract import extract
from kg_memory.ingestion.facts import facts
from kg_memory.ingestion.failure import note_failure
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.link import link
from kg_memory.ingestion.receive import receive
from kg_memory.ingestion.records import IngestionContext, IngestionInput, IngestionState
from kg_memory.ingestion.reflect import reflect
from kg_memory.ingestion.resolve import resolve
from kg_memory.ingestion.save import save
from kg_memory.ingestion.summarise import summarise
from kg_memory.runtime.flow import Driver
from kg_memory.runtime.graph import Course, Fork
from kg_memory.runtime.nodes import node
from kg_memory.settings import Settings

STEPS = (receive, extract, reflect, resolve, facts, date, judge, invalidate, save, summarise)


def build(driver: Driver, settings: Settings) -> StateGraph[IngestionState, IngestionContext, Any, IngestionState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    return course(driver, settings).graph


def course(driver: Driver, settings: Settings, *, received: bool = False) -> Course:
    """Return the steps and what follows each.

    One for what was *received* begins behind that step, and leaves the summaries to whoever runs it for many. The last
    step, `link`, is there only where the settings ask for it.
    """
    nodes = {step.__name__: node(step, driver, settings, metered=True, on_failure=note_failure) for step in STEPS}
    last = link.__name__ if settings.note_linking else END
    unless_done = Fork(_unless_done, {"extract": "extract", "done": END})
    after: dict[str, str | Fork] = {START: unless_done if received else "receive", "receive": unless_done}
    after |= {before.__name__: step.__name__ for before, step in pairwise(STEPS[1:-1])}
    after["save"] = Fork(_unless_forgotten, {"again": "receive", "done": last if received else "summarise"})
    after["summarise"] = last
    if settings.note_linking:
        nodes[last] = node(link, driver, settings, metered=True)
        after[last] = END
    schema: type[Any] = IngestionState if received else IngestionInput
    graph = StateGraph(IngestionState, IngestionContext.of(settings), input_schema=schema)
    return Course("ingestion", graph, nodes, after)


def _unless_done(state: IngestionState) -> Literal["extract", "done"]:
    return "done" if state["done"] else "extract"


def _unless_forgotten(state: IngestionState) -> Literal["again", "done"]:
    return "again" if state.get("again") else "done"
