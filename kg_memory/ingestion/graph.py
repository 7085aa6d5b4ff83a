"""The ingestion graph: the LangGraph nodes and edges that turn a text into stored entities and facts."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph

from kg_memory.errors import DatabaseError
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.date import date
from kg_memory.ingestion.dedupe import dedupe
from kg_memory.ingestion.extract import extract, reflect
from kg_memory.ingestion.facts import facts
from kg_memory.ingestion.interrupted import OUTAGES, mark_failed
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.receive import after_receive, receive
from kg_memory.ingestion.resolve import resolve
from kg_memory.ingestion.save import after_save, save
from kg_memory.ingestion.state import (
    IngestionContext,
    IngestionInput,
    IngestionState,
    decode,
    encode,
    find_answers,
    on_values,
)
from kg_memory.ingestion.summarise import summarise
from kg_memory.plugins import load_plugin
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.graph import Pipeline, make_node
from kg_memory.settings import Settings

STEPS = (receive, extract, reflect, resolve, facts, date, dedupe, invalidate, save, summarise)


def load_needed(settings: Settings) -> None:
    """Import the plug-ins that *settings* name. Call it before any step runs: an import would block the event loop."""
    load_plugin("checks", "support")
    if settings.note_linking:
        load_plugin("steps", "link")
    if settings.plan == "economy":
        load_plugin("plans", settings.plan)
    if settings.admission:
        load_plugin("admission", settings.admission)


def build(driver: Driver[Any], settings: Settings) -> StateGraph[Any, IngestionContext, Any, Any]:
    """Return the LangGraph graph of ingestion, not compiled yet; its nodes run sync and async."""
    return make_pipeline(driver, settings).graph


def make_pipeline(driver: Driver[Any], settings: Settings, *, received: bool = False) -> Pipeline:
    """Return the ingestion graph, with the functions that convert its state to and from JSON.

    *received*: leave out the steps `receive` and `summarise`, which the caller does itself.
    """
    load_needed(settings)
    how: dict[str, Any] = {"metered": True, "find_cache": find_answers, "decode": decode, "encode": encode}
    schema: type[Any] = IngestionState if received else IngestionInput
    graph = StateGraph(IngestionState, IngestionContext.of(settings), input_schema=schema)
    for step in STEPS:
        graph.add_node(step.__name__, make_node(on_values(step), driver, settings, on_failure=note_failure, **how))
    last = "link" if settings.note_linking else END
    if settings.note_linking:
        graph.add_node(last, make_node(on_values(load_plugin("steps", last)), driver, settings, **how))
        graph.add_edge(last, END)
    unless_done: dict[Hashable, str] = {"extract": "extract", "done": END}
    if received:
        graph.add_conditional_edges(START, after_receive, unless_done)
    else:
        graph.add_edge(START, "receive")
    graph.add_conditional_edges("receive", after_receive, unless_done)
    for step, following in pairwise(STEPS[1:-1]):
        graph.add_edge(step.__name__, following.__name__)
    saved: dict[Hashable, str] = {name: name for name in ("receive", "dedupe")}
    saved["done"] = last if received else "summarise"
    graph.add_conditional_edges("save", after_save, saved)
    graph.add_edge("summarise", last)
    return Pipeline("ingestion", graph, decode, encode)


def note_failure(state: Row, step: str, error: Exception, stumbled: bool) -> Flow[str | None]:  # noqa: FBT001
    """Mark the episode (stored message) in *state* as failed in the step *step*, and return its new status.

    *stumbled*: the step itself failed, not a server; the model's stored answers are then deleted. None: a database
    error, nothing was written.
    """
    if "episode" in state and not isinstance(error, DatabaseError):
        answers_kept = not stumbled or isinstance(error, OUTAGES)
        return (yield from mark_failed(state["episode"].id, step, error, answers_kept=answers_kept))
    return None
