"""The retrieval graph: a question goes through search, rerank and construct, and comes out as a context.

The nodes are below: each makes values of the JSON of the state, takes its step, and makes JSON of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import TypeAdapter

from kg_memory.errors import InputError
from kg_memory.models.filters import parse_filter
from kg_memory.models.results import QueryTime
from kg_memory.retrieval.construct import construct_context
from kg_memory.retrieval.context.render import plain_lines
from kg_memory.retrieval.fuse import Hits
from kg_memory.retrieval.plugins import Instants
from kg_memory.retrieval.recipe import find_recipe
from kg_memory.retrieval.records import Plain, Ranked, Request, RetrievalContext, RetrievalInput, RetrievalState, Search
from kg_memory.retrieval.rerank import rank_candidates
from kg_memory.retrieval.routing import apply_route
from kg_memory.retrieval.scopes import find_in_scopes
from kg_memory.retrieval.time_window import find_time
from kg_memory.runtime.flow import Driver, Flow
from kg_memory.runtime.graph import Pipeline, make_node
from kg_memory.settings import Settings
from kg_memory.temporal.interval import restore_open_ends
from kg_memory.validation import validate_names

TYPES = {
    "question": (str, "a string"),
    "thread": (str, "a string"),
    "asker": (str, "a string"),
    "limit": (int, "a whole number"),
    "max_tokens": (int, "a whole number"),
}
SEARCH, RANKED = TypeAdapter(Search), TypeAdapter(Ranked)
"""They write values as plain JSON: the fields of these are keys of the state."""


def search(state: RetrievalState, settings: Settings) -> Flow[Plain]:  # noqa: ARG001 - steps have one shape
    """Find the time that the question is about, and candidates of each kind.

    Errors: `InputError` for input that is of no use.
    """
    request = decode_request(state)
    time = yield from find_time(request)
    results = yield from find_in_scopes(request, time)
    update: Plain = SEARCH.dump_python(results, mode="json")
    return update


def rerank(state: RetrievalState, settings: Settings) -> Flow[Plain]:
    """Bring the candidates of each kind into one order, and keep the best."""
    request = decode_request(state)
    ranked = yield from rank_candidates(request, decode_search(state), settings)
    update: Plain = RANKED.dump_python(ranked, mode="json", exclude=None if request.explain else {"stages"})
    return update


def construct(state: RetrievalState, settings: Settings) -> Flow[Plain]:
    """Read the best candidates, and write them down for a prompt."""
    request, ranked = decode_request(state), Ranked(state["ranked"], state.get("stages", {}))
    context = yield from construct_context(request, decode_search(state), ranked, settings)
    results = context.results.model_dump(mode="json")
    return {"results": results, "context": str(context), "lines": plain_lines(context)}


def decode_request(state: RetrievalState) -> Request:
    """Return the input of the graph, checked.

    Errors: `InputError`.
    """
    recipe, where = find_recipe(state.get("recipe")), parse_filter(state.get("where"))
    inputs: Plain = {field.name: state.get(field.name) for field in fields(Request)}
    inputs = {name: value for name, value in inputs.items() if value is not None}
    if "question" not in inputs:
        raise InputError("the input must have a question; set 'question'")
    for name, (kind, noun) in TYPES.items():
        value = inputs.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise InputError(f"{name} must be {noun}, got {value!r}")
    center = validate_names("center", inputs.get("center"), "the name of an entity")
    recipe = apply_route(recipe, inputs["question"])
    request = Request(**{**inputs, "recipe": recipe, "where": where, "center": center})
    return replace(request, limit=max(request.limit, 0))


def decode_search(state: RetrievalState) -> Search:
    """Return the results of the step search; its pairs are lists, as JSON has them."""
    instants, time = Instants(**state["instants"]), QueryTime(**state["time"])
    hits = {kind: Hits(**plain) for kind, plain in state["hits"].items()}
    unread, relevance, doubt = state.get("unread", ()), state["relevance"], state.get("doubt", "")
    degraded = state.get("degraded")
    return Search(instants, time, state["past"], hits, state["named"], unread, relevance, doubt, degraded=degraded)


STEPS = (search, rerank, construct)


def build(
    driver: Driver, settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    return make_pipeline(driver, settings).graph


def make_pipeline(driver: Driver, settings: Settings) -> Pipeline:
    """Return the steps, each of which the next one follows."""
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    for step in STEPS:
        graph.add_node(step.__name__, make_node(step, driver, settings, decode=decode_times))
    names = (START, *(step.__name__ for step in STEPS), END)
    for name, following in pairwise(names):
        graph.add_edge(name, following)
    return Pipeline("retrieval", graph)


def decode_times(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return *state* with exact open ends: Studio rounds them where it edits a state."""
    return restore_open_ends(state, ("instants",))
