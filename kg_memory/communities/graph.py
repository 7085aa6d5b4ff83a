"""The LangGraph graph that refreshes communities: `detect -> compare -> summarise -> save`."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from kg_memory.communities.detect import detect
from kg_memory.communities.records import (
    CommunitiesContext,
    CommunitiesInput,
    CommunitiesState,
    EntityCluster,
    Row,
    Summary,
    Update,
)
from kg_memory.communities.summarise import summarise
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.ingestion.postings import to_terms
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Vector, embed, fetch, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.graph import make_node
from kg_memory.settings import Settings
from kg_memory.text import tokenise

TRIES = 5
"""The most attempts to save while other refreshes save too. A later attempt finds their communities unchanged."""


def build(
    driver: Driver[Any], settings: Settings
) -> StateGraph[CommunitiesState, CommunitiesContext, CommunitiesInput, CommunitiesState]:
    """Return the LangGraph graph that refreshes communities (clusters of entities), not yet compiled."""
    graph = StateGraph(CommunitiesState, CommunitiesContext.of(settings), input_schema=CommunitiesInput)
    for step in (detect, compare, summarise, save):
        graph.add_node(step.__name__, make_node(step, driver, settings, metered=True).as_runnable())
    graph.add_edge(START, "detect")
    graph.add_edge("detect", "compare")
    graph.add_conditional_edges("compare", _after_compare, {"summarise": "summarise", "unchanged": END})
    graph.add_edge("summarise", "save")
    graph.add_conditional_edges("save", _after_save, {"again": "detect", "done": END})
    return graph


def _after_compare(state: CommunitiesState) -> Literal["summarise", "unchanged"]:
    return "summarise" if state["groups"] or state["removed"] or state["strayed"] else "unchanged"


def _after_save(state: CommunitiesState) -> Literal["again", "done"]:
    return "again" if state["tries"] else "done"


def compare(state: CommunitiesState, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Step 2 of a refresh: find the detected communities that differ from the stored ones."""
    rows = yield from fetch(cypher.STORED)
    stored = {row["id"]: row["fingerprint"] for row in rows[0]["stored"]} if rows else {}
    groups = state["groups"]
    changed = [group for group in groups if state.get("full") or stored.get(group["id"]) != group["fingerprint"]]
    removed = sorted(stored.keys() - {group["id"] for group in groups})
    return {
        "groups": changed,
        "unchanged": len(groups) - len(changed),
        "removed": removed,
        "revision": rows[0]["revision"] if rows else 0,
        "summaries": [],
        "tries": state["tries"] if changed or removed or state["strayed"] else 0,
    }


def save(state: CommunitiesState, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Step 4 of a refresh: write all changes in one query, unless another refresh has saved since step 2.

    Errors: `DatabaseUnavailable`.
    """
    summaries = state["summaries"]
    vectors = yield from embed([summary["name"] for summary in summaries])
    rows = [_to_row(*parts) for parts in zip(state["groups"], summaries, vectors, strict=True)]
    written = yield from write(
        cypher.SAVE,
        communities=rows,
        members=[member for row in rows for member in row["members"]],
        removed=state["removed"],
        strayed=state["strayed"],
        revision=state["revision"],
        **NO_USAGE,
    )
    tries = 0 if written else state["tries"] + 1
    if tries == TRIES:
        raise DatabaseUnavailable(f"communities not saved: another refresh was first {TRIES} times; refresh again")
    return {"tries": tries}


def _to_row(group: EntityCluster, summary: Summary, vector: Vector) -> Row:
    terms = tokenise.count_terms(summary["summary"]) + tokenise.count_terms(summary["name"], NAME_WEIGHT)
    lowest = group["level"] == 0
    return {
        **summary,
        "level": group["level"],
        "embedding": vector,
        "n": terms.total(),
        "members": group["members"] if lowest else [],
        "parts": [] if lowest else group["members"],
        "terms": to_terms(terms),
    }
