"""Filters on the values of items: decided here exactly, and by the graph where it can.

``{field: value}`` is equality: of a dict, of the fields that are asked for; of a list, of all in it. Operators are
``$eq $ne $gt $gte $lt $lte``. Several fields must all fit, and a missing one is as one that is None.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition

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


DEEPEST = 200
"""Levels of lists and dicts: a deeper value could be written, and not be read again where the stack is deep already."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATES = re.compile("[\ud800-\udfff]")


def to_json(value: Any, name: str = "value") -> str:
    """Return *value* as JSON text; the database refuses NUL and lone surrogates, so they are escaped in it.

    Errors: `InputError` tells where in *name* something lies that JSON has not.
    """
    _check(value, name)
    try:
        text = _ENCODER.encode(value)
    except ValueError as error:
        raise InputError(f"{name} holds a number of too many digits ({error}): store it as text") from error
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read(text: str) -> Any:
    """Return the value that was `to_json`."""
    return json.loads(text)


def key_of(value: Any) -> str:
    """Return a key for the JSON-plain *value*, of fixed length: an index takes it whatever the value is."""
    return hashlib.sha256(to_json(value).encode()).hexdigest()[:32]


def _check(value: Any, path: str, depth: int = 0) -> None:
    if depth > DEEPEST:
        raise InputError(f"{path[:40]}... is nested too deeply, or holds itself: store a flatter one")
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise InputError(f"{path} has the key {name!r}, a {type(name).__name__}: JSON keys are strings")
            _check(each, f"{path}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _check(each, f"{path}[{index}]", depth + 1)
    elif value is not None and not isinstance(value, str | int | float):
        raise InputError(f"{path} is a {type(value).__name__}: store {_advice(value)}")


def _advice(value: Any) -> str:
    if isinstance(value, Mapping):
        return "dict(...) of it"
    return "strings, numbers, booleans, None, lists and dicts with string keys, such as its text"


Labels = tuple[str, ...]
ANY = "*"
REMEMBERED = 4096


@lru_cache(REMEMBERED)
def prefixes(namespace: Labels) -> tuple[str, ...]:
    """Return the keys of all namespaces that *namespace* lies in, from the root to itself."""
    return tuple(key_of(namespace[:depth]) for depth in range(len(namespace) + 1))


def fixed_prefix(conditions: Iterable[MatchCondition]) -> Labels:
    """Return the longest prefix without a wildcard that *conditions* ask for: the graph finds it by an index."""
    found: Labels = ()
    for condition in conditions:
        path = tuple(condition.path)
        if condition.match_type == "prefix":
            fixed = path[: path.index(ANY)] if ANY in path else path
            found = max(found, fixed, key=len)
    return found


def chosen(namespaces: Iterable[Labels], op: ListNamespacesOp) -> list[Labels]:
    """Return the page of *namespaces* that *op* asks for, sorted, each once."""
    conditions = op.match_conditions or ()
    found = {
        labels if op.max_depth is None else labels[: op.max_depth]
        for labels in namespaces
        if all(_meets(labels, condition) for condition in conditions)
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def checked_labels(namespace: object) -> Labels:
    """Return *namespace* as a tuple; its labels are LangGraph's to check.

    Errors: `InputError` for a string, which would be stored letter by letter.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Iterable):
        raise InputError(f"the namespace is {namespace!r}: give a tuple such as ('users', 'ann')")
    return tuple(namespace)


def check_conditions(conditions: Iterable[MatchCondition]) -> None:
    """Raise `InputError` for a kind of condition that does not exist."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InputError(f"no such match type: {condition.match_type!r}: use 'prefix' or 'suffix'")


def _meets(labels: Labels, condition: MatchCondition) -> bool:
    length = len(condition.path)
    if len(labels) < length:
        return False
    part = labels[:length] if condition.match_type == "prefix" else labels[len(labels) - length :]
    return _same(part, condition.path)


def _same(labels: Sequence[str], pattern: Sequence[str]) -> bool:
    return all(wanted in (ANY, label) for label, wanted in zip(labels, pattern, strict=True))
