"""The lines of an export, validated: one record of a namespace each."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kg_memory.maintenance.transfer.line import (
    NAME,
    NOT_STORED,
    At,
    Count,
    Instant,
    JSONText,
    Key,
    Latest,
    Line,
    Number,
    Positive,
    Ref,
    Share,
    Since,
    StoredLabels,
    Text,
    Until,
    Vector,
    Whole,
    Words,
)
from kg_memory.models.graph import FactKind, Precision, Ruling, VerdictKind

FORMAT = 1


class Entity(Line):
    """A person, place, thing or idea; `key` is made of its first name and its type."""

    id: Key
    key: Key
    name: Text
    type: Text
    aliases: list[Text] = Field(default_factory=list)
    summary: Text = ""
    first_seen: At | None = None
    last_seen: At | None = None
    created_at: At
    stale: At | None = None
    worded: Text | None = None
    revision: Whole | None = None
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
    kind: Literal["message", "text", "json", "fact", "block"] = "message"
    content: Text
    speaker: Text | None = None
    thread: Text | None = None
    thread_key: Key
    source: Text | None = None
    source_id: Text | None = None
    at: At
    created_at: At
    status: Literal["saved", "waiting", "working", "done", "failed", "skipped"] = "saved"
    reason: Text | None = None
    step: Text | None = None
    plan: Text | None = None
    attempts: Number = 0
    interrupted: Number | None = None
    reader: Text | None = None
    reading_since: At | None = None
    offset: Whole | None = None
    flags: list[Text] = Field(default_factory=list)
    answers: list[Text] | None = None
    took: list[Positive] | None = None
    expires_at: At | None = None
    trust: Share = 1.0
    labels: StoredLabels | None = None
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
    told_by: Key | None = None
    told_end: bool | None = None
    used_at: At | None = None
    used: Positive | None = None
    evicted: At | None = None
    evicted_at: At | None = None
    kind: FactKind | None = None
    edge_type: Text | None = None
    family: Text | None = None
    wording: Text | None = None
    confidence: Share = 1.0
    n: Count | None = None
    words: Words = None
    embedding: Vector = None


class Statement(Line):
    """The evidence of a fact: the characters of an episode that state it, and for which time."""

    episode: Ref
    fact: Ref
    start: Number
    end: Number
    valid_at: Since
    invalid_at: Until
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    latest: Latest | None = None
    confidence: Share = 1.0
    support: Share | None = None
    weak: bool | None = None
    corrects: bool | None = None
    refuted: bool | None = None

    @model_validator(mode="after")
    def _validate_span(self) -> Self:
        if self.end < self.start:
            raise ValueError("end must not be before start")
        return self


class Premise(Line):
    """A fact that another one rests on, as its reason or condition; *stated* by the episode, else by a rule."""

    fact: Ref
    premise: Ref
    stated: bool | None = None
    episode: Key | None = None


class Belief(Line):
    """A period in which a fact was true, as believed from `created_at` to `expired_at`."""

    id: Key
    fact: Ref
    proposed: Annotated[bool, NOT_STORED] = False
    valid_at: Since
    invalid_at: Until
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    known_from: Since
    said_at: At
    created_at: At
    expired_at: Until
    cause: Key | None = None


class Verdict(Line):
    """The relation between two facts."""

    id: Key
    new: Key
    known: Key
    kind: VerdictKind
    ruling: Ruling
    created_at: At
    confidence: Share = 1.0
    reason: Text = ""
    episode: Key | None = None
    holds: Literal["new", "known"] | None = None
    decided: bool | None = None
    refused: Key | None = None
    refused_at: At | None = None
    edited: Key | None = None
    edited_from: Instant | None = None
    edited_until: Instant | None = None
    edited_precision: Precision | None = None
    edited_end_precision: Precision | None = None


class Decision(Line):
    """A person's decision about a verdict."""

    id: Key
    verdict: Ref
    decision: Literal["accept", "reject", "edit", "undo"]
    by: Text
    at: At
    reason: Text = ""
    ruling: Ruling
    before: JSONText | None = None


class Identity(Line):
    """A merge, a split or a doubt about who is who, with its author."""

    id: Key
    kind: Literal["merge", "split", "doubt"]
    state: Literal["waiting", "done", "apart", "undone"]
    created_at: At
    by: Text | None = None
    at: At | None = None
    reason: Text | None = None
    confidence: Share | None = None
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
    origin: Literal["corrected", "declared", "rules", "learned"] = "learned"
    one_at_a_time: bool | None = None


class Community(Line):
    """A cluster of entities, with a summary."""

    id: Key
    name: Text
    summary: Text = ""
    level: Number = 0
    fingerprint: Text | None = None
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
    similarity: Share | None = None


class Answer(Line):
    """A cached answer of a model that was not used yet."""

    key: Key
    answer: Text


class Spent(Line):
    """The usage of a day, in days since the epoch."""

    day: Annotated[int, Field(ge=0, lt=10**9)]
    calls: Whole | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    cached_tokens: Whole | None = None


class Item(Line):
    """An item of a `KGStore`: its `path` in the store, its `key` and its `value` as JSON texts, and its vectors."""

    id: Key
    path: Annotated[Text, NOT_STORED]
    prefixes: Annotated[list[Key], Field(min_length=1), NOT_STORED]
    key: Text
    value: Text
    marks: list[Text] = Field(default_factory=list)
    created_at: At
    updated_at: At
    ttl: Whole | None = None
    expires_at: At | None = None
    embeddings: Annotated[list[str], NOT_STORED] = Field(default_factory=list)


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
    meta: dict[Annotated[str, Field(pattern=NAME.pattern + "$")], Whole] = {}


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
