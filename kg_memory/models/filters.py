"""Filters: the conditions of the argument *where* of searches and lists, validated and plain JSON.

    {"thread": "t1"}                                    one field
    {"predicate": ["LIVES_IN", "WORKS_AT"]}             any of these values
    {"trust": {"$gte": 0.5}, "speaker": "Ann"}          all of several fields
    {"$or": [{"type": "Person"}, {"$not": {"source": "web"}}]}

A field belongs to episodes, entities or facts (see `FIELDS`). Results of another kind are tested through the graph: a
fact is linked to the episodes that state it and to its entities; an entity to the episodes that mention it and to the
facts about it; an episode to the entities and facts in it. A result matches a dict if its own fields match and, for
each other kind, one linked object matches all fields of that kind. So ``{"thread": "t1", "speaker": "Ann"}`` matches a
fact that Ann stated in t1; ``{"$and": [{"thread": "t1"}, {"speaker": "Ann"}]}`` also matches a fact that Ann stated
elsewhere and somebody else in t1. A community matches a dict if one of its members does.

``$and``, ``$or`` and ``$not`` combine matches. ``{"$not": {"speaker": "Ann"}}`` matches facts that Ann never stated,
but ``{"speaker": {"$ne": "Ann"}}`` matches facts that somebody else stated, even if Ann did too. An empty dict or
``$and`` matches everything, an empty ``$or`` or list nothing (an empty ``$nin``: everything that has a linked object).

The times of a fact are those of its beliefs: one belief that holds at the time of the question must match them all.
Linked facts count only if they hold then. An open start is before every time and an open end after every time; None
matches both. An episode without a speaker, thread or source has None there, which differs from every text. A name is
any name of an entity, case-insensitive, and a predicate any wording of it; other texts are compared exactly.

``labels.KEY`` is a label of an episode: ``{"labels.tags": "vip"}`` matches if "vip" is one of its values, and None
matches episodes without that label; see `kg_memory.models.labels`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeKind, FactKind
from kg_memory.models.labels import PREFIX, check_key, check_label

Owner = Literal["episode", "entity", "fact", "belief"]
Plain = str | float | None

EQUALITIES = ("$eq", "$ne", "$in", "$nin")
ORDERS = ("$gt", "$gte", "$lt", "$lte")
LISTS = ("$in", "$nin")
JOINS = ("$and", "$or", "$not")
MAX_DEPTH = 8
MAX_TESTS = 50
MAX_VALUES = 1000
MAX_CHARACTERS = 1_000_000
"""Limits of a whole filter: nesting, conditions, values, and characters of all texts together."""


class Field(NamedTuple):
    """A field that a filter can test: which kind of object has it, its type, and whether it may be missing."""

    of: Owner
    holds: Literal["text", "number", "time", "label"]
    optional: bool = False


FIELDS: Mapping[str, Field] = {
    **dict.fromkeys(("thread", "source", "source_id", "speaker"), Field("episode", "text", optional=True)),
    "kind": Field("episode", "text"),
    "trust": Field("episode", "number"),
    "said_at": Field("episode", "time"),
    **dict.fromkeys(("type", "name"), Field("entity", "text")),
    **dict.fromkeys(("predicate", "fact_kind", "edge_type"), Field("fact", "text")),
    "confidence": Field("fact", "number"),
    **dict.fromkeys(("valid_at", "invalid_at"), Field("belief", "time", optional=True)),
    "created_at": Field("belief", "time"),
    "expired_at": Field("belief", "time", optional=True),
}
CHOICES: Mapping[str, tuple[str, ...]] = {"kind": tuple(EpisodeKind), "fact_kind": get_args(FactKind)}
"""The valid values of fields that have only a few."""
LABEL = Field("episode", "label", optional=True)


def find_field(name: object) -> Field | None:
    """Return the filter field with this *name*, such as ``"speaker"`` or ``"labels.tags"``; None if there is none."""
    if isinstance(name, str) and name.startswith(PREFIX):
        return LABEL
    return FIELDS.get(name) if isinstance(name, str) else None


def field_of(comparison: FieldComparison) -> Field:
    """Return the `Field` that *comparison* tests: which kind of object has it, and the type of its value."""
    return LABEL if comparison.field.startswith(PREFIX) else FIELDS[comparison.field]


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A test of one field in a filter: ``{"trust": {"$gte": 0.5}}`` is ``FieldComparison("trust", "$gte", 0.5)``."""

    field: str
    operator: str
    value: Plain | tuple[Plain, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A filter that matches if all *comparisons* match: ``{"thread": "t1", "speaker": "Ann"}``.

    All of them must match the same object: one message, one entity or one fact.
    """

    comparisons: tuple[FieldComparison, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """A filter that matches if all of its *parts*, which are filters, match: ``{"$and": [...]}``."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A filter that matches if at least one of its *parts*, which are filters, matches: ``{"$or": [...]}``."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A filter that matches if another filter, *part*, does not: ``{"$not": {...}}``."""

    part: Filter


Filter = Fields | AllOf | AnyOf | Not


def parse_filter(where: Mapping[str, Any] | None) -> Filter | None:
    """Parse the dict *where*, such as ``{"speaker": "Ann"}``, and return the filter; None for an empty one.

    Errors: `InputError`, which names the invalid part and its valid values.
    """
    return None if where is None or where == {} else _Parser().filter(where)


def comparisons(where: Filter) -> Iterator[FieldComparison]:
    """Yield all comparisons in the filter *where*, including those in nested filters."""
    if isinstance(where, Fields):
        yield from where.comparisons
    else:
        for part in (where.part,) if isinstance(where, Not) else where.parts:
            yield from comparisons(part)


def to_plain(where: Filter) -> dict[str, Any]:
    """Convert the filter *where* to a dict for JSON. `parse_filter` converts this dict back to the same filter."""
    if isinstance(where, Fields):
        fields: dict[str, Any] = {}
        for comparison in where.comparisons:
            value = comparison.value
            operators = fields.setdefault(comparison.field, {})
            operators[comparison.operator] = list(value) if isinstance(value, tuple) else value
        return fields
    if isinstance(where, Not):
        return {"$not": to_plain(where.part)}
    return {"$and" if isinstance(where, AllOf) else "$or": [to_plain(part) for part in where.parts]}


class _Parser:
    """Parses one filter, and counts its tests and values against the limits; use a new parser for each filter."""

    def __init__(self) -> None:
        self._left = {"tests": MAX_TESTS, "values": MAX_VALUES, "characters": MAX_CHARACTERS}

    def filter(self, where: Any, depth: int = 1) -> Filter:
        """Parse the dict *where*, and return the filter; *depth* is its level of nesting, 1 for the outermost."""
        if not isinstance(where, Mapping):
            raise InputError(f"a filter must be a dict such as {{'thread': 't1'}}, got {type(where).__name__}")
        if depth > MAX_DEPTH:
            raise InputError(f"the filter is nested deeper than {MAX_DEPTH} levels; use fewer $and, $or and $not")
        self._count("tests")
        for name in where:
            if name not in JOINS and find_field(name) is None:
                raise _unknown_name("field", name, (*FIELDS, f"{PREFIX}KEY", *JOINS))
        fields = [name for name in where if name not in JOINS]
        tests = tuple(test for name in fields for test in self._tests(name, where[name]))
        parts: list[Filter] = [Fields(tests)] if tests else []
        parts += [self._join(name, where[name], depth + 1) for name in where if name in JOINS]
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _join(self, name: str, value: Any, depth: int) -> Filter:
        if name == "$not":
            return Not(self.filter(value, depth))
        if not isinstance(value, list | tuple):
            raise InputError(f"{name} must be a list of filters, got {type(value).__name__}")
        parts = tuple(self.filter(part, depth) for part in value)
        return parts[0] if len(parts) == 1 else AllOf(parts) if name == "$and" else AnyOf(parts)

    def _tests(self, name: str, condition: Any) -> Iterator[FieldComparison]:
        """Yield a comparison for each operator in *condition*: two for ``{"$gt": 1, "$lt": 5}``, one for a text."""
        field = find_field(name) or LABEL
        if field is LABEL:
            check_key(name.removeprefix(PREFIX))
        if isinstance(condition, list | tuple | set | frozenset):
            condition = {"$in": condition}
        if not isinstance(condition, Mapping):
            condition = {"$eq": condition}
        if not condition:
            raise InputError(f"the filter's {name} is empty: give a value, or leave it out")
        allowed = EQUALITIES if field.holds == "text" else EQUALITIES + ORDERS
        for operator, value in condition.items():
            if operator not in allowed:
                raise _unknown_name(f"operator of {name}", operator, allowed)
            self._count("tests")
            yield FieldComparison(name, operator, self._validate_value(name, field, operator, value))

    def _validate_value(self, name: str, field: Field, operator: str, value: Any) -> Plain | tuple[Plain, ...]:
        if operator not in LISTS:
            if value is None and operator in ORDERS:
                raise InputError(f"{operator} of {name} is None: give a value, or leave it out")
            return self._validate_scalar(name, field, value, is_number=operator in ORDERS)
        if not isinstance(value, list | tuple | set | frozenset):
            raise InputError(f"{operator} of {name} must be a list of values, got {type(value).__name__}")
        values = tuple(self._validate_scalar(name, field, item) for item in value)
        return tuple(sorted(values, key=repr)) if isinstance(value, set | frozenset) else values

    def _validate_scalar(self, name: str, field: Field, value: Any, *, is_number: bool = False) -> Plain:
        """Return *value* converted to the type of the field *name*; raise `InputError` if it has another type.

        *is_number*: accept only a number for a label, as the operator ``$gte`` needs.
        """
        self._count("values")
        if isinstance(value, str):
            self._count("characters", len(value))
        if value is None and field.optional:
            return None
        if field.holds == "label" and not is_number:
            return check_label(name, value)
        if field.holds == "time":
            return _parse_time(name, value)
        if field.holds in ("number", "label"):
            return _parse_number(name, value)
        if not isinstance(value, str):
            raise InputError(f"the filter's {name} must be a string or a list of strings, got {value!r:.100}")
        if name in CHOICES and value not in CHOICES[name]:
            raise _unknown_name(name, value, CHOICES[name])
        return str.__str__(value)  # plain text, also for a member of an enum

    def _count(self, kind: str, count: int = 1) -> None:
        self._left[kind] -= count
        if self._left[kind] < 0:
            limits = f"{MAX_TESTS} tests, {MAX_VALUES} values and {MAX_CHARACTERS:,} characters"
            raise InputError(f"the filter has too many {kind}: it may have at most {limits}")


def _parse_time(name: str, value: Any) -> str:
    """Return a datetime or ISO 8601 text as ISO 8601 text in UTC; a time without a zone counts as UTC."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    except (ValueError, OverflowError):
        pass
    raise InputError(
        f"the filter's {name} must be a datetime or ISO 8601 text such as 2024-05-01T10:00:00Z, got {value!r:.100}"
    )


def _parse_number(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise InputError(f"the filter's {name} must be a number, got {value!r:.100}")


def _unknown_name(kind: str, value: object, allowed: tuple[str, ...]) -> InputError:
    near = get_close_matches(str(value).lower()[:100], allowed, 1)
    hint = f"did you mean {near[0]}? Else use" if near else "use"
    return InputError(f"unknown {kind} {value!r:.100} in a filter: {hint} one of {', '.join(allowed)}")
