"""Filters: what must be so of what a search finds, as values that are checked and JSON-plain.

    {"thread": "t1"}                                    one field
    {"predicate": ["LIVES_IN", "WORKS_AT"]}             any of
    {"trust": {"$gte": 0.5}, "speaker": "Ann"}          several fields: all of them
    {"$or": [{"type": "Person"}, {"$not": {"source": "web"}}]}

**What a filter means.** A field belongs to episodes, entities or facts (`FIELDS`), and is followed to other kinds along
the graph. A fact is linked to the episodes that state it and to its entities; an entity to the episodes that mention
it and to the facts about it; an episode to what it states and mentions. A thing passes the fields of one dict if it has
its own among them, and if for each other kind *one* linked thing has all that are of that kind. So ``{"thread": "t1",
"speaker": "Ann"}`` takes a fact that Ann stated in t1; ``{"$and": [{"thread": "t1"}, {"speaker": "Ann"}]}`` also one
that she stated elsewhere, and somebody else in t1. A community passes the fields of one dict if a member of it does.

``$and``, ``$or`` and ``$not`` then join what passes: ``{"$not": {"speaker": "Ann"}}`` is what Ann never said, but
``{"speaker": {"$ne": "Ann"}}`` what somebody else said, even if she did too. An empty dict or ``$and`` passes
everything, an empty ``$or`` or list nothing (``$nin``: everything that is linked).

The times of facts are those of their beliefs: one belief that holds at the time asked about must have them all. Linked
facts count only if they hold then. An open start lies before every time and an open end after every one; ``None`` is
either. An episode without a speaker, thread or source has ``None``, which differs from every text. A name is any name
of an entity, in upper or lower case, and a predicate any spelling of it; other texts are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeKind

Owner = Literal["episode", "entity", "fact", "belief"]
Plain = str | float | None

EQUALITIES = ("$eq", "$ne", "$in", "$nin")
ORDERS = ("$gt", "$gte", "$lt", "$lte")
LISTS = ("$in", "$nin")
JOINS = ("$and", "$or", "$not")
DEEPEST = 8
"""How deep filters may stand within each other."""
MOST_TESTS = 50
MOST_VALUES = 1000
LONGEST = 1_000_000
"""Characters of all texts together."""


class Field(NamedTuple):
    """What a field belongs to, what it holds, and whether it may be missing."""

    of: Owner
    holds: Literal["text", "number", "time"]
    optional: bool = False


FIELDS: Mapping[str, Field] = {
    "thread": Field("episode", "text", optional=True),
    "source": Field("episode", "text", optional=True),
    "source_id": Field("episode", "text", optional=True),
    "speaker": Field("episode", "text", optional=True),
    "kind": Field("episode", "text"),
    "trust": Field("episode", "number"),
    "said_at": Field("episode", "time"),
    "type": Field("entity", "text"),
    "name": Field("entity", "text"),
    "predicate": Field("fact", "text"),
    "edge_type": Field("fact", "text"),
    "confidence": Field("fact", "number"),
    "valid_at": Field("belief", "time", optional=True),
    "invalid_at": Field("belief", "time", optional=True),
    "created_at": Field("belief", "time"),
    "expired_at": Field("belief", "time", optional=True),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """That a field compares so with a value, or with a tuple of values; a time is ISO 8601 text in UTC."""

    field: str
    operator: str
    value: Plain | tuple[Plain, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """The comparisons of one dict, which one thing of each kind must pass."""

    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """That all *parts* pass."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """That one of *parts* passes."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """That *part* does not pass."""

    part: Filter


Filter = Fields | AllOf | AnyOf | Not


def checked(where: Mapping[str, Any] | None) -> Filter | None:
    """Return the filter that *where* describes; ``None`` if it describes none.

    Errors: `InputError` says what is wrong and what may stand there.
    """
    return None if where is None or where == {} else _Reading().filter(where)


def compared(where: Filter) -> Iterator[Comparison]:
    """Yield all that *where* compares."""
    if isinstance(where, Fields):
        yield from where.comparisons
    else:
        for each in (where.part,) if isinstance(where, Not) else where.parts:
            yield from compared(each)


def plain(where: Filter) -> dict[str, Any]:
    """Return *where* as the JSON-plain dict that `checked` makes it of."""
    if isinstance(where, Fields):
        found: dict[str, Any] = {}
        for each in where.comparisons:
            value = list(each.value) if isinstance(each.value, tuple) else each.value
            found.setdefault(each.field, {})[each.operator] = value
        return found
    if isinstance(where, Not):
        return {"$not": plain(where.part)}
    return {"$and" if isinstance(where, AllOf) else "$or": [plain(part) for part in where.parts]}


class _Reading:
    """One reading of a filter, which keeps count of how much it holds."""

    def __init__(self) -> None:
        self._left = {"tests": MOST_TESTS, "values": MOST_VALUES, "characters": LONGEST}

    def filter(self, where: Any, depth: int = 1) -> Filter:
        if not isinstance(where, Mapping):
            raise InputError(f"a filter is a {type(where).__name__}: give a dict such as {{'thread': 't1'}}")
        if depth > DEEPEST:
            raise InputError(f"the filter is deeper than {DEEPEST}: join its parts in fewer $and, $or and $not")
        self._spend("tests")
        for name in where:
            if name not in JOINS and name not in FIELDS:
                raise _unknown("field", name, (*FIELDS, *JOINS))
        tests = tuple(test for name in where if name in FIELDS for test in self._tests(name, where[name]))
        parts: list[Filter] = [Fields(tests)] if tests else []
        parts += [self._join(name, where[name], depth + 1) for name in where if name in JOINS]
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _join(self, name: str, given: Any, depth: int) -> Filter:
        if name == "$not":
            return Not(self.filter(given, depth))
        if not isinstance(given, list | tuple):
            raise InputError(f"{name} has a {type(given).__name__}: give it a list of filters")
        parts = tuple(self.filter(each, depth) for each in given)
        if len(parts) == 1:
            return parts[0]
        return AllOf(parts) if name == "$and" else AnyOf(parts)

    def _tests(self, name: str, given: Any) -> Iterator[Comparison]:
        if isinstance(given, list | tuple | set | frozenset):
            given = {"$in": given}
        if not isinstance(given, Mapping):
            given = {"$eq": given}
        if not given:
            raise InputError(f"the filter's {name} is empty: give a value, or leave it out")
        allowed = EQUALITIES if FIELDS[name].holds == "text" else EQUALITIES + ORDERS
        for operator, value in given.items():
            if operator not in allowed:
                raise _unknown(f"operator of {name}", operator, allowed)
            self._spend("tests")
            yield Comparison(name, operator, self._value(name, operator, value))

    def _value(self, name: str, operator: str, given: Any) -> Plain | tuple[Plain, ...]:
        if operator not in LISTS:
            if given is None and operator in ORDERS:
                raise InputError(f"{operator} of {name} is None: give a value, or leave it out")
            return self._one(name, given)
        if not isinstance(given, list | tuple | set | frozenset):
            raise InputError(f"{operator} of {name} is a {type(given).__name__}: give a list of values")
        values = tuple(self._one(name, each) for each in given)
        return tuple(sorted(values, key=repr)) if isinstance(given, set | frozenset) else values

    def _one(self, name: str, given: Any) -> Plain:
        """Return one value as *name* wants it."""
        self._spend("values")
        if isinstance(given, str):
            self._spend("characters", len(given))
        field = FIELDS[name]
        if given is None and field.optional:
            return None
        if field.holds == "time":
            return _time(name, given)
        if field.holds == "number":
            return _number(name, given)
        if not isinstance(given, str):
            raise InputError(f"the filter's {name} is {given!r:.100}: give a text, or a list of texts")
        if name == "kind" and given not in set(EpisodeKind):
            raise _unknown("kind of episode", given, tuple(EpisodeKind))
        return str.__str__(given)  # a member of an enumeration is its value

    def _spend(self, what: str, count: int = 1) -> None:
        self._left[what] -= count
        if self._left[what] < 0:
            limits = f"{MOST_TESTS} tests, {MOST_VALUES} values and {LONGEST:,} characters"
            raise InputError(f"the filter has too many {what}: it may have {limits}")


def _time(name: str, given: Any) -> str:
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
        if isinstance(moment, datetime):
            return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    except (ValueError, OverflowError):
        pass
    raise InputError(
        f"the filter's {name} is {given!r:.100}: give a datetime or ISO 8601 text such as 2024-05-01T10:00:00Z"
    )


def _number(name: str, given: Any) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            number = float(given)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise InputError(f"the filter's {name} is {given!r:.100}: give a number")


def _unknown(what: str, given: object, allowed: tuple[str, ...]) -> InputError:
    near = get_close_matches(str(given).lower()[:100], allowed, 1)
    hint = f"did you mean {near[0]}? Else use" if near else "use"
    return InputError(f"{given!r:.100} is no {what} of a filter: {hint} one of {', '.join(allowed)}")
