"""The dataclasses that the steps of ingestion (storing a text and extracting its facts) pass to each other."""

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
from kg_memory.text.payloads import hide_payloads, original_offset

JSON = dict[str, Any]
"""A JSON object, or the parameters of a database query."""
DECLARED = "fact"
"""The kind of an episode that consists of facts declared by an application."""
MOST_IN_EPISODE = 5000
"""The most entities, and the most facts, of one episode."""
LIMIT_OF_EPISODE = "over the limit of one episode: split the episode to keep more"
LONG_CONTENT = 1_000
"""Characters above which an episode is processed in a thread, so that it does not block an event loop."""

PERIOD = ("valid_at", "invalid_at", "said_at", "known_from", "precision", "end_precision")
"""The columns of a stored belief for the fields of its `Period`, in the order of these fields."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """An episode as it is stored: a message, a text, a JSON record, or declared facts.

    Times are in microseconds. `offset`: the UTC offset of `at`, in minutes. `flags`: kinds of prompt injection found.
    """

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
        """Whether the content is a list of facts from an application, which no model has to read."""
        return self.kind == DECLARED

    @property
    def speaker_name(self) -> str | None:
        """The speaker's name; ``None`` if `speaker` cannot be a name, such as markup."""
        return self.speaker if name_of_speaker(self.speaker) else None

    @property
    def line(self) -> str:
        """The message as one line of conversation, "Ann: hello"; for declared facts, their sentences."""
        if self.is_declared:
            sentences = (str(row.get("sentence") or "") for row in parse_facts(self.content) or ())
            return " ".join(filter(None, sentences)) or self.content
        return spoken_line(self.speaker, self.text)

    @property
    def text(self) -> str:
        """The content with placeholders for base64 and other data: ``[data: image/png, 1.4 kB]``."""
        return hide_payloads(self.content, self.kind)

    def content_offset(self, offset: int, *, is_end: bool = False) -> int:
        """Convert *offset* in `text` (with placeholders for base64 data) to the same position in `content`."""
        return original_offset(self.content, self.kind, offset, is_end=is_end)


NOT_RECEIVED = EpisodeRecord("", "message", "", 0)
"""The episode of a draft before the step `receive`."""


@dataclass(frozen=True, slots=True)
class PreviousMessage:
    """An earlier message of the same conversation, which prompts show as context; `at` is ISO 8601 text."""

    speaker: str | None
    content: str
    at: str

    @property
    def line(self) -> str:
        """The message as one line of conversation: "Ann: hello"."""
        return spoken_line(self.speaker, self.content)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that is sent to the model in one prompt; `start` is its offset in the text, in characters."""

    content: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A person or thing that a text names, before it is matched with a stored entity.

    `name`: a common noun gets its owner ("Ann's pendant"), and `words` has the noun ("pendant").
    """

    name: str
    type: str
    words: str = ""
    introduces: str = ""

    @property
    def called(self) -> str:
        """The name as it occurs in the text: "pendant" if `name` is "Ann's pendant"."""
        return self.words or self.name


@dataclass(frozen=True, slots=True)
class Loss:
    """An entity, a fact or a part of a text that was not stored, and the reason why."""

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResolvedEntity:
    """An entity in a text, matched with a stored entity, or new (`is_new`).

    `called`: its names in the text. `doubt`: a stored entity that may be the same, for a person to decide.
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
    doubt: EntityMatch | None = None


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """The model's answer to which stored entity a mention is: `same_as` is its id, or None for a new one."""

    same_as: str | None
    name: str
    confidence: float = 1.0


