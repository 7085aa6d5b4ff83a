"""The records that pass between the steps of ingestion, and the codec that keeps the graph's state JSON-plain.

A step reads a `Draft` and returns the records that it adds. The state that LangGraph checkpoints and Studio shows has
the same records as JSON; no embedding is ever in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from operator import add
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import TypedDict

from kg_memory.ingestion.revise import Revision
from kg_memory.llm import prompts
from kg_memory.models.graph import ConflictStrategy, Precision, Ruling, VerdictKind
from kg_memory.runtime import config
from kg_memory.runtime.config import setting
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.forms import shown
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.validation import DEFAULT_NAMESPACE

T = TypeVar("T")
Decode = Callable[[Any], Any]
MOST_IN_EPISODE = 5000
"""How many entities, and how many facts, one episode may have in all its pieces: one query writes them."""
log = logging.getLogger("kg_memory.ingestion")


class IngestionInput(TypedDict, total=False):
    """What to remember, and where; only `content` is needed."""

    content: Required[
        Annotated[str, shown("What is to be remembered: words, or a JSON record.", examples=["I live in Oslo now."])]
    ]
    kind: Annotated[Literal["message", "text", "json"], shown("What the content is.", "message")]
    speaker: Annotated[str | None, shown("Who said it.", None, examples=["Ann"])]
    at: Annotated[str | None, shown("When it was said, in ISO 8601; now if left out.", None, examples=["2024-05-01"])]
    thread: Annotated[str | None, shown("The conversation that it belongs to.", None)]
    source: Annotated[str | None, shown("Where it comes from.", None, examples=["slack"])]
    source_id: Annotated[str | None, shown("Its id there; the same id is the same episode, stored once.", None)]
    trust: Annotated[float, shown("How far the source is believed, from 0 to 1.", 1.0, minimum=0, maximum=1)]
    expires_at: Annotated[str | None, shown("When it is to be forgotten, in ISO 8601; never if left out.", None)]
    namespace: Annotated[str, shown("Whose memory it goes into.", DEFAULT_NAMESPACE)]
    saved_id: Annotated[
        str | None, shown("Its id, if it was saved before: it is read only if it is still there.", None)
    ]


class IngestionContext(config.Context):
    """How this run reads, where it is to differ from the memory's settings and prompts."""

    instructions: str = setting("instructions", "Further wishes for what is extracted.", "extract", "facts")
    previous_messages: int = setting("previous_messages", "How many earlier messages are seen.", "receive", ge=0, le=50)
    plan: Literal["economy", "standard", "thorough"] = setting("plan", "How much is asked about an episode.", "extract")
    read_all: bool = setting("read_all", "Whether also greetings and the like are read.", "extract")
    reflections: int = setting("reflections", "How often it looks for what it missed.", "reflect", ge=0, le=5)
    auto_threshold: float = setting(
        "auto_threshold", "Confidence from which a verdict takes effect at once.", "dedupe", "invalidate", ge=0, le=1
    )
    review_threshold: float = setting(
        "review_threshold", "Confidence from which a verdict waits for review.", "invalidate", ge=0, le=1
    )
    conflict_strategy: ConflictStrategy = setting(
        "conflict_strategy", "Which of two facts that conflict is believed.", "invalidate"
    )
    extract_message_prompt: str = config.prompt(prompts.EXTRACT_MESSAGE, "extract", "How a message is read.")
    extract_text_prompt: str = config.prompt(prompts.EXTRACT_TEXT, "extract", "How a text is read.")
    extract_json_prompt: str = config.prompt(prompts.EXTRACT_JSON, "extract", "How a JSON record is read.")
    read_prompt: str = config.prompt(prompts.READ, "extract", "How entities and facts are read together.")
    reflect_prompt: str = config.prompt(prompts.REFLECT, "reflect", "How the entities are looked through.")
    resolve_prompt: str = config.prompt(prompts.RESOLVE, "resolve", "How known entities are recognised.")
    facts_prompt: str = config.prompt(prompts.FACTS, "facts", "How the facts are read.")
    predicates_prompt: str = config.prompt(prompts.PREDICATES, "facts", "How a new predicate gets its name.")
    judge_prompt: str = config.prompt(prompts.JUDGE, "dedupe", "How new facts are compared with known ones.")
    summarise_prompt: str = config.prompt(prompts.SUMMARISE, "summarise", "How entities are summarised.")


