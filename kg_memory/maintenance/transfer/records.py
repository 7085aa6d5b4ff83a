"""The lines of an export file (nodes and relations of the graph), and the validation of their properties.

A line is a node, ``{"label": "Entity", "properties": {...}}``, or a relation, ``{"type": "NAMES", "from": ..., "to":
...}``, which refers to nodes of earlier lines by their keys. Times are microseconds since the epoch. A property that is
not in the tables below may be any scalar value or list of scalars, so that files of newer versions can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kg_memory.falkor import schema
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import FactKind, Precision, Ruling, VerdictKind
from kg_memory.models.labels import decode_labels, encode_labels, read_labels
from kg_memory.temporal.interval import OPEN_END, OPEN_START

FORMAT = 1
LONGEST_KEY = 1000
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last instant of the years 1 to 9999, in microseconds since the epoch."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# The types of values


def _validate_text(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("the text must have no NUL and no lone surrogate; remove them")
    return text


def _validate_key(text: str) -> str:
    if not text or text != text.strip() or len(text.encode()) > LONGEST_KEY:
        raise ValueError(f"a key must have 1 to {LONGEST_KEY} bytes and no spaces around it; choose another")
    return _validate_text(text)


def _validate_labels(stored: list[str]) -> list[str]:
    if encode_labels(read_labels(decode_labels(stored))) != stored:
        raise ValueError('labels must be texts such as agent:"support"; export them again')
    return stored


def _validate_json(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise ValueError("the text must be a JSON object")  # noqa: TRY004 - pydantic wants it
    return text


def _check_time(*open_ends: int) -> AfterValidator:
    # *open_ends*: values that mean an unknown start or an open end
    def validate(value: int) -> int:
        if not FIRST <= value <= LAST and value not in open_ends:
            raise ValueError("the time must be in the years 1 to 9999; correct it")
        return value

    return AfterValidator(validate)


_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Number = Annotated[int, Field(ge=0, lt=2**31)]
# A number of words; the database returns some as floats.
_Count = _Number | Annotated[float, Field(ge=0, lt=2**31)]
_Positive = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0)]
_Text = Annotated[str, AfterValidator(_validate_text)]
_Key = Annotated[str, AfterValidator(_validate_key)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Time = Annotated[_Whole, _check_time()]
_AnyTime = Annotated[_Whole, _check_time(OPEN_START, OPEN_END)]
_Scalar = bool | _Whole | float | _Text


def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_, config=ConfigDict(strict=True, allow_inf_nan=False))


def _of_type(type_: Any, names: str) -> dict[str, TypeAdapter[Any]]:
    return dict.fromkeys(names.split(), _adapter(type_))


_PLAIN = _adapter(_Scalar | list[_Scalar])
_TYPES: Mapping[str, TypeAdapter[Any]] = {
    **_of_type(_Time, "at created_at updated_at said_at told_at first_seen last_seen used_at joined_at expires_at"),
    **_of_type(_Time, "reading_since refused_at undone_at former_created_at stale evicted"),
    **_of_type(Annotated[_Whole, _check_time(OPEN_START)], "valid_at known_from"),
    **_of_type(Annotated[_Whole, _check_time(OPEN_END)], "invalid_at expired_at"),
    **_of_type(_AnyTime, "latest edited_from edited_until"),
    **_of_type(_Key, "id key thread_key told_by cause new known refused edited episode origin former_key former_name"),
    **_of_type(_Text, "name type summary worded content speaker thread source source_id reason step plan reader by"),
    **_of_type(_Text, "predicate sentence edge_type family wording canonical fingerprint value path"),
    **_of_type(_Text, "undone_by undone_reason former_type"),
    **_of_type(_Share, "confidence trust support similarity"),
    **_of_type(_Number, "attempts interrupted level start end"),
    **_of_type(_Whole, "offset revision ttl vectors day calls input_tokens output_tokens cached_tokens"),
    **_of_type(bool, "told_end weak corrects goes_on refuted decided kept stated single_valued"),
    **_of_type(list[_Text], "aliases flags answers marks prefixes"),
    **_of_type(Precision, "precision end_precision edited_precision edited_end_precision"),
    **_of_type(_Count, "n"),
    **_of_type(_Positive, "used"),
    **_of_type(list[_Positive], "took"),
    **_of_type(Ruling, "ruling"),
    **_of_type(Literal["new", "known"], "holds"),
    **_of_type(Annotated[list[_Text], AfterValidator(_validate_labels)], "labels"),
}
"""The types of properties by name. The `Shape` of a node label or relation type may override them."""

# Nodes and relations


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties that an import requires and accepts for one kind of node or relation."""

    required: str = ""
    defaults: Row = field(default_factory=dict)
    types: Mapping[str, TypeAdapter[Any]] = field(default_factory=dict)

    def validate(self, properties: Row) -> Row:
        """Check the properties of a node or relation, and return them with defaults for missing ones.

        Errors: `ValueError`.
        """
        given = {name: value for name, value in properties.items() if value is not None}
        for name in self.required.split():
            if name not in given:
                raise ValueError(f"{name}: the property is missing; export it again")
        for name, value in given.items():
            if not NAME.fullmatch(name):
                raise ValueError(f"a property name must have letters, digits and underscores, got {name!r:.80}")
            adapter = self.types.get(name) or _TYPES.get(name, _PLAIN)
            try:
                adapter.validate_python(value)
            except ValidationError as error:
                raise ValueError(f"{name}: {describe_problem(error)}") from None
        if given.get("end", OPEN_END) < given.get("start", 0):
            raise ValueError("end must not be before start")
        return {**self.defaults, **given}


