"""Filters on the values of items: decided here exactly, and by the graph where it can.

``{field: value}`` is equality: of a dict, of the fields that are asked for; of a list, of all in it. Operators are
``$eq $ne $gt $gte $lt $lte``. Several fields must all fit, and a missing one is as one that is None.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from kg_memory.adapters.store.items.plain import key_of
from kg_memory.errors import InputError

Filter = Mapping[str, Any]
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le,
}  # fmt: skip
OPERATORS = ("$eq", "$ne", *ORDERS)


def check(given: Any) -> None:
    """Raise `InputError` for a filter that is none, or has an operator that does not exist."""
    if not isinstance(given, Mapping):
        raise InputError(f"the filter is a {type(given).__name__}: give a dict of fields")
    for wanted in given.values():
        if _is_operators(wanted):
            unknown = [name for name in wanted if name not in OPERATORS]
            if unknown:
                raise InputError(f"the filter has {unknown[0]!r}, which is no operator: use {', '.join(OPERATORS)}")
        elif isinstance(wanted, Mapping):
            check(wanted)


def matches(value: Mapping[str, Any], wanted: Filter) -> bool:
    """Tell whether the item's *value* fits the filter."""
    return all(_fits(value.get(field), each) for field, each in wanted.items())


def marks(value: Mapping[str, Any]) -> list[str]:
    """Return a mark for each field of *value* that holds a string, a number or a boolean."""
    return [_mark(field, each) for field, each in value.items() if _is_scalar(each)]


def divided(wanted: Filter) -> tuple[list[str], Filter]:
    """Return the marks that a fitting item must have, and the part of the filter that they do not decide."""
    decided: list[str] = []
    rest: dict[str, Any] = {}
    for field, each in wanted.items():
        equal = each["$eq"] if isinstance(each, Mapping) and each.keys() == {"$eq"} else each
        if isinstance(field, str) and _is_scalar(equal) and equal == equal:  # noqa: PLR0124 - NaN equals nothing
            decided.append(_mark(field, equal))
        else:
            rest[field] = each
    return decided, rest


def _mark(field: str, value: Any) -> str:
    """Return a mark that two equal values share: 1 and 1.0 are equal, True is neither."""
    whole = isinstance(value, float) and value.is_integer()
    return key_of([field, int(value) if whole else value])[:24]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_operators(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(isinstance(name, str) and name.startswith("$") for name in wanted)


def _fits(value: Any, wanted: Any) -> bool:
    if _is_operators(wanted):
        return all(_compare(value, name, each) for name, each in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_fits(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return _equal(value, wanted)


def _compare(value: Any, name: str, wanted: Any) -> bool:
    if name in ORDERS:
        one, other = _number(value), _number(wanted)
        if one is None or other is None:
            one, other = value, wanted
            if not (isinstance(one, str) and isinstance(other, str)):
                return False
        return ORDERS[name](one, other)
    return _equal(value, wanted) is (name == "$eq")


def _number(value: Any) -> int | float | None:
    """Return the number that *value* is or spells: "10" comes after "9"; dates and words are ordered as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal as JSON has it: True is not 1, but 1 is 1.0; a tuple is a list."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
