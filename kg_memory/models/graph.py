"""The values that users hold: frozen, validated, JSON-plain when dumped."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kg_memory.models.usage import StepUsage, Usage

Kind = Literal["facts", "entities", "communities", "episodes"]
"""What a memory holds, and a search finds."""
KINDS: tuple[Kind, ...] = ("facts", "entities", "communities", "episodes")
Precision = Literal["instant", "day", "week", "month", "season", "year"]
"""How exactly a date is known: it lies somewhere in the period of that length that begins with it."""
VerdictKind = Literal["duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated"]
Ruling = Literal["supersedes", "conflicts", "waiting", "refused", "both"]
"""What a verdict does: one fact ends the other, or one of them is not believed, or it waits for a person, or the
person refused the fact that waited, or lets both hold."""
ConflictStrategy = Literal["recency", "confidence", "model", "trust"]
"""Which of two facts that conflict is believed: the one stated last; or first the surer one, the model's choice or the
one from the better trusted source, and the one stated last where these leave it open (C54)."""
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
    """How far an episode got; in every state it is stored, and found by its words.

    `SAVED`: nothing was tried yet. `WORKING`: it is being read, or what read it died. `WAITING`: it is to be read
    later, for a reason. `DONE`: it has all that was derived from it. `SKIPPED`: it was not to be read. `FAILED`: it
    could not be.
    """

    SAVED = "saved"
    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Source(Value):
    """Where a fact was stated: the episode with its `trust`, and the characters ``content[start:end]`` of it."""

    episode: str
    source_id: str | None = None
    speaker: str | None = None
    at: datetime
    start: int
    end: int
    quote: str
    trust: float = 1.0


class Remark(Value):
    """What is to be known about a line: of a fact that it states, and what the episode `by` said of the same.

    ``ended``: it is not so any more, since `at`. ``contradicted``: it is not believed. ``contradicts``: it is, and the
    other is not. ``disputed``: a person is to decide. ``refused``: a person did not accept it.
    """

    kind: Literal["ended", "contradicted", "contradicts", "disputed", "refused"]
    sentence: str
    at: datetime | None = None
    precision: Precision = "instant"
    by: str | None = None
    by_source_id: str | None = None


class Episode(Value):
    """One raw input, never changed after it was saved.

    `at` is the reference time (when it was said), `created_at` when it was saved. `trust`, 0 to 1, is how far its
    source is believed. `reason` tells why it waits, failed or was skipped, `step` where it failed, `attempts` how often
    it was begun, and `plan` how it was read. `flags` name the patterns of prompt injection in it; see
    `kg_memory.ingestion.injection`. `remarks` tell what became of what it states; a search fills them in. From
    `expires_at` on no search finds it, and the next `evict` forgets it.
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
    remarks: tuple[Remark, ...] = ()
    score: float | None = None

    @property
    def withheld(self) -> bool:
        """Whether no context and no tool tells it to a model: it has flags, and nobody trusted it all the same."""
        return bool(self.flags) and self.status is not EpisodeStatus.DONE


class EpisodeInput(Value):
    """One message, text or JSON record to remember.

    `at` is the reference time: aware, or naive in UTC; now when it is left out.
    `source_id` is the source's own id: the same id in the same namespace is the same episode.
    `trust`, 0 to 1, is how far the source is believed; it counts where the conflict strategy is ``trust``.
    `expires_at` is when it is to be forgotten: `Settings.default_ttl` after it was saved, or never, if left out.
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

    `valid_at`/`invalid_at`: when it was so. `created_at`/`expired_at`: when it was believed. Intervals are half-open
    and ``None`` is an open end. `precision` and `end_precision` say how exactly the two ends of the first are known;
    where the start is not known at all, `known_from` is since when it is known to have been so. `objects` has one
    name, or several for a fact over more than two entities (a hyper-edge). `wording` is the predicate as it was read,
    `edge_type` what kind of link it is (semantic, causal, temporal, hierarchical, co_occurrence).
    `trust` is that of the best trusted of all episodes that state it. One that is not `reviewed` waits for a person and
    is not believed yet.
    """

    id: str
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
    reviewed: bool = True
    sources: tuple[Source, ...] = ()
    score: float | None = None


