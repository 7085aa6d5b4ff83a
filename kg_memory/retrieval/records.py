"""What one question carries through the retrieval graph: small and JSON-plain, never an embedding."""

from __future__ import annotations

from typing import Annotated, Any, Required

from typing_extensions import TypedDict

from kg_memory.models.graph import Kind
from kg_memory.runtime.config import Context, setting
from kg_memory.runtime.forms import shown
from kg_memory.validation import DEFAULT_NAMESPACE

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 2000

Scored = list[Any]
"""``[id, score]``."""


class RetrievalInput(TypedDict, total=False):
    """What to look for, and where; only `question` is needed.

    `as_of` asks what was true at that instant, `during` what was at some time between two, or in a period in words;
    `believed_at` what was believed then. All are ISO 8601 or plain words such as "last March". Where neither `as_of`
    nor `during` is given, time words in the question count. `unreviewed` takes in what waits for review. `thread` is
    the conversation in which the question is asked: what it last spoke of is found more easily.
    `recipe` is a `kg_memory.retrieval.recipe.Recipe` or its name, `where` a filter of `kg_memory.models.filters`,
    `center` the name of
    an entity near which to look, `template` how the context is written.
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


class Hits(TypedDict):
    """What each way of searching found of one kind, as ids with scores, best first."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]


class Instants(TypedDict):
    """What was so at some instant in ``[since, until)``, as believed at `believed_at`; all in microseconds.

    A `lenient` question takes in what may have been so already; `unreviewed` what waits for review.
    """

    since: int
    until: int
    believed_at: int
    lenient: bool
    unreviewed: bool


class RetrievalState(RetrievalInput, total=False):
    """The input, and what each step adds to it.

    `instants` are what queries are told of the time that is asked about, `asked` is the same as a dumped
    `kg_memory.models.graph.QueryTime`; `past` tells that it is over, so that summaries, which tell of now, do not
    answer.
    `named` are the ids of the entities that the question names, `relevance` is how likely anything here answers it.
    `parts` are, where it is to explain itself, the scores of each id after each step of ranking: ``[step, score]``, and
    `ranked` then has all that was found, not only the best. `found` is a `kg_memory.models.graph.SearchResults`,
    dumped.
    `lines` are
    those of the context.
    """

    instants: Instants
    asked: dict[str, Any]
    past: bool
    hits: dict[Kind, Hits]
    named: list[str]
    ranked: dict[Kind, list[Scored]]
    relevance: float | None
    parts: dict[Kind, dict[str, list[list[Any]]]]
    found: dict[str, Any]
    context: str
    lines: list[dict[str, Any]]
