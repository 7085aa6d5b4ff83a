"""The records that pass between the steps of ingestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Literal

from kg_memory.llm.prompts import answers
from kg_memory.llm.prompts.answers import StatedKind
from kg_memory.models.graph import Precision, Ruling, VerdictKind
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.temporal.truth import Period
from kg_memory.text.identity import name_of_speaker, spoken_line
from kg_memory.text.message_fields import parse_facts
from kg_memory.text.payloads import hide_payloads, place_in_original

JSON = dict[str, Any]
"""A record as JSON, or the parameters of a query."""
DECLARED = "fact"
"""The kind of an episode in which an application states facts itself."""
MOST_IN_EPISODE = 5000
"""The most entities, and the most facts, of one episode in all its pieces."""
MOST_AT_ONCE = 250
"""The most facts of an episode that one query writes: meanwhile the database answers nobody else."""
LIMIT_OF_EPISODE = "over the limit of one episode: split the episode to keep more"
LONG_CONTENT = 20_000
"""Characters from which a content is read in a thread, where an event loop runs."""

PERIOD = ("valid_at", "invalid_at", "said_at", "known_from", "precision", "end_precision")
"""The columns of a belief that make up its period."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """An episode as it is stored; `at_iso` is when it was said, by the clock of where it was said."""

    id: str
    kind: str
    content: str
    at: int
    speaker: str | None = None
    offset: int = 0
    created_at: int = 0
    trust: float = 1.0
    expires_at: int | None = None
    labels: Sequence[str] | None = None
    flags: Sequence[str] = ()
    thread_key: str = ""
    thread: str | None = None
    source: str | None = None
    source_id: str | None = None
    at_iso: str = ""

    @property
    def is_declared(self) -> bool:
        """Whether it states facts as triples, which no model reads."""
        return self.kind == DECLARED

    @property
    def speaker_name(self) -> str | None:
        """The speaker, if that is a name: anything else is kept and shown, but no entity is made of it."""
        return self.speaker if name_of_speaker(self.speaker) else None

    @property
    def line(self) -> str:
        """The episode as one line of conversation (Zep 2.1: ``speaker: utterance``); declared facts as sentences."""
        if self.is_declared:
            sentences = (str(row.get("sentence") or "") for row in parse_facts(self.content) or ())
            return " ".join(filter(None, sentences)) or self.content
        return spoken_line(self.speaker, self.text)

    @property
    def text(self) -> str:
        """The content as it is read: with placeholders for payloads. Pieces and facts have their places in this."""
        return hide_payloads(self.content, self.kind)

    def place(self, at: int, *, is_end: bool = False) -> int:
        """Return the place in the content of the character at *at* in `text`."""
        return place_in_original(self.content, self.kind, at, is_end=is_end)


NOT_RECEIVED = EpisodeRecord("", "message", "", 0)
"""The episode of a draft before it is received."""


@dataclass(frozen=True, slots=True)
class PreviousMessage:
    """A message of the same thread, as prompts show it before the episode."""

    speaker: str | None
    content: str
    at: str

    @property
    def line(self) -> str:
        """The message as one line of conversation."""
        return spoken_line(self.speaker, self.content)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the episode's content that is read at once; `start` is its place in it."""

    content: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as the episode names it.

    A bare noun that belongs to somebody has its owner's name in `name`, and the words of the episode in `words`. The
    name by which a speaker `introduces` themselves has the name of that speaker there.
    """

    name: str
    type: str
    words: str = ""
    introduces: str = ""

    @property
    def called(self) -> str:
        """The name in the episode's own words."""
        return self.words or self.name


@dataclass(frozen=True, slots=True)
class Loss:
    """An entity or a fact that a reading names and the graph does not take, or a part not read, and the reason."""

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResolvedEntity:
    """An entity that the episode mentions; `key` and `id` are those of the stored one, unless it `is_new`.

    `called` are the names by which this episode mentions it; where it is stored under another, `name` is not among
    them. A new one is surely another than those that it is
    `apart_from` (ids), which have its name; `doubt` is about one that it may be.
    """

    name: str
    type: str
    called: tuple[str, ...] = ()
    key: str = ""
    id: str = ""
    is_new: bool = True
    renamed: bool = False
    aliases: tuple[str, ...] = ()
    apart_from: tuple[str, ...] = ()
    doubt: Identity | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """The answer about a mention: the id of the known entity that it is the `same_as`, if any.

    `name` is the fullest name of the two, `confidence` how sure the answer is.
    """

    same_as: str | None
    name: str
    confidence: float = 1.0


