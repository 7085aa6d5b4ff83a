"""Filters, JSON encoding and namespace keys of the items in a `KGStore` (a LangGraph store).

- A filter ``{field: value}`` matches if all fields match; a missing field equals None. ``a.b`` is field ``b`` of ``a``.
- A dict as the value matches if the fields that it names are equal. A list matches if all elements are equal.
- Operators are ``$eq $ne $gt $gte $lt $lte``.
- ``{"$and": [...]}``, ``{"$or": [...]}`` and ``{"$not": {...}}`` combine filters.

The database decides whether scalars are equal, by *marks* (hashes of field and value); the rest is checked here.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition

from kg_memory.errors import InputError

Filter = Mapping[str, Any]
Predicate = Callable[[Any], bool]
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *ORDERS)


JUNCTIONS: Mapping[str, Callable[[Iterable[bool]], bool]] = {"$and": all, "$or": any}
"""The operators that combine a list of filters, with the function that combines the results."""
NOT = "$not"


def compile_filter(conditions: Any) -> Predicate:
    """Compile the filter *conditions* to a function that returns whether a stored dict matches it.

    Errors: `InputError`.
    """
    if not isinstance(conditions, Mapping):
        raise InputError(f"filter must be a dict of fields, got {type(conditions).__name__}")
    tests = [_compile_field(field, condition) for field, condition in conditions.items()]
    return lambda value: all(test(value) for test in tests)


def _compile_field(field: Any, condition: Any) -> Predicate:
    """Compile one entry of a filter, such as ``"age"`` and ``{"$gte": 18}``, to a function that tests a dict."""
    if field == NOT:
        negated = compile_filter(condition)
        return lambda value: not negated(value)
    if isinstance(field, str) and field.startswith("$"):
        if field not in JUNCTIONS:
            raise InputError(f"a filter must name fields, or combine others by $and, $or or $not, got {field!r}")
        if not isinstance(condition, list | tuple) or not condition:
            raise InputError(f"{field} must be a list of filters, got {type(condition).__name__}; list at least one")
        join, parts = JUNCTIONS[field], [compile_filter(part) for part in condition]
        return lambda value: join(part(value) for part in parts)
    test = _compile_condition(condition)
    return lambda value: test(_value_at(value, field))


def _compile_condition(condition: Any) -> Predicate:
    """Compile *condition*, such as ``18`` or ``{"$gte": 18}``, to a function that tests the value of a field."""
    if isinstance(condition, Mapping) and any(isinstance(name, str) and name.startswith("$") for name in condition):
        if unknown := [name for name in condition if name not in OPERATORS]:
            raise InputError(f"operator must be one of {', '.join(OPERATORS)}, got {unknown[0]!r}")
        return lambda value: all(_compare(value, name, operand) for name, operand in condition.items())
    if isinstance(condition, Mapping):
        inner = compile_filter(condition)
        return lambda value: isinstance(value, Mapping) and inner(value)
    if isinstance(condition, list | tuple):
        tests = [_compile_condition(part) for part in condition]
        return lambda value: (
            isinstance(value, list)
            and len(value) == len(tests)
            and all(test(element) for test, element in zip(tests, value, strict=True))
        )
    return lambda value: _equal(value, condition)


def _value_at(value: Mapping[str, Any], field: Any) -> Any:
    if field in value or not isinstance(field, str):
        return value.get(field)
    item: Any = value
    for name in field.split("."):
        item = item.get(name) if isinstance(item, Mapping) else None
    return item


def marks(value: Mapping[str, Any]) -> list[str]:
    """Return a hash of name and value for each field of *value* that is a string, number or boolean."""
    return [_mark(field, item) for field, item in value.items() if _is_scalar(item)]


def split_filter(conditions: Filter) -> tuple[list[str], Filter]:
    """Split a filter into hashes of its equality conditions, which the database checks, and all other conditions."""
    decided: list[str] = []
    rest: dict[str, Any] = {}
    for field, condition in conditions.items():
        equal = condition["$eq"] if isinstance(condition, Mapping) and condition.keys() == {"$eq"} else condition
        plain = isinstance(field, str) and not field.startswith("$") and "." not in field
        if plain and _is_scalar(equal) and equal == equal:  # noqa: PLR0124 - NaN equals nothing
            decided.append(_mark(field, equal))
        else:
            rest[field] = condition
    return decided, rest


def _mark(field: str, value: Any) -> str:
    """Return a hash of a field name and its value: the same for 1 and 1.0, another for True."""
    return hash_value([field, int(value) if isinstance(value, float) and value.is_integer() else value])[:24]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _compare(value: Any, name: str, operand: Any) -> bool:
    """Return whether *value* matches an operator with its *operand*: ``_compare(20, "$gte", 18)`` -> True."""
    if name in ORDERS:
        left, right = _to_number(value), _to_number(operand)
        if left is None or right is None:
            left, right = value, operand
            if not (isinstance(left, str) and isinstance(right, str)):
                return False
        return ORDERS[name](left, right)
    return _equal(value, operand) is (name == "$eq")


def _to_number(value: Any) -> int | float | None:
    """Return a number, or a string that spells one, as a number; None for all other values, also True."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0 but not True, and a tuple equals a list."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(_equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


DEEPEST = 200
"""The deepest nesting of lists and dicts. Reading a deeper value could exceed Python's recursion limit."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATES = re.compile("[\ud800-\udfff]")


def to_stored_json(value: Any, name: str = "value") -> str:
    """Return *value* as JSON text, with NUL and lone surrogates escaped, because the database refuses them.

    Errors: `InputError`.
    """
    _check_json(value, name)
    try:
        text = _ENCODER.encode(value)
    except ValueError as error:
        raise InputError(f"{name} has a number with too many digits ({error}): store it as text") from error
    return _SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_stored_json(text: str) -> Any:
    """Parse JSON text that `to_stored_json` wrote."""
    return json.loads(text)


def hash_value(value: Any) -> str:
    """Return a hash of a JSON-compatible value (32 hex digits), to be used as a key in database indices."""
    return hashlib.sha256(to_stored_json(value).encode()).hexdigest()[:32]


def _check_json(value: Any, path: str, depth: int = 0) -> None:
    """Raise `InputError` if *value* contains a type that JSON lacks, or is nested too deeply; NaN passes."""
    if depth > DEEPEST:
        raise InputError(f"{path[:40]}... is nested too deeply, or contains itself: store a flatter value")
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise InputError(f"{path} has the key {name!r} of type {type(name).__name__}: use a string")
            _check_json(item, f"{path}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_json(item, f"{path}[{index}]", depth + 1)
    elif value is not None and not isinstance(value, str | int | float):
        raise InputError(f"{path} is a {type(value).__name__}, which JSON cannot have: store {_advice(value)}")


def _advice(value: Any) -> str:
    if isinstance(value, Mapping):
        return "dict(...) of it"
    return "strings, numbers, booleans, None, lists and dicts with string keys, such as its text"


Labels = tuple[str, ...]
ANY = "*"
REMEMBERED = 4096


@lru_cache(REMEMBERED)
def prefixes(namespace: Labels) -> tuple[str, ...]:
    """Return the hash keys of a namespace and of all its ancestors, from the root on."""
    return tuple(hash_value(namespace[:depth]) for depth in range(len(namespace) + 1))


def longest_prefix(conditions: Iterable[MatchCondition]) -> Labels:
    """Return the longest prefix that all namespaces matching *conditions* have in common."""
    longest: Labels = ()
    for condition in conditions:
        path = tuple(condition.path)
        if condition.match_type == "prefix":
            longest = max(longest, path[: path.index(ANY)] if ANY in path else path, key=len)
    return longest


def select_namespaces(namespaces: Iterable[Labels], op: ListNamespacesOp) -> list[Labels]:
    """Return the page of *namespaces* that *op* asks for: matching, sorted, and without duplicates."""
    conditions = op.match_conditions or ()
    matching = (labels for labels in namespaces if all(_meets(labels, condition) for condition in conditions))
    return sorted({labels[: op.max_depth] for labels in matching})[op.offset : op.offset + op.limit]


def validate_labels(namespace: object) -> Labels:
    """Return a namespace of the store as a tuple: ``["users", "ann"]`` -> ``("users", "ann")``.

    Errors: `InputError`.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Iterable):
        raise InputError(f"namespace must be a tuple such as ('users', 'ann'), got {namespace!r}")
    return tuple(namespace)


def check_conditions(conditions: Iterable[MatchCondition]) -> None:
    """Raise `InputError` unless each condition is about the prefix or the suffix of a namespace."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InputError(f"match_type must be 'prefix' or 'suffix', got {condition.match_type!r}")


def _meets(labels: Labels, condition: MatchCondition) -> bool:
    length = len(condition.path)
    if len(labels) < length:
        return False
    part = labels[:length] if condition.match_type == "prefix" else labels[len(labels) - length :]
    return all(wanted in (ANY, label) for label, wanted in zip(part, condition.path, strict=True))
