"""The values that pass between the steps of retrieval, and the states of the graph that hold them as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Required

from typing_extensions import TypedDict

from kg_memory.models.filters import Filter
from kg_memory.models.graph import Kind, QueryTime
from kg_memory.retrieval.fuse import Hits, Retriever, Scored
from kg_memory.retrieval.plugins import Instants, Question
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.config import Context, setting
from kg_memory.runtime.forms import shown
from kg_memory.validation import DEFAULT_NAMESPACE

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 2000

Stage = tuple[str, float]
"""The name of a stage of ranking, and the score after it."""
Stages = Mapping[Kind, Mapping[str, list[Stage]]]
"""The stages of each candidate, by kind and id."""


@dataclass(frozen=True, slots=True)
class Request:
    """The input of the graph, checked."""

    question: str
    recipe: Recipe
    where: Filter | None
    limit: int
    """The number of results of each kind, at most."""
    max_tokens: int
    as_of: Any
    during: Any
    believed_at: Any
    """Times as users give them; `time_window` reads them."""
    unreviewed: bool
    thread: str | None
    center: str | None
    template: str | None
    explain: bool


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """The time that a question is about: for queries, and for the user; `past` says that it is over."""

    instants: Instants
    shown: QueryTime
    past: bool


@dataclass(frozen=True, slots=True)
class Search:
    """The results of the step search: the question with its time and names, and hits of each kind.

    `relevance` is how likely the memory holds an answer; a search without words does not know.
    """

    question: Question
    time: QueryTime
    hits: Mapping[Kind, Hits]
    relevance: float | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of each kind in one order, and, for an explanation, their scores after each stage."""

    candidates: Mapping[Kind, list[Scored]]
    stages: Stages


class RetrievalInput(TypedDict, total=False):
    """The question, and where to look; only `question` is needed.

    `as_of` asks what was true at that instant, `during` what was at some time between two, or in a period in words;
    `believed_at` what was believed then. All are ISO 8601 or plain words such as "last March". Where neither `as_of`
    nor `during` is given, time words in the question count. `unreviewed` takes in what waits for review. `thread` is
    the conversation in which the question is asked: what it last spoke of is found more easily.
    `recipe` is a `kg_memory.retrieval.recipe.Recipe` or its name, `where` a filter of `kg_memory.models.filters`,
    `center` the name of an entity near which to look, `template` how the context is written.
    """

    question: Required[Annotated[str, shown("What is to be found out.", examples=["Where does Ann live?"])]]
    namespace: Annotated[str, shown("Whose memory is asked.", DEFAULT_NAMESPACE)]
    limit: Annotated[int | None, shown("How many of each kind, at most.", DEFAULT_LIMIT, minimum=1)]
    max_tokens: Annotated[int | None, shown("How long the context may be.", DEFAULT_TOKENS, minimum=1)]
    as_of: Annotated[str | None, shown("What was true then; a date, or words.", None, examples=["2023", "last March"])]
    believed_at: Annotated[str | None, shown("What was believed then; a date, or words.", None)]
    during: Annotated[
        str | list[str | None] | None,
        shown("What was true at some time then; words, or two dates.", None, examples=["2023", ["2022-01-01", None]]),
    ]
    unreviewed: Annotated[bool, shown("Take in what waits for review.", False)]
    thread: Annotated[str | None, shown("The conversation in which it is asked.", None)]
    recipe: Annotated[str | dict[str, Any], shown("How it searches and ranks: a recipe's name or fields.", "default")]
    where: Annotated[dict[str, Any] | None, shown("What else must be so of what is found.", None)]
    center: Annotated[str | None, shown("The name of an entity near which to look.", None)]
    template: Annotated[str, shown("How the context is written.", "plain")]
    explain: Annotated[bool, shown("Tell why each line is there, and what was left out.", False)]


class RetrievalContext(Context):
    """How this run ranks, where it is to differ from the memory's settings."""

    temporal_decay_rate: float = setting(
        "temporal_decay_rate",
        "How much newer facts and episodes are preferred; 0 is not at all.",
        "rerank",
        ge=0,
        le=10,
    )
    abstain_below: float = setting(
        "abstain_below",
        "The context is left empty where the memory is less likely to hold an answer.",
        "construct",
        ge=0,
        le=1,
    )


PlainHits = dict[Kind, dict[Retriever, list[list[Any]]]]
PlainScores = dict[Kind, list[list[Any]]]


class RetrievalState(RetrievalInput, total=False):
    """The input, and the results of each step.

    search: `instants`, the time for queries; `time`, the same as a `kg_memory.models.graph.QueryTime`; `past`, whether
    it is over, so that summaries, which tell of now, do not answer; `hits` as ``[id, score]``; `named`, the ids of the
    entities that the question names; `relevance`.
    rerank: `ranked`, the best as ``[id, score]``; and to explain itself, all of them, with the scores of each id after
    each stage in `stages` as ``[stage, score]``.
    construct: `results`, a `kg_memory.models.graph.SearchResults`; `context`, the text; and its `lines`.
    """

    instants: dict[str, Any]
    time: dict[str, Any]
    past: bool
    hits: PlainHits
    named: list[str]
    relevance: float | None
    ranked: PlainScores
    stages: dict[Kind, dict[str, list[list[Any]]]]
    results: dict[str, Any]
    context: str
    lines: list[dict[str, Any]]
