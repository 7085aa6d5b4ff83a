"""The ingestion graph: the LangGraph nodes and edges that turn a text into stored entities and facts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

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
from kg_memory.runtime.graph import END, START, Branch, Pipeline, make_node
from kg_memory.settings import Settings

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

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

    *received*: leave out the steps `receive` and `summarise`, because the caller runs them.
    """
    load_needed(settings)
    how: dict[str, Any] = {"metered": True, "find_cache": find_answers, "decode": decode, "encode": encode}
    nodes = [make_node(on_values(step), driver, settings, on_failure=note_failure, **how) for step in STEPS]
    edges: dict[str, str | Branch] = dict(pairwise(node.name for node in nodes))
    last = "link" if settings.note_linking else END
    if settings.note_linking:
        nodes.append(make_node(on_values(load_plugin("steps", last)), driver, settings, **how))
        edges[last] = END
    edges["receive"] = after_receive, {"extract": "extract", "done": END}
    edges[START] = edges["receive"] if received else "receive"
    edges["save"] = after_save, {"receive": "receive", "dedupe": "dedupe", "done": last if received else "summarise"}
    edges["summarise"] = last
    schemas = (IngestionState, IngestionContext.of(settings), IngestionState if received else IngestionInput)
    return Pipeline("ingestion", nodes, edges, schemas, decode, encode)


def note_failure(state: Row, step: str, error: Exception, stumbled: bool) -> Flow[str | None]:  # noqa: FBT001
    """Mark the episode in *state* as failed at *step* with *error*; return its new status.

    None, and nothing is written, if the database failed. *stumbled*: the step's own code failed, not a server, so the
    stored answers of the model are deleted.
    """
    if "episode" in state and not isinstance(error, DatabaseError):
        answers_kept = not stumbled or isinstance(error, OUTAGES)
        return (yield from mark_failed(state["episode"].id, step, error, answers_kept=answers_kept))
    return None
