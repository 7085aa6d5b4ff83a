"""What one question carries through the retrieval graph: small and JSON-plain, never an embedding."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from typing_extensions import TypedDict

from kg_memory.contexts import Context, setting
from kg_memory.forms import shown
from kg_memory.identity import DEFAULT_NAMESPACE

Kind = Literal["facts", "entities", "communities", "episodes"]
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")

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


class RetrievalContext(Context):
    """How this run ranks, where it is to differ from the memory's settings."""

    temporal_decay_rate: float = setting(
        "temporal_decay_rate",
        "How much newer facts and episodes are preferred; 0 is not at all.",
        "rerank",
        ge=0,
        le=10,
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
    `kg_memory.model.AskedTime`; `past` tells that it is over, so that summaries, which tell of now, do not answer.
    `found` is a `kg_memory.model.Found`, dumped.
    """

    instants: Instants
    asked: dict[str, Any]
    past: bool
    hits: dict[Kind, Hits]
    ranked: dict[Kind, list[Scored]]
    found: dict[str, Any]
    context: str