# Records


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
    flags: Sequence[str] = ()
    thread_key: str = ""
    thread: str | None = None
    source: str | None = None
    source_id: str | None = None
    at_iso: str = ""

    @property
    def line(self) -> str:
        """The episode as one line of conversation (Zep 2.1: ``speaker: utterance``)."""
        return f"{self.speaker}: {self.content}" if self.speaker else self.content


@dataclass(frozen=True, slots=True)
class PreviousMessage:
    """A message of the same thread, as prompts show it before the episode."""

    speaker: str | None
    content: str
    at: str

    @property
    def line(self) -> str:
        """The message as one line of conversation."""
        return f"{self.speaker}: {self.content}" if self.speaker else self.content


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the episode's content that is read at once; `start` is its place in it."""

    content: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as the episode names it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ResolvedEntity:
    """An entity that the episode mentions; `key` and `id` are those of the stored one, unless it `is_new`.

    `called` are the names by which this episode mentions it; where it is stored under another, `name` is not among
    them. One that was `evicted` comes back once it is mentioned.
    """

    name: str
    type: str
    called: tuple[str, ...] = ()
    key: str = ""
    id: str = ""
    is_new: bool = True
    renamed: bool = False
    aliases: tuple[str, ...] = ()
    evicted: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """Which of the known entities `among` which it was asked about (ids) an entity is the `same_as`, if any.

    `name` is the fullest name of the two.
    """

    among: tuple[str, ...]
    same_as: str | None
    name: str


@dataclass(frozen=True, slots=True)
class NamedFact:
    """A fact read together with its entities, which it names; `piece` is the place of the piece that states it."""

    piece: int
    subject: str
    predicate: str
    objects: tuple[str, ...]
    sentence: str
    quote: str
    valid_at: str | None
    invalid_at: str | None
    edge_type: str
    confidence: float


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that the episode states, between entities given by their places in `Draft.entities`.

    `start` and `end` are the characters of the content that state it; `quoted` tells whether its quote stands there.
    `predicate` is the canonical one, `wording` the one that was read. `declared` tells that a person or the settings
    say whether it is `single_valued`; else that is a guess. Times are microseconds since the epoch; `window_end` is the
    end of the period in which a coarse `valid_at` lies. `same_as` is the id of the known fact that says the same, and
    `restated` tells that it was said before the words that the known one has now. One that `corrects` takes the place
    of what was said of that before; one that is `refuted` was corrected before it came.
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
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    window_end: int = OPEN_END
    same_as: str | None = None
    restated: bool = False
    corrects: bool = False
    refuted: bool = False

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

    These were stated by the episode `stated_by` at `stated_at`, for `valid_at` to `invalid_at`; `only_ends` tells that
    they state an end alone. `beliefs` are the periods in which it is believed to hold.
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


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a new fact has to do with a known one; `holds` is which of the two is to be believed."""

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
    """What a new fact does to an existing one, by their ids; see `kg_memory.models.graph.Review`."""

    id: str
    new: str
    existing: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    holds: Literal["new", "known"]
    reason: str

    def row(self) -> dict[str, Any]:
        """Return the verdict as it is stored."""
        row = to_plain(self)
        row["known"] = row.pop("existing")
        return row  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class NewPredicate:
    """A predicate that was not in the vocabulary; see `kg_memory.models.graph.PredicateInfo`."""

    name: str
    canonical: str
    single_valued: bool | None
    origin: str = "learned"

    def row(self) -> dict[str, Any]:
        """Return the predicate as it is stored."""
        row = to_plain(self)
        row["one_at_a_time"] = row.pop("single_valued")
        return row  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a judgement is based on: the revisions of the entities, and histories of facts known in the same words."""

    revisions: Mapping[str, int]
    histories: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """The known facts that each new one may have to do with, by their ids; `searched` is what they were found by."""

    searched: str
    candidates: tuple[Mapping[str, CandidateFact], ...]
    grounds: Grounds


