"""The values that a memory stores: episodes, entities, facts and communities, and the decisions about them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FieldSerializationInfo, field_serializer

from kg_memory.models.labels import LabelField, Labels, merge_labels

Kind = Literal["facts", "entities", "communities", "episodes"]
"""The kinds of things that a memory stores and a search returns."""
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")
Precision = Literal["instant", "day", "week", "month", "season", "year", "about", "by"]
"""The precision of a date: the time is somewhere in the period of that length that begins with the date.

``about``: near the date, as in "a few years ago". ``by``: at the date or before.
"""
VerdictKind = Literal[
    "duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated", "retracted", "admission"
]
"""The relation of two facts. Two are about one alone: ``retracted`` is a person's decision, and by ``admission`` a new
fact waits for one, see `Settings.admission`."""
Ruling = Literal["supersedes", "conflicts", "waiting", "refused", "both"]
"""The effect of a verdict: one fact ends the other, or one of them is not believed, or the new fact waits for review,
or the reviewer refused it, or accepted both."""
Disputes = Literal["serve", "withhold"]
"""The treatment of a fact that may contradict an earlier one: it is served beside that one, both marked as disputed, or
withheld until a person decides."""
ConflictStrategy = Literal["recency", "confidence", "model", "trust", "incumbent"]
"""The rule for which of two conflicting facts is believed: the one of the more trusted episode (``trust``), the more
confident one, the model's choice, or else the one stated last; by ``incumbent``, of equals the one stated first."""
UndatedStart = Literal["told", "reference"]
"""The start of a state that is told without one: none, or when it was said."""
FactKind = Literal["state", "event", "plan"]
"""A state holds over a time, an event takes place at one, and a plan is meant to happen or to begin."""
SOURCES = 5
"""The most sources of a fact that are returned, the earliest first."""


class Value(BaseModel):
    """A frozen value."""

    model_config = ConfigDict(frozen=True)


FOR_AGENTS, WITHHELD = {"for": "agents"}, "(withheld: it looks like a prompt injection)"
"""The context of a serialization for agents, and the text of withheld episodes in it."""
SESSION_SOURCE = "session summary"
"""The source of the summaries that `memory.episodes.summarise` keeps."""


class EpisodeKind(StrEnum):
    """The kind of an episode's content (Zep 2.1).

    `FACT` are facts that an application states as triples. `BLOCK` is a version of a text that an agent keeps and
    edits, and has in its prompt: it is stored, but not read into facts, and no search finds it.
    """

    MESSAGE = "message"
    TEXT = "text"
    JSON = "json"
    FACT = "fact"
    BLOCK = "block"


class EpisodeStatus(StrEnum):
    """The progress of an episode; in every state it is stored, and can be found by its words.

    `SAVED`: not yet read. `WORKING`: being read, or the process that read it died. `WAITING`: to be read later, for a
    reason. `DONE`: read, and everything derived from it is stored. `SKIPPED`: not to be read. `FAILED`: reading failed.
    """

    SAVED = "saved"
    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Source(Value):
    """A statement of a fact: the episode with its `trust` and `labels`, and the characters ``content[start:end]``.

    `source` is where it came from, such as an application, and `source_id` its id there.
    """

    episode: str
    source: str | None = None
    source_id: str | None = None
    speaker: str | None = None
    at: datetime
    start: int
    end: int
    quote: str
    trust: float = 1.0
    labels: LabelField = Field(default_factory=Labels)


class Remark(Value):
    """A note on an episode in search results: the present state of a fact that it states, because of episode `by`.

    ``ended``: no longer so, since `at`. ``contradicted``: not believed. ``contradicts``: believed, and the other fact
    is not. ``disputed``: may contradict another, until a person decides. ``refused``: a reviewer did not accept it.
    """

    kind: Literal["ended", "contradicted", "contradicts", "disputed", "refused"]
    sentence: str
    at: datetime | None = None
    precision: Precision = "instant"
    by: str | None = None
    by_source_id: str | None = None


class Asked(Value):
    """The question in the turn of a conversation just before an episode, which answers it."""

    episode: str
    source_id: str | None = None
    speaker: str | None = None
    question: str