class NamedFact(answers.StatedFact):
    """A fact read together with its entities, which it names; `piece` is the place of the piece that states it.

    `place` is its own in the answer, by which `rests_on` names others.
    """

    piece: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that the episode states, between entities given by their places in `Draft.entities`.

    `start` and `end` are the characters of the content that state it; `quoted` tells whether its quote stands there.
    `predicate` is the canonical one, `wording` the one that was read. `premises` are the ids of the facts of the same
    episode that it rests on. `declared` tells that a person or the settings
    say whether it is `single_valued`; else that is a guess. Times are microseconds since the epoch; `window_end` is the
    end of the period in which a coarse `valid_at` lies. `same_as` is the id of the known fact that says the same, and
    `restated` tells that it was said before the words that the known one has now. One that `corrects` takes the place
    of what was said of that before; one that is `refuted` was corrected before it came. The sentence of one that
    `is_triple` was made from its triple, so that any fact of the same triple says the same. The words of one that
    `replaces` tell that something is otherwise now. `support` is how well its
    words support it, from 0 to 1; that of one that is `weak` is too little for it to be told as true.
    """

    id: str
    subject: int
    subject_id: str
    predicate: str
    wording: str
    single_valued: bool | None
    declared: bool
    family: str | None
    objects: tuple[int, ...]
    object_ids: tuple[str, ...]
    sentence: str
    start: int
    end: int
    quoted: bool
    stated_from: str | None
    stated_until: str | None
    stated_at: int
    confidence: float
    edge_type: str
    kind: StatedKind = "state"
    premises: tuple[str, ...] = ()
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    window_end: int = OPEN_END
    same_as: str | None = None
    restated: bool = False
    corrects: bool = False
    refuted: bool = False
    is_triple: bool = False
    replaces: bool = False
    support: float | None = None
    weak: bool = False

    @property
    def stored_id(self) -> str:
        """The id under which it is stored: the known one's, where it says the same."""
        return self.same_as or self.id

    @property
    def begin(self) -> int:
        """When it begins: an undated one when it was said."""
        return self.stated_at if self.valid_at == OPEN_START else self.valid_at

    @property
    def only_ends(self) -> bool:
        """Whether all that it tells is an end in the past ("no longer")."""
        return self.valid_at == OPEN_START and self.invalid_at <= self.stated_at


@dataclass(frozen=True, slots=True)
class Span:
    """A period in which a known fact is believed to hold, in microseconds since the epoch."""

    valid_at: int
    invalid_at: int


@dataclass(frozen=True, slots=True)
class CandidateFact:
    """A known fact that a new one may repeat or contradict, by the words in which it was stated first.

    These were stated at `stated_at` by the episode `stated_by`, which arrived at `arrived_at`, for `valid_at` to
    `invalid_at`; `only_ends` tells that they state an end alone. `beliefs` are the periods in which it is believed to
    hold, `revision` how often facts about its subject were changed. `distance` is the cosine distance of its sentence
    from that of the new fact.
    """

    id: str
    subject: str
    subject_id: str
    predicate: str
    sentence: str
    objects: tuple[str, ...]
    object_ids: tuple[str, ...]
    stated_at: int
    stated_by: str
    only_ends: bool
    valid_at: int | None
    invalid_at: int | None
    beliefs: tuple[Span, ...] = ()
    kind: str | None = None
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    revision: int = 0
    arrived_at: int = 0
    distance: float = 0.0


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The relation of a new fact to a known one; `holds` is which of the two is to be believed."""

    verdict: VerdictKind
    confidence: float
    holds: Literal["new", "known"]
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A new fact, by its place, and a stored one; `verdict` is ``None`` where the two are unrelated."""

    new: int
    candidate: CandidateFact
    verdict: PairVerdict | None = None


@dataclass(frozen=True, slots=True)
class NewVerdict:
    """A verdict that a new fact ends or refutes an existing one, by their ids; see `kg_memory.models.graph.Review`."""

    id: str
    new: str
    existing: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    holds: Literal["new", "known"]
    reason: str

    def row(self) -> JSON:
        """Return the verdict as it is stored."""
        row = asdict(self)
        row["known"] = row.pop("existing")
        return row


@dataclass(frozen=True, slots=True)
class NewPredicate:
    """A predicate that was not in the vocabulary; see `kg_memory.models.graph.PredicateInfo`."""

    name: str
    canonical: str
    single_valued: bool | None
    origin: str = "learned"

    def row(self) -> JSON:
        """Return the predicate as it is stored."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Grounds:
    """The basis of a judgement: revisions of entities, and histories of the facts that new ones were compared with."""

    revisions: Mapping[str, int]
    histories: Sequence[Mapping[str, Any]] = ()


NO_GROUNDS = Grounds({})


@dataclass(frozen=True, slots=True)
class NewBelief:
    """A period in which a fact is believed to hold from now on, or is *proposed* to hold until a person decides.

    *cause* is the episode or decision because of which it is recorded.
    """

    fact: str
    id: str
    period: Period
    cause: str
    proposed: bool = False

    def to_row(self) -> JSON:
        """Return the parameters by which the belief is written."""
        period = dict(zip(PERIOD, astuple(self.period), strict=True))
        stored = {"id": self.id, "expired_at": OPEN_END, "cause": self.cause, **period}
        return {"fact": self.fact, "proposed": self.proposed, "belief": stored}


@dataclass(frozen=True, slots=True)
class Revision:
    """The changes to write: `touched` are the facts whose beliefs change, `closed` the ids of the beliefs that end.

    `ended` are the sentences of the facts that hold no longer, `waiting` of those that are in review from now on.
    """

    touched: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    beliefs: list[NewBelief] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def to_parameters(self) -> JSON:
        """Return the parameters by which queries write the revision."""
        beliefs = [belief.to_row() for belief in self.beliefs]
        return {"touched": self.touched, "closed": self.closed, "beliefs": beliefs}


def pick(record: Any, *names: str) -> JSON:
    """Return the fields of *record* called *names*."""
    return {name: getattr(record, name) for name in names}