class Community(Value):
    """A cluster of strongly connected entities, and what it is about; a list fills in the names of its `members`.

    One of a higher `level` is a cluster of communities, and a list fills in the names of its `parts`. `joined` is how
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


class CommunityRefresh(Value):
    """What became of the communities: how many there are, `changed` were summarised anew, `removed` are no more.

    `levels` is how many levels they have. `drift` is the share of the entities that were in another community before,
    or in none, than they are now, where there were communities. `questions` is how many the model got, and `usage`
    what they took.
    """

    communities: int = 0
    levels: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    drift: float | None = None
    questions: int = 0
    usage: Usage = Usage()


class QueryTime(Value):
    """The time that a search asked about: what was so at some instant in ``[since, until)``, as `believed_at` then.

    `words` are those of the question that say so, if it was they and not a parameter. `reading` tells it in a sentence.
    """

    since: datetime | None = None
    until: datetime | None = None
    believed_at: datetime
    words: str | None = None
    reading: str


class Hit(Value):
    """The `rank` and the `score` at which a `retriever` (``words``, ``meaning``, ``graph``) found something."""

    retriever: str
    rank: int
    score: float


class Explanation(Value):
    """Why something stands where it does, or was left out.

    `text` is what it says: its line in the context, if it has one. `rank` is its place among the results of its kind,
    from 1, or ``None`` where it is not among them; `left_out` is why it is not, or why it has no line.
    `hits` tell which searches found it, `scores` what its score was after each step of ranking.
    """

    kind: Kind
    id: str
    text: str = ""
    rank: int | None = None
    hits: tuple[Hit, ...] = ()
    scores: tuple[tuple[str, float], ...] = ()
    left_out: str | None = None


class SearchResults(Value):
    """The results of a search, best first in each kind, and the `time` that it looked at.

    `relevance`, 0 to 1, is how likely the memory holds something about the question, if half of all questions have an
    answer; it tells an unknown subject, not a missing detail. A search that does not go by words has none.
    `explanations` has each result, and what was left out, if the search was to explain itself.
    """

    question: str
    time: QueryTime | None = None
    facts: tuple[Fact, ...] = ()
    entities: tuple[Entity, ...] = ()
    communities: tuple[Community, ...] = ()
    episodes: tuple[Episode, ...] = ()
    relevance: float | None = None
    explanations: tuple[Explanation, ...] = ()


class AddResult(Value):
    """The result of adding one episode.

    `new` is false when the same episode had been added before. `facts` are the sentences of what it states, `ended`
    those of the facts that hold no longer because of it, `pending` those that wait for review. `status` is how far it
    got: `error` says why it could not be read, and `skipped` why it was not to be. `steps` tell what each step took,
    in their order, and `usage` what all of them did.
    """

    episode: str
    new: bool
    status: EpisodeStatus = EpisodeStatus.DONE
    entities: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    error: str | None = None
    skipped: str | None = None
    steps: tuple[StepUsage, ...] = ()

    @property
    def usage(self) -> Usage:
        """What asking the model took in all."""
        return sum(self.steps, Usage())


class Stats(Value):
    """How much a namespace holds; `reviews` are facts that wait for a person.

    `waiting` are episodes not yet read to the end, `failed` those that could not be, `skipped` those not to be read.
    """

    episodes: int = 0
    waiting: int = 0
    failed: int = 0
    skipped: int = 0
    entities: int = 0
    facts: int = 0
    current_facts: int = 0
    reviews: int = 0
    communities: int = 0


class Review(Value):
    """A verdict about two facts: one that waits for a person, or one that took effect (D5).

    `kind` is the verdict, `confidence` and `reason` how sure the model was and why, and `ruling` what the verdict does
    now. `pending` is the fact that waits, and `existing` the one that it would end or refute. `preferred` is the one
    that the model would believe. `decided_by` is ``auto`` or the person who decided last, at `decided_at`.
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
    """What a person decided about a verdict, when and why; it is kept also when it was undone."""

    id: str
    decision: Literal["accept", "reject", "edit", "undo"]
    by: str
    at: datetime
    reason: str = ""
    ruling: Ruling


class Change(Value):
    """What came to be believed, or ceased to be, at the instant `at` of the system's clock.

    ``learned`` for a new fact, ``ended`` where its end was learned, ``corrected`` where other dates were, ``retracted``
    where it is not believed any more, ``restored`` where it is again. `before` and `after` are what was believed.
    """

    at: datetime
    kind: Literal["learned", "ended", "corrected", "retracted", "restored"]
    before: Fact | None = None
    after: Fact | None = None


class TimelineEvent(Value):
    """One event of a timeline: a fact began or ended `at` that time, or was said then where its start is unknown."""

    at: datetime
    precision: Precision = "instant"
    kind: Literal["began", "ended", "said"]
    fact: Fact


class PredicateInfo(Value):
    """A predicate of the vocabulary: `name` is kept as `canonical`.

    `origin` tells who said so: a person (``corrected``), the settings (``declared``), rules or a model (``learned``).
    """

    name: str
    canonical: str
    single_valued: bool | None = None
    origin: Literal["corrected", "declared", "rules", "learned"]


class EvictionResult(Value):
    """What went `at` that time to make room, or would in a dry run: how many `beliefs`, and the ids of the rest.

    `beliefs` are those that were closed before. `episodes` are those that had expired, and were forgotten. `texts` has
    what some of the ids stand for, but not of what is forgotten.
    """

    beliefs: int = 0
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    dry_run: bool = False
    at: datetime
    texts: dict[str, str] = {}
