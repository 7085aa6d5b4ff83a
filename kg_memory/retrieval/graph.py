"""The LangGraph graph of retrieval: search, rerank and construct turn a question into a context.

The steps exchange the values of `kg_memory.retrieval.question`. LangGraph sees them as JSON: `encode` and `decode`
convert them to and from the states at the end of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from kg_memory.models.graph import Kind
from kg_memory.models.results import Context, Explanation, Line, SearchResults
from kg_memory.plugins import load_plugins
from kg_memory.retrieval.construct import construct
from kg_memory.retrieval.question import DEFAULT_LIMIT, DEFAULT_TOKENS, Found, Ranked, SearchQuery, Stage
from kg_memory.retrieval.ranking import Scored
from kg_memory.retrieval.rerank import rerank
from kg_memory.retrieval.search import search
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.graph import END, START, Pipeline, make_node
from kg_memory.settings import Settings
from kg_memory.text.tokenise import estimate_tokens
from kg_memory.validation import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

# Load these plug-ins at import time: a step must not read files on an event loop.
load_plugins("stages")

STEPS = (search, rerank, construct)


def build(driver: Driver[Any], settings: Settings) -> StateGraph[Any, RetrievalContext, Any, Any]:
    """Return the LangGraph graph that answers a search by the steps search, rerank and construct, not compiled yet."""
    return make_pipeline(driver, settings).graph


def make_pipeline(driver: Driver[Any], settings: Settings) -> Pipeline:
    """Return the LangGraph graph that answers a search, with functions that convert its state to and from JSON."""
    nodes = [make_node(step, driver, settings, decode=decode, encode=encode) for step in STEPS]
    edges = dict(pairwise((START, *(node.name for node in nodes), END)))
    schemas = (RetrievalState, RetrievalContext.of(settings), RetrievalInput)
    return Pipeline("retrieval", nodes, edges, schemas, decode, encode)


# States

Plain = dict[str, Any]


class RetrievalInput(TypedDict, total=False):
    """The input of the retrieval graph: a question, and where and how to search; only `question` is required.

    - `as_of`, `during`: facts true then, in ISO 8601 or words such as "last March". `believed_at`: facts known then.
    - `unreviewed`: include facts that wait for review. `thread`: the conversation in which the question is asked.
    - `recipe`: how to search and rank, a `Recipe` or its name. `where`: a filter of `kg_memory.models.filters`.
    - `center`: names of entities to search near. `asker`: the person whom "I" means. `template`: the context's format.
    """

    question: Required[Annotated[str, describe_key("The question to answer.", examples=["Where does Ann live?"])]]
    namespace: Annotated[str, describe_key("The namespace to search.", DEFAULT_NAMESPACE)]
    recall_from: Annotated[list[str], describe_key("Further namespaces to search.", [])]
    limit: Annotated[int | None, describe_key("The most results of each kind.", DEFAULT_LIMIT, minimum=1)]
    max_tokens: Annotated[int | None, describe_key("The most tokens of the context.", DEFAULT_TOKENS, minimum=1)]
    as_of: Annotated[
        str | None, describe_key("Facts that were true then: a date or words.", None, examples=["2023", "last March"])
    ]
    believed_at: Annotated[str | None, describe_key("Facts that were believed then: a date or words.", None)]
    during: Annotated[
        str | list[str | None] | None,
        describe_key(
            "Facts that were true in this period: words or dates.", None, examples=["2023", ["2022-01-01", None]]
        ),
    ]
    unreviewed: Annotated[bool, describe_key("Include facts that wait for review.", False)]
    thread: Annotated[str | None, describe_key("The conversation in which the question is asked.", None)]
    recipe: Annotated[str | Plain, describe_key("How to search and rank: a recipe's name or fields.", "default")]
    where: Annotated[Plain | None, describe_key("A filter that all results must pass.", None)]
    center: Annotated[str | list[str] | None, describe_key("An entity to search near, by name; or several.", None)]
    asker: Annotated[str | None, describe_key("Who asks: the name that 'I' stands for.", None, examples=["Ann"])]
    template: Annotated[str, describe_key("The format of the context.", "plain")]
    explain: Annotated[bool, describe_key("Explain the rank of each result, and why others were left out.", False)]


class RetrievalContext(RunConfig):
    """Settings that one run of the retrieval graph can override: `temporal_decay_rate` and `abstain_below`."""

    temporal_decay_rate: float = setting_field(
        "temporal_decay_rate",
        "How strongly newer facts and episodes are preferred; 0 means not at all.",
        "rerank",
        ge=0,
        le=10,
    )
    abstain_below: float = setting_field(
        "abstain_below",
        "If an answer is less probable than this, the context only says that the memory does not know.",
        "construct",
        ge=0,
        le=1,
    )


class RetrievalState(RetrievalInput, total=False):
    """The state of the retrieval graph: its input, and the results of its steps.

    From the step search: `instants` and `time` are the time of the question, for database queries and for users; `past`
    says whether it is over. `hits` are the results of each search as ``[id, score]``. `named` and `centers` are the ids
    of the entities that the question and `center` name. `unread` are the ids of found episodes (stored messages) that
    no model has read yet. `relevance` is the probability that the memory holds an answer, `evidence` the numbers from
    which it is computed, and `doubt` a reason why there may be no answer. `degraded` is the error of the embedding
    model, if it failed and so the search by meaning was skipped. `namespaces`: of several, those that hold data.

    From the step rerank: `ranked` has the best candidates as ``[id, score]``. With `explain` it has all candidates, and
    `stages` has their scores after each reranker.

    From the step construct: `results`, a `kg_memory.models.results.SearchResults`; `context`, the text; and its
    `lines`.
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
    namespaces: list[str]
    ranked: dict[Kind, list[Scored]]
    stages: dict[Kind, dict[str, list[Stage]]]
    results: Plain
    context: str
    lines: list[Plain]


_FOUND, _RANKED = TypeAdapter(Found), TypeAdapter(Ranked)


def encode(values: Mapping[str, Any]) -> Plain:
    """Convert the results of the graph's steps, such as `SearchQuery` or `Found`, to JSON for the LangGraph state."""
    state: Plain = {}
    for key, value in values.items():
        match value:
            case SearchQuery():
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
    """Convert the JSON values of the LangGraph state to the results of the graph's steps, the reverse of `encode`."""
    values: Plain = {"question": SearchQuery.parse(state), "namespace": state.get("namespace", DEFAULT_NAMESPACE)}
    if "hits" in state:
        values["found"] = _FOUND.validate_python(state)
    if "ranked" in state:
        values["ranked"] = _RANKED.validate_python(state)
    if "results" in state:
        values["context"] = _decode_context(state)
    return values


def _decode_context(state: Mapping[str, Any]) -> Context:
    results = SearchResults.model_validate(state["results"])
    # Only lines in the context have tokens; the others were left out.
    lines = [Line(**line) for line in state["lines"] if "tokens" in line]
    left_out = [Explanation(**line) for line in state["lines"] if "tokens" not in line]
    text = state["context"]
    return Context(text, results, tokens=estimate_tokens(text), lines=lines, left_out=left_out)


def _plain_lines(context: Context) -> list[Plain]:
    left_out = (line.model_dump(include={"kind", "id", "text", "left_out"}) for line in context.left_out)
    return [line.model_dump() for line in context.lines] + list(left_out)