# The state


class IngestionState(IngestionInput, total=False):
    """The input, and what each step adds to it: the records of `Draft`, as JSON."""

    episode: dict[str, Any]
    new: bool
    done: bool
    status: str
    answers: dict[str, str]
    forgotten: int
    predicates_at: int
    previous: list[dict[str, Any]]
    skips: int
    pieces: list[dict[str, Any]]
    mentions: list[dict[str, Any]]
    stated: list[dict[str, Any]] | None
    skipped: str
    entities: list[dict[str, Any]]
    identities: dict[str, dict[str, Any]]
    learned: list[dict[str, Any]]
    judged: dict[str, Any]
    facts: list[dict[str, Any]]
    predicates: list[dict[str, Any]]
    related: dict[str, Any] | None
    comparisons: list[dict[str, Any]]
    grounds: dict[str, Any]
    verdicts: list[dict[str, Any]]
    rejudged: list[dict[str, Any]]
    reopened: list[str]
    revision: dict[str, Any]
    retry_from: Literal["receive", "dedupe"] | None
    conflicts: int
    saved_at: int
    stale: list[dict[str, Any]]
    linked: int
    unlinked: int
    steps: Annotated[list[dict[str, Any]], add]


class Draft:
    """An episode on its way through the graph: the state, whose records are decoded when a step reads them.

    By the step that writes them:

    - receive: `answers` are what the model answered when reading the episode was broken off. `forgotten` is how often
      something had been forgotten when the episode was saved, `predicates_at` when a predicate was learned or corrected
      last, `skips` how many episodes right before it in its thread were not read.
    - extract: `mentions`; `stated` are the facts where these are read together with the entities; `skipped` tells why
      the episode is not read.
    - resolve: `entities`. Of later questions that were asked with it, or ahead of the episode's turn, the answers:
      `identities` by canonical names, `learned` predicates, and verdicts on pairs of facts (`judged`).
    - facts and date: `facts`, and the `predicates` that are new. dedupe marks the facts that are known.
    - dedupe: `comparisons` with known facts; `grounds`. It looks up the `related` facts, unless resolve did.
    - invalidate: `verdicts`, those that take the place of earlier ones (`rejudged`), the ids of those that wait for
      review again (`reopened`), and the `revision` of beliefs.
    - save: `retry_from` is the step to go back to, after how many `conflicts` with other writers; else `saved_at`, and
      the rows of entities whose summaries are `stale`.
    """

    namespace: str
    episode: EpisodeRecord
    new: bool
    done: bool
    status: str
    answers: dict[str, str]
    forgotten: int
    predicates_at: int | None
    previous: tuple[PreviousMessage, ...]
    skips: int
    pieces: tuple[Piece, ...]
    mentions: tuple[Mention, ...]
    stated: tuple[NamedFact, ...] | None
    skipped: str | None
    entities: tuple[ResolvedEntity, ...]
    identities: dict[str, Identity]
    learned: tuple[NewPredicate, ...]
    judged: dict[str, PairVerdict | None]
    facts: tuple[StatedFact, ...]
    predicates: tuple[NewPredicate, ...]
    related: Related | None
    comparisons: tuple[Comparison, ...]
    grounds: Grounds
    verdicts: tuple[NewVerdict, ...]
    rejudged: tuple[NewVerdict, ...]
    reopened: tuple[str, ...]
    revision: Revision
    retry_from: str | None
    conflicts: int
    saved_at: int
    stale: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    _keys: ClassVar[Mapping[str, tuple[Decode, Any]]]

    def __init__(self, state: Mapping[str, Any], **records: Any) -> None:
        self.state = state
        self.__dict__.update(records)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in self._keys:
                raise AttributeError(name)
            decode, default = self._keys[name]
            value = self.state.get(name)
            record = default if value is None else decode(value)
            self.__dict__[name] = record
            return record

    def having(self, **records: Any) -> Draft:
        """Return the draft with *records* in place of its own."""
        own = {name: value for name, value in self.__dict__.items() if name != "state"}
        return Draft(self.state, **{**own, **records})

    def prompt_fields(self, piece: Piece | None = None) -> dict[str, Any]:
        """Return what prompts about *piece* show: the piece as an episode, and what came before it.

        Without one, the first piece stands for the whole episode.
        """
        if piece is None:
            piece = self.pieces[0] if self.pieces else Piece("")
        kind, speaker, at = self.episode.kind, self.episode.speaker, self.episode.at_iso
        episode = {"kind": kind, "content": piece.content, "speaker": speaker, "at": at}
        return {"episode": episode, "previous": [to_plain(message) for message in self.previous]}


