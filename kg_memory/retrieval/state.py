"""What one question carries through the retrieval graph: small and JSON-plain, never an embedding."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Kind = Literal["facts", "entities", "communities", "episodes"]
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")

Scored = list[Any]
"""``[id, score]``."""


class RetrievalInput(TypedDict, total=False):
    """What to look for, and where; only `question` is needed.

    `as_of` asks what was true at that instant, `believed_at` what was believed then (ISO 8601; both now when left
    out). `thread` is the conversation in which the question is asked: what it last spoke of is found more easily.
    """

    question: str
    namespace: str
    limit: int | None
    max_tokens: int | None
    as_of: str | None
    believed_at: str | None
    thread: str | None


class Hits(TypedDict):
    """What each way of searching found of one kind, as ids with scores, best first."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]


class RetrievalState(RetrievalInput, total=False):
    """The input, and what each step adds to it.

    `instants` are as_of and believed_at in microseconds. `found` is a `kg_memory.model.Found`, dumped.
    """

    instants: dict[str, int]
    hits: dict[Kind, Hits]
    ranked: dict[Kind, list[Scored]]
    found: dict[str, Any]
    context: str
