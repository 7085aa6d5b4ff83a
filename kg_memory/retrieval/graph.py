"""The retrieval graph: a question passes search, rerank and construct, and ends as a context.

The steps hand over the values of `question`. Only LangGraph sees them as JSON, by the states at the end of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Required

from langgraph.graph import END, START, StateGraph
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from kg_memory.models.graph import Kind
from kg_memory.models.results import Context, Explanation, Line, SearchResults
from kg_memory.plugins import load_plugins
from kg_memory.retrieval.construct import construct
from kg_memory.retrieval.question import DEFAULT_LIMIT, DEFAULT_TOKENS, Found, Question, Ranked, Stage
from kg_memory.retrieval.ranking import Scored
from kg_memory.retrieval.rerank import rerank
from kg_memory.retrieval.search import search
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.graph import Pipeline, make_node
from kg_memory.settings import Settings
from kg_memory.text.tokenise import estimate_tokens
from kg_memory.validation import DEFAULT_NAMESPACE

# Imported with this module, in a thread: a step must not read files on an event loop.
load_plugins("stages")

STEPS = (search, rerank, construct)


def build(
    driver: Driver[Any], settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    return make_pipeline(driver, settings).graph


def make_pipeline(driver: Driver[Any], settings: Settings) -> Pipeline:
    """Return the steps in their order."""
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    for step in STEPS:
        graph.add_node(step.__name__, make_node(step, driver, settings, decode=decode, encode=encode))
    names = (START, *(step.__name__ for step in STEPS), END)
    for name, following in pairwise(names):
        graph.add_edge(name, following)
    return Pipeline("retrieval", graph, decode, encode)


# States

Plain = dict[str, Any]
"""JSON."""


class RetrievalInput(TypedDict, total=False):
    """The question, and where to look; only `question` is needed.

    `as_of` asks what was true at that instant, `during` what was at some time between two, or in a period in words;
    `believed_at` what was believed then. All are ISO 8601 or plain words such as "last March". Where neither `as_of`
    nor `during` is given, what fits time words in the question comes first. `unreviewed` takes in what waits for
    review. `thread` is the conversation in which the question is asked: what it last spoke of is found more easily.
    `recipe` is a `kg_memory.retrieval.recipe.Recipe` or its name, `where` a filter of `kg_memory.models.filters`,
    `center` the name of an entity near which to look, or several, `asker` the name of who asks, whom "I" and "my" mean,
    and `template` how the context is written.
    """

    question: Required[Annotated[str, describe_key("What is to be found out.", examples=["Where does Ann live?"])]]
    namespace: Annotated[str, describe_key("Whose memory is asked.", DEFAULT_NAMESPACE)]
    limit: Annotated[int | None, describe_key("How many of each kind, at most.", DEFAULT_LIMIT, minimum=1)]
    max_tokens: Annotated[int | None, describe_key("How long the context may be.", DEFAULT_TOKENS, minimum=1)]
    as_of: Annotated[
        str | None, describe_key("What was true then; a date, or words.", None, examples=["2023", "last March"])
    ]
    believed_at: Annotated[str | None, describe_key("What was believed then; a date, or words.", None)]
    during: Annotated[
        str | list[str | None] | None,
        describe_key(
            "What was true at some time then; words, or two dates.", None, examples=["2023", ["2022-01-01", None]]
        ),
    ]
    unreviewed: Annotated[bool, describe_key("Take in what waits for review.", False)]
    thread: Annotated[str | None, describe_key("The conversation in which it is asked.", None)]
    recipe: Annotated[str | Plain, describe_key("How it searches and ranks: a recipe's name or fields.", "default")]
    where: Annotated[Plain | None, describe_key("What else must be so of what is found.", None)]
    center: Annotated[str | list[str] | None, describe_key("An entity near which to look, by name; or several.", None)]
    asker: Annotated[str | None, describe_key("Who asks: whom 'I' in the question means.", None, examples=["Ann"])]
    template: Annotated[str, describe_key("How the context is written.", "plain")]
    explain: Annotated[bool, describe_key("Explain why each line is there, and what was left out.", False)]


class RetrievalContext(RunConfig):
    """Settings of this run, where they are to differ from those of the memory."""

    temporal_decay_rate: float = setting_field(
        "temporal_decay_rate",
        "How much newer facts and episodes are preferred; 0 is not at all.",
        "rerank",
        ge=0,
        le=10,
    )
    abstain_below: float = setting_field(
        "abstain_below",
        "The context only says that the memory does not know, where it is less likely to hold an answer.",
        "construct",
        ge=0,
        le=1,
    )


class RetrievalState(RetrievalInput, total=False):
    """The input, and the results of each step.

    search: `instants`, the time for queries; `time`, the same as a `kg_memory.models.results.QueryTime`; `past`,
    whether it is over, so that summaries, which describe the present, do not answer; `hits` as ``[id, score]``;
    `named`, the ids of the entities that the question names; `centers`, those of its center; `unread`, those of
    episodes that are not read yet; `relevance`, by the `evidence`, with the `doubt`; `degraded`, why there was no
    search by meaning where the embedding model failed.
    rerank: `ranked`, the best as ``[id, score]``; and to explain itself, all of them, with the scores of each id after
    each stage in `stages` as ``[stage, score]``.
    construct: `results`, a `kg_memory.models.results.SearchResults`; `context`, the text; and its `lines`.
    """

    instants: Plain
    time: Plain
    past: bool
    hits: dict[Kind, dict[str, list[Scored]]]
    named: list[str]
    centers: list[str]
    unread: list[str]
    relevance: float | None
    doubt: str
    evidence: Plain | None
    degraded: str | None
    ranked: dict[Kind, list[Scored]]
    stages: dict[Kind, dict[str, list[Stage]]]
    results: Plain
    context: str
    lines: list[Plain]


_FOUND, _RANKED = TypeAdapter(Found), TypeAdapter(Ranked)


def encode(values: Mapping[str, Any]) -> Plain:
    """Return the *values* of the steps as the keys of a `RetrievalState`."""
    state: Plain = {}
    for key, value in values.items():
        match value:
            case Question():
                state |= value.as_state()
            case Found():
                state |= _FOUND.dump_python(value, mode="json")
            case Ranked():
                state |= _RANKED.dump_python(value, mode="json", exclude=None if value.stages else {"stages"})
            case Context():
                state |= {"results": value.results.model_dump(mode="json"), "context": str(value)}
                state["lines"] = _plain_lines(value)
            case _:
                state[key] = value
    return state


def decode(state: Mapping[str, Any]) -> Plain:
    """Return the values of the steps in a `RetrievalState`. Errors: `InputError` for a question that is not valid."""
    values: Plain = {"question": Question.parse(state)}
    if "namespace" in state:
        values["namespace"] = state["namespace"]
    if "hits" in state:
        values["found"] = _FOUND.validate_python(state)
    if "ranked" in state:
        values["ranked"] = _RANKED.validate_python(state)
    if "results" in state:
        values["context"] = _decode_context(state)
    return values


def _decode_context(state: Mapping[str, Any]) -> Context:
    results = SearchResults.model_validate(state["results"])
    lines = [Line(**line) for line in state["lines"] if "tokens" in line]
    left_out = [Explanation(**line) for line in state["lines"] if "tokens" not in line]
    text = state["context"]
    return Context(text, results, tokens=estimate_tokens(text), lines=lines, left_out=left_out)


def _plain_lines(context: Context) -> list[Plain]:
    left_out = (line.model_dump(include={"kind", "id", "text", "left_out"}) for line in context.left_out)
    return [line.model_dump() for line in context.lines] + list(left_out)