def describe_problem(error: ValidationError) -> str:
    """Return the first problem of a pydantic *error* as ``"field: message"``."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place, problem = ".".join(map(str, first["loc"][:2])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {problem}" if place else problem


_DATED: Row = {"precision": "instant", "end_precision": "instant"}
_NEW_EPISODE: Row = {"kind": "message", "status": "saved", "attempts": 0, "flags": [], "trust": 1.0}
_ROLE = _of_type(Literal["one", "other", "subject", "object", "mention", "alias", "copy", "verdict"], "role")
NODES: Mapping[str, Shape] = {
    "Entity": Shape("id key name type created_at", {"aliases": [], "summary": ""}),
    "Alias": Shape("key"),
    "Episode": Shape(
        "id content thread_key at created_at",
        _NEW_EPISODE,
        _of_type(Literal["message", "text", "json", "fact", "block"], "kind")
        | _of_type(Literal["saved", "waiting", "working", "done", "failed", "skipped"], "status"),
    ),
    "Fact": Shape("id predicate sentence created_at said_at", {"confidence": 1.0}, _of_type(FactKind, "kind")),
    "Belief": Shape("id valid_at invalid_at known_from said_at created_at expired_at", _DATED),
    "Verdict": Shape(
        "id new known kind ruling created_at", {"confidence": 1.0, "reason": ""}, _of_type(VerdictKind, "kind")
    ),
    "Decision": Shape(
        "id decision by at ruling",
        {"reason": ""},
        _of_type(Literal["accept", "reject", "edit", "undo"], "decision")
        | _of_type(Annotated[_Text, AfterValidator(_validate_json)], "before"),
    ),
    "Identity": Shape(
        "id kind state created_at",
        types=_of_type(Literal["merge", "split", "doubt"], "kind")
        | _of_type(Literal["waiting", "done", "apart", "undone"], "state"),
    ),
    "Predicate": Shape(
        "name canonical",
        {"origin": "learned"},
        _of_type(_Key, "name") | _of_type(Literal["corrected", "declared", "rules", "learned"], "origin"),
    ),
    "Community": Shape("id name", {"summary": "", "level": 0}),
    "Spent": Shape("day"),
    "Namespace": Shape("id path prefixes"),
    "Item": Shape("id key value created_at updated_at", {"marks": []}, _of_type(_Text, "key")),
}
"""The properties of each node label, in the order of an export."""
INDEXED = ("Entity", "Episode", "Fact", "Community")
"""The labels of nodes that have words in the word index and a vector."""
INSIDE = frozenset({"Meta", "Meaning", "Term", "Vector"})
"""The labels of nodes without lines of their own: they are exported within other nodes, or in the header."""
INSIDE_RELATIONS = frozenset({"SUBJECT_OF", "OBJECT_IS", "MEANS", "HAS", *(f"IN_{label.upper()}" for label in INDEXED)})
"""The types of relations without lines of their own: they are exported within nodes."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The labels of nodes that a relation type connects, and the properties of such a relation."""

    source: str
    targets: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)
    page_by_target: bool = False


