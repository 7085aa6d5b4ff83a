"""The lines of an export: what each says of a namespace, checked.

Times are ISO 8601 texts in UTC (microseconds since the epoch where the calendar ends); ``null`` is an open end. What a
line does not name is not stored. Fields that are not listed here are kept as they are: later versions have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros

FORMAT = 1
LONGEST_KEY = 1000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _storable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("it has a NUL or half a character, which no database holds: take it out")
    return text


def _findable(text: str) -> str:
    """Return *text*, which the database's indices find: they find no empty, padded or very long one."""
    if not text or text != text.strip() or len(text.encode()) > LONGEST_KEY:
        raise ValueError(f"it is empty, padded or longer than {LONGEST_KEY} bytes: give another")
    return _storable(text)


def _at(value: object, opened: int | None = None) -> object:
    """Return an instant in microseconds, *opened* for an open end."""
    if value is None and opened is not None:
        return opened
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
            return micros(told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC), default=0)
        except (ValueError, OverflowError):
            raise ValueError("it is no date: write it as in 2024-05-01T10:00:00Z") from None
    return value


def _told(value: int, opened: int | None = None) -> str | int | None:
    if value == opened:
        return None
    try:
        return datetime.fromtimestamp(value // 1_000_000, UTC).replace(microsecond=value % 1_000_000).isoformat()
    except (ValueError, OverflowError, OSError):
        return value


def _time(opened: int | None) -> tuple[BeforeValidator, PlainSerializer]:
    check: Callable[[Any], Any] = partial(_at, opened=opened)
    return BeforeValidator(check), PlainSerializer(partial(_told, opened=opened))


_WHOLE = Field(ge=-(2**63), lt=2**63)
Whole = Annotated[int, _WHOLE]
Text = Annotated[str, AfterValidator(_storable)]
Key = Annotated[str, AfterValidator(_findable)]
At = Annotated[int, _WHOLE, *_time(None)]
Since = Annotated[int, _WHOLE, *_time(OPEN_START)]
Until = Annotated[int, _WHOLE, *_time(OPEN_END)]
Scalar = bool | Whole | float | Text
Plain = Scalar | list[Scalar]


class Line(BaseModel):
    """One line: its `record` is what it tells of."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Plain] = Field(init=False)

    own: ClassVar[frozenset[str]] = frozenset({"record"})
    """Fields that are no property of what is stored."""

    record: str

    def model_post_init(self, _: object) -> None:
        wrong = [name for name in self.__pydantic_extra__ if not _NAME.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r:.80} is no name of a field: use letters, digits and underscores")

    def told(self) -> dict[str, Any]:
        """Return the properties that are stored."""
        given = {name: getattr(self, name) for name in {*self.model_fields_set, *self.__pydantic_extra__} - self.own}
        return {name: value for name, value in given.items() if value is not None}


Count = Annotated[int, Field(ge=0, lt=2**31)] | Annotated[float, Field(ge=0, lt=2**31)]
"""A number of words; the database makes some of them floats."""
Words = dict[Key, Count] | None
"""How often the word index counts each word; counted anew where it is left out."""
Vector = str | Literal[True] | None
"""The vector as base64 of its numbers in single precision, the lowest byte first; ``true`` to make it anew."""
WORDED = frozenset({"record", "words", "embedding"})


class Entity(Line):
    """A person, place, thing or idea; `key` is what it was first called, with its type."""

    own = WORDED

    id: Key
    key: Key
    name: Text
    type: Text
    aliases: list[Text] = []
    summary: Text = ""
    first_seen: At | None = None
    last_seen: At | None = None
    created_at: At
    stale: At | None = None
    evicted: At | None = None
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Alias(Line):
    """A name of an entity, as its key."""

    own = frozenset({"record", "key", "entity"})

    key: Key
    entity: Key


class Episode(Line):
    """A message, text or record as it came in."""

    own = WORDED

    id: Key
    kind: Literal["message", "text", "json"] = "message"
    content: Text
    speaker: Text | None = None
    thread: Text | None = None
    thread_key: Key
    source: Text | None = None
    source_id: Text | None = None
    at: At
    created_at: At
    status: Literal["saved", "waiting", "working", "done", "failed", "skipped"] = "saved"
    expires_at: At | None = None
    trust: float = 1.0
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Mention(Line):
    """That an episode mentions an entity."""

    own = frozenset({"record", "episode", "entity"})

    episode: Key
    entity: Key


class Next(Line):
    """That an episode follows another in its thread."""

    own = frozenset({"record", "before", "after"})

    before: Key
    after: Key


class Fact(Line):
    """What is said of a subject and one or more objects, by the ids of these."""

    own = WORDED | {"subject", "objects"}

    id: Key
    subject: Key
    objects: list[Key] = Field(min_length=1)
    predicate: Text
    sentence: Text
    created_at: At
    said_at: At
    told_at: At | None = None
    used_at: At | None = None
    evicted: At | None = None
    evicted_at: At | None = None
    confidence: float = 1.0
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Statement(Line):
    """The evidence: that an episode states a fact, with the characters that do, and for which time."""

    own = frozenset({"record", "episode", "fact"})

    episode: Key
    fact: Key
    start: Whole
    end: Whole
    valid_at: Since
    invalid_at: Until


class Belief(Line):
    """A period in which a fact was so, as it was believed from `created_at` to `expired_at`."""

    own = frozenset({"record", "fact", "proposed"})

    id: Key
    fact: Key
    proposed: bool = False
    valid_at: Since
    invalid_at: Until
    known_from: Since
    said_at: At
    created_at: At
    expired_at: Until


class Verdict(Line):
    """What two facts have to do with each other."""

    id: Key
    new: Key
    known: Key
    kind: Text
    ruling: Text
    created_at: At


class Decision(Line):
    """What a person decided about a verdict."""

    own = frozenset({"record", "verdict"})

    id: Key
    verdict: Key
    decision: Text
    by: Text
    at: At


class Predicate(Line):
    """What a predicate means."""

    name: Key
    canonical: Text


class Community(Line):
    """A cluster of entities, and what it is about."""

    own = WORDED

    id: Key
    name: Text
    summary: Text = ""
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Member(Line):
    """That an entity belongs to a community."""

    own = frozenset({"record", "community", "entity"})

    community: Key
    entity: Key
    joined_at: At | None = None


class Part(Line):
    """That a community is a part of a larger one."""

    own = frozenset({"record", "community", "whole"})

    community: Key
    whole: Key


class Similar(Line):
    """That two entities are near in meaning."""

    own = frozenset({"record", "entity", "other"})

    entity: Key
    other: Key


class Answer(Line):
    """What a model answered that is not used yet: it is not to be paid twice."""

    key: Key
    answer: Text


class Spent(Line):
    """What was spent on a day, in days since the epoch."""

    day: Annotated[int, Field(ge=0, lt=10**9)]


class Item(Line):
    """An item of a `KGStore`: its `path` in the store, its `key` and its `value` as JSON texts, and its vectors."""

    own = frozenset({"record", "path", "prefixes", "embeddings"})

    id: Key
    path: Text
    prefixes: list[Key] = Field(min_length=1)
    key: Text
    value: Text
    marks: list[Text] = []
    created_at: At
    updated_at: At
    ttl: Whole | None = None
    expires_at: At | None = None
    embeddings: list[str] = []


class Header(BaseModel):
    """The first line: what follows, and what it was made by. `meta` are counters of the graph.

    What `holds` items is the store of that name; one that has no vectors yet has no model.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    record: Literal["kg-memory"] = "kg-memory"
    format: int
    schema_: int = Field(alias="schema")
    namespace: Text
    holds: Literal["memory", "items"] = "memory"
    model: Text | None = None
    dimension: Annotated[int, Field(gt=0, le=65536)] | None = None
    words: int = 0
    embeddings: bool
    meta: dict[Annotated[str, Field(pattern=_NAME.pattern + "$")], Whole] = {}


class End(BaseModel):
    """The last line: how many there are of each record, and the SHA-256 of all lines before it."""

    model_config = ConfigDict(frozen=True, strict=True)

    record: Literal["end"] = "end"
    counts: dict[str, int]
    sha256: str


LINES: dict[str, type[Line]] = {
    each.__name__.lower(): each
    for each in (
        Entity, Alias, Episode, Mention, Next, Fact, Statement, Belief, Verdict, Decision, Predicate, Community, Member,
        Part, Similar, Answer, Spent, Item,
    )
}  # fmt: skip
"""Each record's line, in the order in which they stand in an export: what is referred to comes first."""
RECORDS = {"memory": [each for each in LINES if each != "item"], "items": ["item"]}
"""The records of what an export may hold."""
