"""The values that pass between the steps of retrieval, and the states of the graph that hold them as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Required

from typing_extensions import TypedDict

from kg_memory.models.filters import Filter
from kg_memory.models.graph import Kind
from kg_memory.models.results import QueryTime
from kg_memory.retrieval.answerable import EMPTY, Evidence
from kg_memory.retrieval.fuse import Hits, Scored
from kg_memory.retrieval.plugins import Instants
from kg_memory.retrieval.recipe import DEFAULT, Recipe
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.validation import DEFAULT_NAMESPACE

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 2000

Stage = tuple[str, float]
"""The name of a stage of ranking, and the score after it."""
Stages = Mapping[Kind, Mapping[str, list[Stage]]]
"""The stages of each candidate, by kind and id."""


@dataclass(frozen=True, slots=True)
class Request:
    """The input of the graph, checked; times are as users give them, and `limit` is the most results of each kind."""

    question: str
    recipe: Recipe = DEFAULT
    where: Filter | None = None
    limit: int = DEFAULT_LIMIT
    max_tokens: int = DEFAULT_TOKENS
    as_of: Any = None
    during: Any = None
    believed_at: Any = None
    unreviewed: bool = False
    thread: str | None = None
    center: tuple[str, ...] = ()
    asker: str | None = None
    template: str | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """The time that a question is about: for queries, and for the user; `past` says that it is over, and filters."""

    instants: Instants
    time: QueryTime
    past: bool


@dataclass(frozen=True, slots=True)
class Search(QuestionTime):
    """The results of the step search: the time, and the hits of each kind.

    `named` are the ids of the entities that the question names; `unread` those of episodes that are saved and not read
    yet, which are found by their words alone; `relevance` is how likely the memory holds an answer, by the `evidence`,
    which a search without words does not know, and `doubt` is why it may hold none. `degraded` is why it did not search
    by meaning, where the embedding model failed.
    """

    hits: Mapping[Kind, Hits]
    named: Sequence[str] = ()
    unread: Sequence[str] = ()
    relevance: float | None = 0.0
    doubt: str = EMPTY
    evidence: Evidence | None = None
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of each kind in one order, and, for an explanation, their scores after each stage."""

    ranked: Mapping[Kind, list[Scored]]
    stages: Stages = field(default_factory=dict)


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
    whether it is over, so that summaries, which tell of now, do not answer; `hits` as ``[id, score]``; `named`, the ids
    of the entities that the question names; `unread`, those of episodes that are not read yet; `relevance`, by the
    `evidence`, with the `doubt`; `degraded`, why there was no search by meaning where the embedding model failed.
    rerank: `ranked`, the best as ``[id, score]``; and to explain itself, all of them, with the scores of each id after
    each stage in `stages` as ``[stage, score]``.
    construct: `results`, a `kg_memory.models.results.SearchResults`; `context`, the text; and its `lines`.
    """

    instants: Plain
    time: Plain
    past: bool
    hits: dict[Kind, dict[str, list[Scored]]]
    named: list[str]
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