class NamedFact(answers.FactByNames):
    """A fact as the model extracted it, with the names of its subject and objects.

    `piece`: the index of the part of the text that states it. `place`: the fact's index in the model's answer about
    that part; `rests_on` has the `place` of each fact on which it depends.
    """

    piece: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that the text of an episode states. Times are microseconds since the epoch.

    - `subject`, `objects`: indexes in `Draft.entities`; `subject_id`, `object_ids`: the entity ids
    - `predicate`: the canonical name; `wording`: the name as read; `family`: predicates that may contradict each other
    - `single_valued`: a subject has one object at a time; a guess unless `declared` by a person or the settings
    - `start`, `end`: the characters of the text that state the fact; `quoted`: its quote was found there
    - `stated_from`, `stated_until`: the dates as read; `valid_at`, `invalid_at`: the checked dates; `window_end`: the
      end of the period in which a coarse `valid_at` lies ("in May" -> 1 June)
    - `premises`: ids of the facts on which it depends; `replaces`: its words tell of a change ("now", "no longer")
    - `same_as`: id of the stored fact that says the same; `restated`: its wording replaces that of the stored fact
    - `corrects`: replaces earlier statements of the same fact; `refuted`: corrected by an earlier one
    - `goes_on`: its words say that it began in the past and still holds, as in "since 2020"
    - `is_triple`: the sentence was made from the triple, so equal triples are the same fact
    - `support`: how well the text supports it, 0 to 1; `weak`: too little to be presented as true
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
    goes_on: bool = False
    refuted: bool = False
    is_triple: bool = False
    replaces: bool = False
    support: float | None = None
    weak: bool = False

    @property
    def stored_id(self) -> str:
        """The id under which the fact is stored: that of the stored fact with the same meaning, else its own `id`."""
        return self.same_as or self.id

    @property
    def begin(self) -> int:
        """When the fact begins, in microseconds since the epoch; without a start date, the time of the message."""
        return self.stated_at if self.valid_at == OPEN_START else self.valid_at

    @property
    def only_ends(self) -> bool:
        """Whether the fact has an end in the past but no start, as in "Ann no longer works there"."""
        return self.valid_at == OPEN_START and self.invalid_at <= self.stated_at


@dataclass(frozen=True, slots=True)
class Span:
    """A period in which the memory considers a stored fact true; both ends are microseconds since the epoch."""

    valid_at: int
    invalid_at: int


@dataclass(frozen=True, slots=True)
class CandidateFact:
    """A stored fact that a new fact may repeat or contradict."""

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
    """The relation of a new fact to a stored one, such as "duplicate"; `holds` is the fact to believe in a conflict."""

    verdict: VerdictKind
    confidence: float
    holds: Literal["new", "known"]
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A pair of a new fact (`new`, an index in `Draft.facts`) and a stored fact, with their relation or None."""

    new: int
    candidate: CandidateFact
    verdict: PairVerdict | None = None


@dataclass(frozen=True, slots=True)
class NewVerdict:
    """A verdict (how two facts relate) to store: the fact *new* ends or contradicts the fact *existing* (ids)."""

    id: str
    new: str
    existing: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    holds: Literal["new", "known"]
    reason: str

    def row(self) -> JSON:
        """Return the verdict (how two facts relate) as query parameters: ``{"id": ..., "new": ..., "known": ...}``."""
        row = asdict(self)
        row["known"] = row.pop("existing")
        return row


@dataclass(frozen=True, slots=True)
class NewPredicate:
    """A predicate (relation such as ``LIVES_IN``) to store, as the model described it."""

    name: str
    canonical: str
    single_valued: bool | None
    origin: str = "learned"


@dataclass(frozen=True, slots=True)
class Grounds:
    """The data used to compare facts: change counters of entities, ``{"e1": 3}``, and rows of stored facts."""

    revisions: Mapping[str, int]
    histories: Sequence[Mapping[str, Any]] = ()


NO_GROUNDS = Grounds({})


@dataclass(frozen=True, slots=True)
class NewBelief:
    """A belief to store: a period in which the memory considers the fact with the id *fact* true."""

    fact: str
    id: str
    period: Period
    cause: str
    proposed: bool = False

    def to_row(self) -> JSON:
        """Return the belief (a period of a fact) as a dict for the query that stores it: ``{"fact": id, ...}``."""
        period = dict(zip(PERIOD, astuple(self.period), strict=True))
        stored = {"id": self.id, "expired_at": OPEN_END, "cause": self.cause, **period}
        return {"fact": self.fact, "proposed": self.proposed, "belief": stored}


@dataclass(frozen=True, slots=True)
class Revision:
    """Changes of stored beliefs: the changed facts, closed and new beliefs, and sentences that end or need a review."""

    touched: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    beliefs: list[NewBelief] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def to_parameters(self) -> JSON:
        """Return the query parameters that store the changes: `touched` and `closed` (ids), `beliefs` (rows)."""
        return {"touched": self.touched, "closed": self.closed, "beliefs": [each.to_row() for each in self.beliefs]}


def pick(record: Any, *names: str) -> JSON:
    """Return a dict of the attributes *names* of *record*: ``pick(fact, "id") -> {"id": fact.id}``."""
    return {name: getattr(record, name) for name in names}
