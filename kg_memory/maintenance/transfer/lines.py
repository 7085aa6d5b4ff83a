"""The lines of an export, validated: one record of a namespace each.

Times are ISO 8601 in UTC, or microseconds since the epoch beyond the calendar; ``null`` is an open end. Fields that a
line lacks are not stored. Fields that are not listed here are stored as they are: later versions have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, parse_iso

FORMAT = 1
LONGEST_KEY = 1000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _validate_storable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("the text must have no NUL and no lone surrogate; remove them")
    return text


def _validate_key(text: str) -> str:
    """Return *text* if the database's indices can find it: they miss empty, padded and very long texts."""
    if not text or text != text.strip() or len(text.encode()) > LONGEST_KEY:
        raise ValueError(f"a key must have 1 to {LONGEST_KEY} bytes and no spaces around it; choose another")
    return _validate_storable(text)


def _parse_time(value: object, open_end: int | None = None) -> object:
    """Return an instant in microseconds, *open_end* for ``None``."""
    if value is None and open_end is not None:
        return open_end
    if isinstance(value, str):
        try:
            return parse_iso(value)
        except (ValueError, OverflowError):
            raise ValueError("the value must be a time; write it as 2024-05-01T10:00:00Z") from None
    return value


def _format_time(value: int, open_end: int | None = None) -> str | int | None:
    if value == open_end:
        return None
    try:
        return (EPOCH + timedelta(microseconds=value)).isoformat()
    except OverflowError:
        return value


def _time_field(open_end: int | None) -> tuple[BeforeValidator, PlainSerializer]:
    check: Callable[[Any], Any] = partial(_parse_time, open_end=open_end)
    return BeforeValidator(check), PlainSerializer(partial(_format_time, open_end=open_end))


NOT_STORED = "not stored"
"""Marks a field that is not stored as a property."""
_WHOLE = Field(ge=-(2**63), lt=2**63)
Whole = Annotated[int, _WHOLE]
Text = Annotated[str, AfterValidator(_validate_storable)]
Key = Annotated[str, AfterValidator(_validate_key)]
Ref = Annotated[Key, NOT_STORED]
"""The key of one end of a relation."""
At = Annotated[int, _WHOLE, *_time_field(None)]
Since = Annotated[int, _WHOLE, *_time_field(OPEN_START)]
Until = Annotated[int, _WHOLE, *_time_field(OPEN_END)]
Scalar = bool | Whole | float | Text
Plain = Scalar | list[Scalar]


class Line(BaseModel):
    """A line: a node or relation of the graph, of the kind `record`."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Plain] = Field(init=False)

    own: ClassVar[frozenset[str]] = frozenset()
    """The fields that are not stored as properties."""

    record: Annotated[str, NOT_STORED]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        cls.own = frozenset(name for name, field in cls.model_fields.items() if NOT_STORED in field.metadata)

    def model_post_init(self, _: object) -> None:
        invalid = [name for name in self.__pydantic_extra__ if not _NAME.fullmatch(name)]
        if invalid:
            raise ValueError(f"a field name must have letters, digits and underscores, got {invalid[0]!r:.80}")

    def to_properties(self) -> dict[str, Any]:
        """Return the properties to store."""
        names = {*self.model_fields_set, *self.__pydantic_extra__} - self.own
        return {name: value for name in names if (value := getattr(self, name)) is not None}


Count = Annotated[int, Field(ge=0, lt=2**31)] | Annotated[float, Field(ge=0, lt=2**31)]
"""A number of words; the database turns some into floats."""
Words = Annotated[dict[Key, Count] | None, NOT_STORED]
"""The count of each word in the word index; computed from the text if absent."""
Vector = Annotated[str | Literal[True] | None, NOT_STORED]
"""The vector as base64 of little-endian single precision numbers; ``true`` to compute it again."""


class Entity(Line):
    """A person, place, thing or idea; `key` is made of its first name and its type."""

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

    key: Ref
    entity: Ref


class Episode(Line):
    """A message, text or record as it was added."""

    id: Key
    kind: Literal["message", "text", "json", "fact"] = "message"
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
    """A mention of an entity in an episode."""

    episode: Ref
    entity: Ref


class Next(Line):
    """The order of two episodes in a thread."""

    before: Ref
    after: Ref


class Fact(Line):
    """A fact about a subject and one or more objects, by their ids."""

    id: Key
    subject: Ref
    objects: Annotated[list[Key], Field(min_length=1), NOT_STORED]
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
    """The evidence of a fact: the characters of an episode that state it, and for which time."""

    episode: Ref
    fact: Ref
    start: Whole
    end: Whole
    valid_at: Since
    invalid_at: Until


class Premise(Line):
    """A fact that another one rests on, as its reason or condition."""

    fact: Ref
    premise: Ref


class Belief(Line):
    """A period in which a fact was true, as believed from `created_at` to `expired_at`."""

    id: Key
    fact: Ref
    proposed: Annotated[bool, NOT_STORED] = False
    valid_at: Since
    invalid_at: Until
    known_from: Since
    said_at: At
    created_at: At
    expired_at: Until


class Verdict(Line):
    """The relation between two facts."""

    id: Key
    new: Key
    known: Key
    kind: Text
    ruling: Text
    created_at: At


class Decision(Line):
    """A person's decision about a verdict."""

    id: Key
    verdict: Ref
    decision: Text
    by: Text
    at: At


