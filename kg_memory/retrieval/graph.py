"""The retrieval graph: a question goes through search, rerank and construct, and comes out as a context.

The nodes are below: each makes values of the JSON of the state, takes its step, and makes JSON of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph

from kg_memory.errors import InputError
from kg_memory.models.filters import checked
from kg_memory.models.graph import QueryTime
from kg_memory.retrieval.construct import construct_context
from kg_memory.retrieval.context.render import plain_lines
from kg_memory.retrieval.fuse import Hits, Scored
from kg_memory.retrieval.plugins import Instants, Question
from kg_memory.retrieval.recipe import find_recipe
from kg_memory.retrieval.records import (
    DEFAULT_LIMIT,
    DEFAULT_TOKENS,
    Ranked,
    Request,
    RetrievalContext,
    RetrievalInput,
    RetrievalState,
    Search,
)
from kg_memory.retrieval.rerank import rank_candidates
from kg_memory.retrieval.search import find_candidates
from kg_memory.retrieval.time_window import find_time
from kg_memory.runtime.flow import Driver, Flow
from kg_memory.runtime.graph import Course
from kg_memory.runtime.nodes import node
from kg_memory.settings import Settings

TYPES = {
    "question": (str, "a string"),
    "thread": (str, "a string"),
    "center": (str, "a string"),
    "limit": (int, "a whole number"),
    "max_tokens": (int, "a whole number"),
}


def search(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Find the time that the question is about, and candidates of each kind.

    Errors: `InputError` for input that is of no use.
    """
    request = decode_request(state)
    time = yield from find_time(request)
    results = yield from find_candidates(request, time)
    return encode_search(results)


def rerank(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:
    """Bring the candidates of each kind into one order, and keep the best."""
    request = decode_request(state)
    ranked = yield from rank_candidates(request, decode_search(request, state), settings)
    update = {"ranked": {kind: _plain(scores) for kind, scores in ranked.candidates.items()}}
    if not request.explain:
        return update
    stages = {}
    for kind, by_id in ranked.stages.items():
        stages[kind] = {id_: _plain(scores) for id_, scores in by_id.items()}
    return {**update, "stages": stages}


def construct(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:
    """Read the best candidates, and write them down for a prompt."""
    request = decode_request(state)
    context = yield from construct_context(request, decode_search(request, state), decode_ranked(state), settings)
    results = context.found.model_dump(mode="json")
    return {"results": results, "context": str(context), "lines": plain_lines(context)}


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


def decode_request(state: RetrievalState) -> Request:
    """Return the input of the graph, checked.

    Errors: `InputError`.
    """
    recipe, where = find_recipe(state.get("recipe")), checked(state.get("where"))
    if state.get("question") is None:
        raise InputError("the input must have a question; set 'question'")
    for name, (kind, noun) in TYPES.items():
        value: Any = state.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise InputError(f"{name} must be {noun}, got {value!r}")
    limit, max_tokens = state.get("limit"), state.get("max_tokens")
    return Request(
        question=state["question"],
        recipe=recipe,
        where=where,
        limit=DEFAULT_LIMIT if limit is None else max(limit, 0),
        max_tokens=DEFAULT_TOKENS if max_tokens is None else max_tokens,
        as_of=state.get("as_of"),
        during=state.get("during"),
        believed_at=state.get("believed_at"),
        unreviewed=bool(state.get("unreviewed")),
        thread=state.get("thread"),
        center=state.get("center"),
        template=state.get("template"),
        explain=bool(state.get("explain")),
    )


def encode_search(search: Search) -> dict[str, Any]:
    """Return the results of the step search, as the state has them."""
    hits = {}
    for kind, by_kind in search.hits.items():
        words, meaning, graph = _plain(by_kind.words), _plain(by_kind.meaning), _plain(by_kind.graph)
        hits[kind] = {"words": words, "meaning": meaning, "graph": graph}
    return {
        "instants": search.question.instants.params,
        "time": search.time.model_dump(mode="json"),
        "past": search.question.past,
        "hits": hits,
        "named": list(search.question.named),
        "relevance": search.relevance,
    }


def decode_search(request: Request, state: RetrievalState) -> Search:
    """Return the results of the step search."""
    hits = {}
    for kind, by_kind in state["hits"].items():
        words, meaning, graph = by_kind["words"], by_kind["meaning"], by_kind["graph"]
        hits[kind] = Hits(_scores(words), _scores(meaning), _scores(graph))
    question = Question(
        text=request.question,
        instants=Instants(**state["instants"]),
        past=state["past"],
        thread=request.thread,
        center=request.center,
        named=tuple(state["named"]),
    )
    return Search(question, QueryTime(**state["time"]), hits, state["relevance"])


def decode_ranked(state: RetrievalState) -> Ranked:
    """Return the results of the step rerank."""
    stages: dict[Any, Any] = {}
    for kind, by_id in state.get("stages", {}).items():
        stages[kind] = {id_: _scores(scores) for id_, scores in by_id.items()}
    return Ranked({kind: _scores(scores) for kind, scores in state["ranked"].items()}, stages)


def _plain(scores: Iterable[Scored]) -> list[list[Any]]:
    return [list(scored) for scored in scores]


def _scores(plain: Iterable[Iterable[Any]]) -> list[Scored]:
    return [(id_, score) for id_, score in plain]
