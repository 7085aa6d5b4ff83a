"""What one episode carries through the ingestion graph: small and JSON-plain, never an embedding.

The input is flat: the fields of an `EpisodeInput` and the namespace.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class IngestionInput(TypedDict, total=False):
    """What to remember, and where; only `content` is needed."""

    content: str
    kind: Literal["message", "text", "json"]
    speaker: str | None
    at: str | None
    thread: str | None
    source: str | None
    source_id: str | None
    namespace: str


class Piece(TypedDict):
    """A stretch of the episode's content that is read at once; `start` is its place in it."""

    content: str
    start: int


class NewEntity(TypedDict, total=False):
    """An entity that the episode mentions; `key` and `id` are those of the known one, once resolved."""

    name: str
    type: str
    key: str
    id: str
    known: bool
    renamed: bool
    aliases: list[str]


class NewFact(TypedDict, total=False):
    """A fact that the episode states, between entities given by their place in `entities`.

    `start` and `end` are the characters of the content that state it, `quoted` whether its quote was found there.
    `same_as` is the id of the known fact that says the same, `contradicts` are the ids of the facts that it rules
    out. Times are microseconds since the epoch.
    """

    id: str
    subject: int
    predicate: str
    objects: list[int]
    sentence: str
    start: int
    end: int
    quoted: bool
    said_from: str | None
    said_until: str | None
    valid_at: int
    invalid_at: int
    confidence: float
    edge_type: str
    same_as: str | None
    contradicts: list[str]


class NewBelief(TypedDict):
    """A period in which a fact is believed to hold from now on."""

    id: str
    fact: str
    valid_at: int
    invalid_at: int
    said_at: int


class IngestionState(IngestionInput, total=False):
    """The input, and what each step adds to it.

    `touched` are the ids of the facts whose beliefs may have changed, `closed` those of the beliefs that ended,
    `ended` the sentences of the facts that hold no longer.
    """

    episode: dict[str, Any]
    new: bool
    done: bool
    previous: list[dict[str, Any]]
    pieces: list[Piece]
    entities: list[NewEntity]
    facts: list[NewFact]
    touched: list[str]
    closed: list[str]
    beliefs: list[NewBelief]
    ended: list[str]
    saved_at: int