class Identity(Line):
    """A merge, a split or a doubt about who is who, with its author."""

    id: Key
    kind: Literal["merge", "split", "doubt"]
    state: Literal["waiting", "done", "apart", "undone"]
    created_at: At
    by: Text | None = None
    at: At | None = None
    reason: Text | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    former_key: Key | None = None
    former_type: Text | None = None
    former_name: Key | None = None
    former_created_at: At | None = None
    undone_by: Text | None = None
    undone_at: At | None = None
    undone_reason: Text | None = None


class About(Line):
    """An entity that an identity is about."""

    identity: Ref
    entity: Ref
    role: Literal["one", "other"]


class Moved(Line):
    """A fact, an episode, a verdict or the key of a name that changed hands."""

    identity: Ref
    fact: Annotated[Key | None, NOT_STORED] = None
    episode: Annotated[Key | None, NOT_STORED] = None
    verdict: Annotated[Key | None, NOT_STORED] = None
    alias: Annotated[Key | None, NOT_STORED] = None
    role: Literal["subject", "object", "mention", "alias", "copy", "verdict"]
    kept: bool = False
    origin: Key | None = None
    ruling: Text | None = None
    refused: Key | None = None


class Distinct(Line):
    """Two entities that are kept apart."""

    entity: Ref
    second: Ref


class Predicate(Line):
    """The meaning of a predicate."""

    name: Key
    canonical: Text


class Community(Line):
    """A cluster of entities, with a summary."""

    id: Key
    name: Text
    summary: Text = ""
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Member(Line):
    """The membership of an entity in a community."""

    community: Ref
    entity: Ref
    joined_at: At | None = None


class Part(Line):
    """The membership of a community in a larger one."""

    community: Ref
    whole: Ref


class Similar(Line):
    """A link between two entities with similar names."""

    entity: Ref
    other: Ref


class Answer(Line):
    """A cached answer of a model that was not used yet."""

    key: Key
    answer: Text


class Spent(Line):
    """The usage of a day, in days since the epoch."""

    day: Annotated[int, Field(ge=0, lt=10**9)]


class Item(Line):
    """An item of a `KGStore`: its `path` in the store, its `key` and its `value` as JSON texts, and its vectors."""

    id: Key
    path: Annotated[Text, NOT_STORED]
    prefixes: Annotated[list[Key], Field(min_length=1), NOT_STORED]
    key: Text
    value: Text
    marks: list[Text] = []
    created_at: At
    updated_at: At
    ttl: Whole | None = None
    expires_at: At | None = None
    embeddings: Annotated[list[str], NOT_STORED] = []


class Header(BaseModel):
    """The first line: the contents, the embedding model, and the counters of the graph in `meta`.

    An export that `holds` items is of the store named by `namespace`; without vectors it has no model.
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
    """The last line: the number of each record, and the SHA-256 of all lines before it."""

    model_config = ConfigDict(frozen=True, strict=True)

    record: Literal["end"] = "end"
    counts: dict[str, int]
    sha256: str


_RECORDS: tuple[type[Line], ...] = (
    *(Entity, Alias, Episode, Mention, Next, Fact, Statement, Premise, Belief, Verdict, Decision),
    *(Identity, About, Moved, Distinct, Predicate),
    *(Community, Member, Part, Similar, Answer, Spent, Item),
)
LINES: dict[str, type[Line]] = {line.__name__.lower(): line for line in _RECORDS}
"""The line of each record, in the order of an export: references point to earlier lines."""
RECORDS = {"memory": [record for record in LINES if record != "item"], "items": ["item"]}
"""The records of each kind of export."""