class Episode(Value):
    """A raw input, never changed after it was saved.

    `at` is the reference time (when it was said), `created_at` when it was saved. `trust`, 0 to 1, is how far its
    source is believed. `reason` explains why it waits, failed or was skipped, `step` is where it failed, `attempts` how
    often it was begun, and `plan` how it was read. `flags` are the patterns of prompt injection in it; see
    `kg_memory.ingestion.filter`. `remarks` are set by searches: the present state of the facts that it states; and
    `asked` by contexts: the question just before it. From `expires_at` on no search returns it, and the next `evict`
    forgets it. `labels` are what the application noted beside it.
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
    reason: str | None = None
    step: str | None = None
    attempts: int = 0
    plan: str | None = None
    flags: tuple[str, ...] = ()
    trust: float = 1.0
    expires_at: datetime | None = None
    labels: LabelField = Field(default_factory=Labels)
    remarks: tuple[Remark, ...] = ()
    asked: Asked | None = None
    score: float | None = None

    @property
    def withheld(self) -> bool:
        """Whether contexts and tools leave it out: it has flags, and its source is not a trusted one."""
        return bool(self.flags) and self.status is not EpisodeStatus.DONE

    @field_serializer("content")
    def _content(self, content: str, info: FieldSerializationInfo) -> str:
        return WITHHELD if self.withheld and info.context == FOR_AGENTS else content


class EpisodeInput(Value):
    """A message, text or JSON record to remember.

    `at` is the reference time: aware, or naive in UTC; by default now.
    `source_id` is the source's own id: the same id in the same namespace is the same episode.
    `trust`, 0 to 1, is how far the source is believed; it counts for the conflict strategy ``trust``.
    `expires_at` is when it is to be forgotten: by default `Settings.default_ttl` after it was saved, or never.
    `labels` are for filters, such as ``{"agent": "support", "tags": ["vip"]}``; see `kg_memory.models.labels`.
    """

    content: str
    kind: EpisodeKind = EpisodeKind.MESSAGE
    speaker: str | None = None
    at: datetime | None = None
    thread: str | None = None
    source: str | None = None
    source_id: str | None = None
    trust: float = 1.0
    expires_at: datetime | None = None
    labels: LabelField = Field(default_factory=Labels)


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


class Premise(Value):
    """A fact on the way from a doubtful fact to the one that its doubt comes from: that has ended, or is `refuted`."""

    id: str
    sentence: str
    refuted: bool = False


class Fact(Value):
    """A belief about the world, with two time axes (Zep 2.2.3).

    `valid_at`/`invalid_at`: when it was so. `created_at`/`expired_at`: when it was believed. Intervals are half-open
    and None is an open end. `precision` and `end_precision` are those of the ends of the first; if its start is
    unknown, `known_from` is the earliest time at which it is known to be so. `objects` has one name, or several for a
    fact about more than two entities (a hyper-edge). `wording` is the predicate as it was read, `edge_type` the kind of
    link (semantic, causal, temporal, hierarchical, co_occurrence). `trust` is that of the most trusted episode that
    states it. A fact that is not `reviewed` waits for review and is not believed yet. The ids of other facts:
    `supersedes` those that this one ended, `superseded_by` those that ended it, and `disputed_by` those that it may
    contradict, until a person decides. `support`, 0 to 1, is how well the best of its quotes supports it; None if that
    is unknown. One that is not `confirmed` has no quote that supports it well enough. `voices` counts
    those who told it independently: speakers, and texts without one.

    A fact is doubtful while a premise of it has ended or is refuted and it was not stated again: `doubtful_since` the
    end, as exactly as `doubtful_precision` says, or since the refutation was believed. `doubtful_because` is the way to
    that premise, which is the last. `absent`: it has ended, and nothing is known in its place.
    """

    id: str
    kind: FactKind = "state"
    subject: str
    predicate: str
    objects: tuple[str, ...]
    sentence: str
    wording: str | None = None
    edge_type: str = "semantic"
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    known_from: datetime | None = None
    created_at: datetime
    expired_at: datetime | None = None
    confidence: float = 1.0
    trust: float = 1.0
    support: float | None = None
    confirmed: bool = True
    voices: int = 0
    reviewed: bool = True
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    disputed_by: tuple[str, ...] = ()
    doubtful_since: datetime | None = None
    doubtful_precision: Precision = "instant"
    doubtful_because: tuple[Premise, ...] = ()
    absent: bool = False
    last_said: datetime | None = None
    last_used: datetime | None = None
    score: float | None = None

    @property
    def labels(self) -> Labels:
        """The labels of its `sources`, together."""
        return merge_labels(source.labels for source in self.sources)

    @property
    def mark(self) -> str:
        """The words that contexts and lists put behind it, if any.

        They are ``not reviewed``, ``disputed``, or ``not confirmed by its words``.
        """
        if not self.reviewed:
            return "not reviewed"
        if self.disputed_by:
            return "disputed"
        return "" if self.confirmed else "not confirmed by its words"


class Consequence(Value):
    """A fact that rests on another one, in so many steps as `path` has facts; the last of them is `fact` itself."""

    fact: Fact
    path: tuple[Premise, ...]


class Community(Value):
    """A cluster of strongly connected entities and its summary; lists set the names of its `members`.

    A community of a higher `level` is a cluster of communities, and lists set the names of its `parts`. `joined` is how
    many of the members joined since it was summarised.
    """

    id: str
    name: str
    summary: str = ""
    level: int = 0
    members: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    joined: int = 0
    score: float | None = None


class Review(Value):
    """A verdict about two facts, which waits for a person or took effect (D5).

    `kind` is the verdict, `confidence` and `reason` how sure the model was and why, and `ruling` what the verdict does
    now. `pending` is the fact stated later, `existing` the one that it ends or refutes, or would. `preferred` is the
    one that the model would believe. `decided_by` is ``auto`` or the person who decided last, at `decided_at`. Of a
    retraction and of an admission both are the same fact; the `confidence` of an admission is the worth of the fact.
    """

    id: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    reason: str
    pending: Fact
    existing: Fact
    preferred: str | None = None
    created_at: datetime
    decided_by: str = "auto"
    decided_at: datetime | None = None
    decisions: tuple[Decision, ...] = ()


class Decision(Value):
    """A person's decision about a verdict; it is kept even after it was undone."""

    id: str
    decision: Literal["accept", "reject", "edit", "undo"]
    by: str
    at: datetime
    reason: str = ""
    ruling: Ruling


