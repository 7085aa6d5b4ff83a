"""The data types that a memory stores and returns: episodes (messages and texts), entities, facts and decisions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, FieldSerializationInfo, field_serializer

from kg_memory.models.labels import LabelField, Labels, merge_labels

Kind = Literal["facts", "entities", "communities", "episodes"]
"""The kinds of objects that a search returns."""
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")
Precision = Literal["instant", "day", "weekend", "week", "month", "season", "year", "about", "by"]
"""How exactly a date is known: the true time is in the period of that length that begins with the date.
``about``: near the date, as in "a few years ago". ``by``: at the date or before."""
PlanOutcome = Literal["fulfilled", "dropped", "replaced"]
"""What became of a plan: it was carried out, it was called off, or another plan took its place."""
OUTCOMES: tuple[PlanOutcome, ...] = get_args(PlanOutcome)
VerdictKind = Literal[
    "duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated", "retracted", "admission",
    PlanOutcome,
]  # fmt: skip
"""How a new fact relates to an existing one. Two kinds concern a single fact: ``retracted`` (a person's decision)
and ``admission`` (a new fact that waits for a decision, see `Settings.admission`). For the last three, see
`PlanOutcome`: the fact that `holds` is what became of the other one, a plan."""
Ruling = Literal["supersedes", "conflicts", "waiting", "refused", "both", PlanOutcome]
"""What a verdict does. ``supersedes``: the new fact ended the existing one; ``conflicts``: one of them is not believed;
``both``: both are; ``waiting``: a person must decide; ``refused``: a person rejected the new fact. With a
`PlanOutcome`, the plan ended when the other fact began."""
ENDINGS: tuple[Ruling, ...] = ("supersedes", *OUTCOMES)
"""The rulings by which one fact ended the other."""
ConflictStrategy = Literal["recency", "confidence", "model", "trust", "incumbent"]
"""Which of two conflicting facts is believed: that of the more trusted episode (``trust``), the more confident one,
the model's choice, or the one stated last; ``incumbent`` is ``trust``, but of equals the one stated first."""
FactKind = Literal["state", "event", "plan"]
"""A state holds for some time, an event happens at a time, and a plan is meant to happen or begin."""
SOURCES = 5
"""The most sources that a returned fact has, the earliest first."""


class Value(BaseModel):
    """Base class of the data types of a memory: immutable pydantic models."""

    model_config = ConfigDict(frozen=True)


FOR_AGENTS, WITHHELD = {"for": "agents"}, "(withheld: it looks like a prompt injection)"
"""The pydantic serialization context for agents, and the text that replaces withheld episodes in it."""
SESSION_SOURCE = "session summary"
"""The `source` of summaries that `memory.episodes.summarise` stores."""


class EpisodeKind(StrEnum):
    """The kind of an episode (a stored message, text or record).

    `FACT`: facts that an application declares. `BLOCK`: an agent's text in its prompt, not searched or read for facts.
    """

    MESSAGE = "message"
    TEXT = "text"
    JSON = "json"
    FACT = "fact"
    BLOCK = "block"


class EpisodeStatus(StrEnum):
    """The processing status of an episode (a stored message or text). In each status, a search by words finds it.

    `SAVED`: not processed yet. `WORKING`: being processed, or the process was killed. `WAITING`: to be processed later,
    see `Episode.reason`. `DONE`: processed. `SKIPPED`: not processed, on purpose. `FAILED`: processing failed.
    """

    SAVED = "saved"
    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Source(Value):
    """A quote that states a fact: `quote` is ``content[start:end]`` of the episode (message) with the id `episode`.

    `at`: when it was said. `source`, `source_id` (its id there), `trust` (0 to 1), `labels`: those of the message.
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
    """A note on a message in search results: a fact in it has changed, because of the message with the id `by`.

    `kind`: ``ended`` (no longer true, since `at`); ``fulfilled``, ``dropped`` or ``replaced`` (the outcome of a plan,
    at `at`); ``contradicted`` (not believed); ``contradicts`` (believed, unlike a contradicting fact); ``disputed`` (a
    person must decide); ``refused`` (a person rejected it).
    """

    kind: Literal["ended", PlanOutcome, "contradicted", "contradicts", "disputed", "refused"]
    sentence: str
    at: datetime | None = None
    precision: Precision = "instant"
    by: str | None = None
    by_source_id: str | None = None


class Asked(Value):
    """The question that a message answers, with the id and the speaker of the message that asks it."""

    episode: str
    source_id: str | None = None
    speaker: str | None = None
    question: str


class Episode(Value):
    """A stored message, text or record; its content never changes.

    `at`: when it was said. `created_at`: when it was saved. `trust`: 0 to 1, how far its source is believed. `reason`:
    why it waits, failed or was skipped. `step`: where processing failed. `attempts`: how often processing began.
    `plan`: the reading plan. `flags`: kinds of prompt injection found. `expires_at`: when searches stop returning it.
    `score`: set by searches, as are `remarks` (facts in it that have changed). `asked`: in a context, the
    message before it, if that is the question which it answers.
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
    namespace: str | None = None

    @property
    def withheld(self) -> bool:
        """Whether the content is hidden from models, as it looks like a prompt injection of an untrusted source."""
        return bool(self.flags) and self.status is not EpisodeStatus.DONE

    @field_serializer("content")
    def _content(self, content: str, info: FieldSerializationInfo) -> str:
        return WITHHELD if self.withheld and info.context == FOR_AGENTS else content


class EpisodeInput(Value):
    """A message, text or JSON record to add to a memory.

    `at`: when it was said; naive is UTC, None is now. `source_id`: its id in the system `source`; each id is stored
    once. `trust`: 0 to 1, how far the source is believed. `expires_at`: None means `Settings.default_ttl` after saving,
    or never. `labels`: values for filters, such as ``{"agent": "support", "tags": ["vip"]}``.
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
    """A person, place, organisation, thing or idea that episodes mention."""

    id: str
    name: str
    type: str = "Entity"
    aliases: tuple[str, ...] = ()
    summary: str = ""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    score: float | None = None
    namespace: str | None = None


class Premise(Value):
    """A fact from which another fact was derived. If it ends or is `refuted`, the other fact becomes doubtful."""

    id: str
    sentence: str
    refuted: bool = False


class Fact(Value):
    """A fact in one period, such as "Ann lives in Oslo" since 2023: when it is true, and when the memory believed it.

    `valid_at` and `invalid_at` are when it begins and ceases to be true; `created_at` and `expired_at` when the memory
    began and ceased to believe it. Ends are exclusive, and None is open. `precision` and `end_precision` say how
    exactly the first two are known. Without a known start, `known_from` is when it is first known to be true. `objects`
    has several names if it is about more than two entities. `predicate` is canonical ("WORKS_AT"), `wording` as
    extracted. `edge_type` is semantic, causal, temporal, hierarchical or co_occurrence. `trust` is that of its most
    trusted message, `voices` the number of independent sources. `support` (0 to 1; None: unknown) is how well its best
    quote supports it, `confirmed` whether that is enough. If not `reviewed`, it waits for a person and is not believed
    yet. Ids of facts: `supersedes` (ended by this one), `superseded_by`, `disputed_by` (a person must decide).

    A fact is doubtful if a fact from which it was derived has ended or was found wrong, and it was not stated since:
    `doubtful_since` is that time, and `doubtful_because` the path to that fact, the last. `absent`: it ended, and
    nothing is known to have replaced it. `outcome` is what became of a plan; then the plan holds from when it was
    stated until that. Without an outcome, `valid_at` is the time for which it is planned.
    """

    id: str
    kind: FactKind = "state"
    outcome: PlanOutcome | None = None
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
    namespace: str | None = None

    @property
    def labels(self) -> Labels:
        """The labels of all episodes in `sources`, merged."""
        return merge_labels(source.labels for source in self.sources)

    @property
    def mark(self) -> str:
        """A warning about the fact, for display; ``""`` if there is none.

        "not reviewed", "disputed" or, if the words of its message do not confirm it, "not confirmed by its words".
        """
        if not self.reviewed:
            return "not reviewed"
        if self.disputed_by:
            return "disputed"
        return "" if self.confirmed else "not confirmed by its words"


class Consequence(Value):
    """A `fact` derived from another fact in one or more steps; `path` has the facts of these steps, `fact` last."""

    fact: Fact
    path: tuple[Premise, ...]


class Community(Value):
    """A group of entities that share many facts, with a summary; from `level` 1 on, a group of smaller communities.

    `members`: names of entities. `parts`: names of smaller communities. Searches leave both empty. `joined`: how many
    members were added since the summary was written.
    """

    id: str
    name: str
    summary: str = ""
    level: int = 0
    members: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    joined: int = 0
    score: float | None = None
    namespace: str | None = None


class Review(Value):
    """A verdict (how two facts relate, such as a contradiction) that waits for a person or has taken effect.

    `kind`: the relation. `confidence` (0 to 1) and `reason` are those of the model. `ruling`: the current effect.
    `pending`: the fact stated later. `existing`: the fact that it may end or refute. `preferred`: the id of the fact
    that the model believes. `decided_by`: who decided last, or ``"auto"``; `decided_at`: when. A retraction or an
    admission (approval of a new fact) is about one fact, which is both `pending` and `existing`.
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
    """A person's decision about a verdict (how two facts relate), such as to accept it. It stays stored if undone."""

    id: str
    decision: Literal["accept", "reject", "edit", "undo"]
    by: str
    at: datetime
    reason: str = ""
    ruling: Ruling


class Change(Value):
    """A change, at the time `at`, of a fact that the memory believes.

    ``learned``: a new fact. ``ended``: its end was learned. ``corrected``: new dates. ``retracted``: no longer
    believed; ``restored``: believed again. ``doubtful``: a fact on which it depends ended or was refuted; ``sure``: it
    is no longer doubtful. `before`, `after`: the fact as believed then. `cause`: the id of the message or decision;
    None for ``doubtful`` and ``sure``.
    """

    at: datetime
    kind: Literal["learned", "ended", "corrected", "retracted", "restored", "doubtful", "sure"]
    before: Fact | None = None
    after: Fact | None = None
    cause: str | None = None

    @property
    def fact(self) -> Fact:
        """The fact after the change or, if it is not believed any more, before it."""
        return self.after or self.before  # type: ignore[return-value]  # a change has one of them


class PredicateInfo(Value):
    """A predicate that facts use. A synonym (`name` "RESIDES_IN") is stored as its `canonical` name ("LIVES_IN").

    `single_valued` says whether a subject has one object at a time. `origin` is who defined it: a person
    (``corrected``), the settings (``declared``), built-in rules, or a model (``learned``).
    """

    name: str
    canonical: str
    single_valued: bool | None = None
    origin: Literal["corrected", "declared", "rules", "learned"]


class IdentityDecision(Value):
    """A decision on whether two entities are the same person or thing, or an open question about that.

    `kind`: ``merge``, ``split`` or ``doubt`` (is the new entity `second` the same as `entity`?). `state`: ``waiting``
    (an open doubt), ``done``, ``apart`` (a person said that they differ) or ``undone``. `second`: None after a merge.
    `facts`: how many facts moved. `latest`: in a doubt, the last sentences about each entity.
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
