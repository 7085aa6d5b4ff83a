"""What one episode carries through the ingestion graph: small and JSON-plain, never an embedding.

The input is flat: the fields of an `EpisodeInput` and the namespace.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from kg_memory.beliefs import NewBelief
from kg_memory.model import Precision, Ruling, VerdictKind


class IngestionInput(TypedDict, total=False):
    """What to remember, and where; only `content` is needed."""

    content: str
    kind: Literal["message", "text", "json"]
    speaker: str | None
    at: str | None
    thread: str | None
    source: str | None
    source_id: str | None
    trust: float
    namespace: str


class Piece(TypedDict):
    """A stretch of the episode's content that is read at once; `start` is its place in it."""

    content: str
    start: int


class NewEntity(TypedDict, total=False):
    """An entity that the episode mentions; `key` and `id` are those of the known one, once resolved.

    `called` are the names by which this episode mentions it; where it is known under another, `name` is not among them.
    """

    name: str
    called: list[str]
    type: str
    key: str
    id: str
    known: bool
    renamed: bool
    aliases: list[str]


class NewFact(TypedDict, total=False):
    """A fact that the episode states, between entities given by their place in `entities`.

    `start` and `end` are the characters of the content that state it, `quoted` whether its quote was found there.
    `predicate` is the canonical one, `wording` the one that was read; whether it holds for one object at a time was
    `declared` by a person or the settings, or is a guess. `same_as` is the id of the known fact that says the same;
    one that `corrects` takes the place of what was said of that before, one that is `refuted` was corrected before it
    came, and one that is `retold` was said before the words that the known one has now. Times are microseconds since
    the epoch; `window_end` is the end of the period in which a coarse `valid_at` lies.
    """

    id: str
    subject: int
    subject_id: str
    predicate: str
    wording: str
    one_at_a_time: bool | None
    declared: bool
    family: str | None
    objects: list[int]
    object_ids: list[str]
    sentence: str
    start: int
    end: int
    quoted: bool
    said_from: str | None
    said_until: str | None
    said_at: int
    valid_at: int
    invalid_at: int
    precision: Precision
    end_precision: Precision
    window_end: int
    confidence: float
    edge_type: str
    same_as: str | None
    corrects: bool
    refuted: bool
    retold: bool


class NewVerdict(TypedDict):
    """What was found about a new fact and a known one, by their ids, and what it does; see `model.Review`."""

    id: str
    new: str
    known: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    holds: Literal["new", "known"]
    reason: str


class NewPredicate(TypedDict):
    """A predicate that was not in the vocabulary; see `model.PredicateInfo`."""

    name: str
    canonical: str
    one_at_a_time: bool | None
    origin: str


class IngestionState(IngestionInput, total=False):
    """The input, and what each step adds to it.

    `judged` is what the model said of each pair of a new fact and a known one, and `based_on` the revisions of the
    entities that it was based on. `touched`, `closed`, `beliefs`, `ended` and `waiting` are those of
    `kg_memory.beliefs.Revision`; `reopened` are the verdicts that wait again.
    """

    episode: dict[str, Any]
    new: bool
    done: bool
    previous: list[dict[str, Any]]
    pieces: list[Piece]
    entities: list[NewEntity]
    facts: list[NewFact]
    predicates: list[NewPredicate]
    judged: dict[str, Any]
    based_on: dict[str, int]
    verdicts: list[NewVerdict]
    rejudged: list[NewVerdict]
    reopened: list[str]
    touched: list[str]
    closed: list[str]
    beliefs: list[NewBelief]
    ended: list[str]
    waiting: list[str]
    saved_at: int