class Change(Value):
    """A change of beliefs `at` that time of the system's clock.

    ``learned``: a new fact. ``ended``: its end was learned. ``corrected``: its dates were. ``retracted``: it is no
    longer believed. ``restored``: it is believed again. ``doubtful``: a premise of it ended or was refuted. ``sure``:
    it is doubtful no more. `before` and `after` are the beliefs, with the sources that were known then. `cause` is the
    id of the episode or the decision by which beliefs changed; None for what changes doubt.
    """

    at: datetime
    kind: Literal["learned", "ended", "corrected", "retracted", "restored", "doubtful", "sure"]
    before: Fact | None = None
    after: Fact | None = None
    cause: str | None = None


class TimelineEvent(Value):
    """A fact that began or ended `at` that time; ``said`` is a statement whose start is unknown."""

    at: datetime
    precision: Precision = "instant"
    kind: Literal["began", "ended", "said"]
    fact: Fact


class PredicateInfo(Value):
    """A predicate of the vocabulary: `name` is stored as `canonical`.

    `origin` is who defined it: a person (``corrected``), the settings (``declared``), rules, or a model (``learned``).
    """

    name: str
    canonical: str
    single_valued: bool | None = None
    origin: Literal["corrected", "declared", "rules", "learned"]


class IdentityDecision(Value):
    """A decision, or a doubt, about whether two entities are one.

    `kind` is ``merge``, ``split``, or ``doubt``: a reading was not sure whether the new entity `second` is the known
    one `entity`. `state` is ``waiting`` for a doubt that nobody decided, ``done``, ``apart`` where a person keeps the
    two of a doubt apart, or ``undone``. `second` is None where it was merged away. `facts` is the number of facts that
    changed hands, and `latest` has the latest sentences about each of the two where a doubt waits.
    """

    id: str
    kind: Literal["merge", "split", "doubt"]
    state: Literal["waiting", "done", "apart", "undone"]
    entity: Entity
    second: Entity | None = None
    facts: int = 0
    confidence: float | None = None
    latest: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    created_at: datetime
    by: str | None = None
    at: datetime | None = None
    reason: str = ""
    undone_by: str | None = None
    undone_at: datetime | None = None
    undone_reason: str = ""
