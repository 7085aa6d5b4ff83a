"""The values that users hold: frozen, validated, JSON-plain when dumped."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

SOURCES = 5
"""How many sources of a fact are told, the earliest first."""


class Value(BaseModel):
    """A frozen value."""

    model_config = ConfigDict(frozen=True)


class EpisodeKind(StrEnum):
    """What an episode's content is (Zep 2.1)."""

    MESSAGE = "message"
    TEXT = "text"
    JSON = "json"


class EpisodeStatus(StrEnum):
    """How far an episode got: `SAVED` has its text, `DONE` has all that was derived from it too."""

    SAVED = "saved"
    DONE = "done"


class Source(Value):
    """Where a fact was stated: the episode, and the characters ``content[start:end]`` of it."""

    episode: str
    source_id: str | None = None
    speaker: str | None = None
    at: datetime
    start: int
    end: int
    quote: str


class Episode(Value):
    """One raw input, never changed after it was saved.

    `at` is the reference time (when it was said), `created_at` when it was saved.
    """

    id: str
    kind: EpisodeKind = EpisodeKind.MESSAGE
    content: str
    speaker: str | None = None
    source: str | None = None
    source_id: str | None = None
    thread: str | None = None
    at: datetime
    created_at: datetime
    status: EpisodeStatus = EpisodeStatus.SAVED
    score: float | None = None


class EpisodeInput(Value):
    """One message, text or JSON record to remember.

    `at` is the reference time: aware, or naive in UTC; now when it is left out.
    `source_id` is the source's own id: the same id in the same namespace is the same episode.
    """

    content: str
    kind: EpisodeKind = EpisodeKind.MESSAGE
    speaker: str | None = None
    at: datetime | None = None
    thread: str | None = None
    source: str | None = None
    source_id: str | None = None


class Entity(Value):
    """A person, place, thing or idea that episodes mention."""

    id: str
    name: str
    type: str = "Entity"
    aliases: tuple[str, ...] = ()
    summary: str = ""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    score: float | None = None


class Fact(Value):
    """One belief about the world, with its two clocks (Zep 2.2.3).

    `valid_at`/`invalid_at`: when it was so. `created_at`/`expired_at`: when it was believed.
    Intervals are half-open and ``None`` is an open end. `objects` has one name, or several
    for a fact over more than two entities (a hyper-edge).
    """

    id: str
    subject: str
    predicate: str
    objects: tuple[str, ...]
    sentence: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    created_at: datetime
    expired_at: datetime | None = None
    confidence: float = 1.0
    sources: tuple[Source, ...] = ()
    score: float | None = None


class Community(Value):
    """A cluster of strongly connected entities, and what it is about."""

    id: str
    name: str
    summary: str = ""
    score: float | None = None


class Found(Value):
    """What a search found, best first in each kind."""

    question: str
    facts: tuple[Fact, ...] = ()
    entities: tuple[Entity, ...] = ()
    communities: tuple[Community, ...] = ()
    episodes: tuple[Episode, ...] = ()


class Added(Value):
    """What became of one episode.

    `new` is false when the same episode had been added before. `facts` are the sentences of what it states, `ended`
    those of the facts that hold no longer because of it. `problem` says why it could not be read: it is saved, and
    found by its words, but nothing was derived from it.
    """

    episode: str
    new: bool
    entities: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    problem: str | None = None


class Stats(Value):
    """How much a namespace holds."""

    episodes: int = 0
    waiting: int = 0
    entities: int = 0
    facts: int = 0
    current_facts: int = 0
    communities: int = 0