Update = dict[str, Any]
"""The records that a step adds, by their keys in the state."""
TypedStep = Callable[[Draft, Settings], Flow[Update]]


def on_state(step: TypedStep) -> Callable[[Mapping[str, Any], Settings], Flow[dict[str, Any]]]:
    """Return *step* as a node runs it: from the plain state to a plain update of it."""

    @wraps(step)
    def run(state: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Any]]:
        update = yield from step(Draft(state), settings)
        return {name: to_plain(value) for name, value in update.items()}

    return run


# The codec


def to_plain(value: Any) -> Any:
    """Return *value* as JSON has it: records as objects, tuples as arrays."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [to_plain(item) for item in value]
    if kind is dict:
        return {name: to_plain(item) for name, item in value.items()}
    if is_dataclass(value):
        return {name: to_plain(getattr(value, name)) for name in _names(kind)}  # type: ignore[arg-type]
    return value


def from_plain(kind: type[T], value: Any) -> T:
    """Return the record of that *kind* of which `to_plain` made *value*."""
    return decoder(kind)(value)  # type: ignore[no-any-return, arg-type]


@cache
def decoder(hint: Any) -> Decode:
    """Return the function that turns plain values into those of type *hint*."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return _record_decoder(hint)
    if origin in (Union, UnionType):
        inner = next((decode for decode in map(decoder, arguments) if decode is not _same), _same)
        return _same if inner is _same else lambda value: None if value is None else inner(value)
    if origin in (tuple, list):
        return _sequence_decoder(origin, decoder(arguments[0]))
    if origin in (dict, Mapping):
        item = decoder(arguments[1])
        return _same if item is _same else lambda value: {name: item(inner) for name, inner in value.items()}
    return _same


def _sequence_decoder(kind: Any, item: Decode) -> Decode:
    if item is _same:
        return tuple if kind is tuple else _same
    return lambda value: kind(map(item, value))


def _record_decoder(kind: Any) -> Decode:
    hints = get_type_hints(kind)
    decoders = {name: decoder(hints[name]) for name in _names(kind)}
    nested = {name: decode for name, decode in decoders.items() if decode is not _same}

    def decode_record(value: Mapping[str, Any]) -> Any:
        changed = {name: decode(value[name]) for name, decode in nested.items() if name in value}
        return kind(**{**value, **changed})

    return decode_record


def _same(value: Any) -> Any:
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _default(hint: Any) -> Any:
    """Return the value of a key that the state does not have."""
    empty: dict[Any, Any] = {tuple: (), dict: {}, list: [], int: 0, bool: False}
    return empty.get(get_origin(hint) or hint)


_PLAIN = frozenset((str, int, float, bool, type(None)))
_HINTS = {name: hint for name, hint in get_type_hints(Draft).items() if not name.startswith("_")}
Draft._keys = {name: (decoder(hint), _default(hint)) for name, hint in _HINTS.items()}  # noqa: SLF001


# Bounds


def take_of_piece(items: Sequence[T], limit: int, what: str) -> Sequence[T]:
    """Return the first of *items* up to the limit of one piece, and log how many are left out."""
    if len(items) > limit:
        log.warning("kept %d of %d %s of one piece: raise max_%s to keep more", limit, len(items), what, what)
    return items[:limit]


def take_of_episode(items: Sequence[T], what: str) -> Sequence[T]:
    """Return as many of *items* as one episode may have, and log how many are left out."""
    if len(items) > MOST_IN_EPISODE:
        kept = MOST_IN_EPISODE
        log.warning("kept %d of %d %s of one episode: split the episode to keep more", kept, len(items), what)
    return items[:MOST_IN_EPISODE]