RELATIONS: Mapping[str, Ends] = {
    "NAMES": Ends("Alias", ("Entity",)),
    "MENTIONS": Ends("Episode", ("Entity",)),
    "NEXT": Ends("Episode", ("Episode",)),
    "STATES": Ends("Episode", ("Fact",), Shape("start end valid_at invalid_at", {"confidence": 1.0, **_DATED})),
    "RESTS_ON": Ends("Fact", ("Fact",)),
    "HELD": Ends("Fact", ("Belief",)),
    "PROPOSED": Ends("Fact", ("Belief",)),
    "JUDGED": Ends("Fact", ("Verdict",)),
    "DECIDED": Ends("Verdict", ("Decision",)),
    "ABOUT": Ends("Identity", ("Entity",), Shape("role", types=_ROLE)),
    "MOVED": Ends("Identity", ("Fact", "Episode", "Verdict", "Alias"), Shape("role", {"kept": False}, _ROLE)),
    "DISTINCT_FROM": Ends("Entity", ("Entity",)),
    "HAS_MEMBER": Ends("Community", ("Entity",), page_by_target=True),
    "PART_OF": Ends("Community", ("Community",)),
    "SIMILAR_TO": Ends("Entity", ("Entity",)),
    "IN": Ends("Item", ("Namespace",)),
}
"""The relation types, in the order of an export. The subject and objects of a fact are in the fact's own line."""
_OF_STORES = ("Namespace", "Item", "IN")
RECORDS: Mapping[str, tuple[str, ...]] = {
    "memory": tuple(name for name in (*NODES, *RELATIONS) if name not in _OF_STORES),
    "items": _OF_STORES,
}
"""The node labels and relation types of each kind of export, in file order."""


def key_property(label: str) -> str:
    """Return the name of the property that identifies nodes with *label*: ``id``, ``key``, ``name`` or ``day``."""
    return schema.RANGE.get(label, ("id",))[0]


# Lines


class NodeLine(BaseModel):
    """A line of an export file with one node of the graph, such as an entity or a fact.

    - `ends`: the ids of a fact's subject and objects.
    - `words`: the count of each word in the node's text; None: an import counts them.
    - `embedding`: the vector, as base64 of little-endian 32-bit floats; True: an import computes it; None: no vector.
    - `embeddings`: the vectors of an item of a `KGStore` (a LangGraph store).
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    label: str
    properties: Row
    ends: list[_Key] = []
    words: dict[_Key, _Count] | None = None
    embedding: str | Literal[True] | None = None
    embeddings: list[str] = []

    @property
    def name(self) -> str:
        """The label of the node."""
        return self.label


class RelationLine(BaseModel):
    """A line of an export file that describes one relation of the graph, such as "Ann is mentioned in message 7".

    *source* and *target*: the keys of the two nodes.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", populate_by_name=True)

    type: str
    source: _Key = Field(alias="from")
    target: _Key = Field(alias="to")
    properties: Row = {}

    @property
    def name(self) -> str:
        """The type of the relation."""
        return self.type


Record = NodeLine | RelationLine


class Header(BaseModel):
    """The first line of an export file: its content, its versions and its embedding model.

    - `holds`: ``"memory"``, or ``"items"`` of a `KGStore` (a LangGraph store) with the name `namespace`.
    - `format`, `schema_`, `words`: the versions of the file format, of the graph and of its word index.
    - `embeddings`: the file contains the vectors. `meta`: counters of the graph, by name.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    record: Literal["kg-memory"] = "kg-memory"
    format: int
    schema_: int = Field(alias="schema")
    namespace: _Text
    holds: Literal["memory", "items"] = "memory"
    model: _Text | None = None
    dimension: Annotated[int, Field(gt=0, le=65536)] | None = None
    words: int = 0
    embeddings: bool
    meta: dict[Annotated[str, Field(pattern=NAME.pattern + "$")], _Whole] = {}


class End(BaseModel):
    """The last line of an export file: the number of records of each kind, and the checksum of all lines before."""

    model_config = ConfigDict(frozen=True, strict=True)

    record: Literal["end"] = "end"
    counts: dict[str, int]
    sha256: str


def to_record(line: Row, allowed: Collection[str]) -> Record:
    """Convert a parsed line of an export file to a `NodeLine` or `RelationLine`; raise `ValueError` if invalid."""
    try:
        record: Record = NodeLine.model_validate(line) if "label" in line else RelationLine.model_validate(line)
    except ValidationError as error:
        raise ValueError(describe_problem(error)) from None
    if record.name not in allowed:
        raise ValueError(f"unknown label or type {record.name!r:.60}; upgrade kg-memory, or remove the line")
    shape = NODES[record.name] if isinstance(record, NodeLine) else RELATIONS[record.name].shape
    if isinstance(record, NodeLine) and record.label == "Fact" and len(record.ends) < 2:
        raise ValueError("ends: a fact must have the ids of its subject and its objects")
    return record.model_copy(update={"properties": shape.validate(record.properties)})
