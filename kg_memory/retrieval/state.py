"""What one question carries through the retrieval graph: small and JSON-plain, never an embedding."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Kind = Literal["facts", "entities", "communities", "episodes"]
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")

Scored = list[Any]
"""``[id, score]``."""


class RetrievalInput(TypedDict, total=False):
    """What to look for, and where; only `question` is needed.

    `as_of` asks what was true at that instant, `during` what was at some time between two, or in a period in words;
    `believed_at` what was believed then. All are ISO 8601 or plain words such as "last March". Where neither `as_of`
    nor `during` is given, time words in the question count. `unreviewed` takes in what waits for review. `thread` is
    the conversation in which the question is asked: what it last spoke of is found more easily.
    """

    question: str
    namespace: str
    limit: int | None
    max_tokens: int | None
    as_of: str | None
    believed_at: str | None
    during: str | list[str | None] | None
    unreviewed: bool
    thread: str | None


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
