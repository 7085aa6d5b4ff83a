"""Validate arguments that many methods have; each function returns the valid value or raises `InputError`."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from reprlib import repr as short
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_memory.errors import InputError, SettingsError

T = TypeVar("T")

DEFAULT_NAMESPACE = "default"
"""The namespace of calls that pass none."""
MOST_NAMESPACES = 20
"""The most namespaces of one search."""
UNFILLED = re.compile(r"\{[\w.\s]*\}")
"""Matches an unfilled place of a template, such as ``{user_id}``."""
MAX_COUNT = 10**9
"""The largest accepted count; the database rejects numbers from 2^63."""
LONGEST_REASON = 2000
LONGEST_SHOWN = 100


def validate_namespace(namespace: object) -> str:
    """Return *namespace* unchanged if it is a valid name; otherwise raise `InputError`."""
    if not isinstance(namespace, str) or all(one.isspace() or unicodedata.category(one) == "Cf" for one in namespace):
        raise InputError(
            f"namespace must be a non-empty string, got {short(namespace)}; give a user id, for example, or leave the "
            f"argument out for {DEFAULT_NAMESPACE!r}"
        )
    if unfilled := UNFILLED.search(namespace):
        raise InputError(
            f"namespace must have no unfilled {unfilled[0]!r}, got {short(namespace)}; fill it in, as with "
            "str.format(user_id=...) or an f-string"
        )
    return namespace


def validate_namespaces(value: object) -> tuple[str, ...]:
    """Return *value*, a namespace or a list of several, as a tuple without repeats.

    Errors: `InputError`.
    """
    given = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
    if not 0 < len(given) <= MOST_NAMESPACES:
        raise InputError(f"namespace must be a name, or a list of 1 to {MOST_NAMESPACES} names, got {short(value)}")
    return tuple(dict.fromkeys(map(validate_namespace, given)))


def validate_choice(
    name: str, value: T, choices: Iterable[Any], *, error: type[Exception] = InputError, hint: str = ""
) -> T:
    """Return *value* if it is one of *choices*; otherwise raise *error*, whose message ends with *hint*."""
    valid = list(choices)
    if value not in valid:
        raise error(f"{name} must be one of {', '.join(map(str, valid))}, got {short(value)}{hint}")
    return value


def validate_count(name: str, value: object, least: int = 1) -> int:
    """Return *value* if it is a whole number from *least* to `MAX_COUNT`; otherwise raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
        raise InputError(f"{name} must be a whole number from {least} to {MAX_COUNT}, got {value!r}")
    return value


def validate_number(name: str, value: object, least: float, most: float) -> float:
    """Return *value* as a float if it is a number from *least* to *most*; otherwise raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} must be a number from {least:.0f} to {most:.0f}, got {value!r}")
    return float(value)


def validate_seconds(name: str, value: object) -> float:
    """Return *value* as a float if it is a finite number, 0 or more; otherwise raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{name} must be a number of seconds, 0 or more, got {value!r}")
    return float(value)


def validate_text(name: str, value: object, hint: str = "") -> str:
    """Return *value* if it is a string, possibly an empty one; otherwise raise `InputError`."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {short(value)}" + (hint and f"; give {hint}"))
    return value


def validate_name(name: str, value: object, hint: str) -> str:
    """Return *value* if it is a non-blank string; otherwise raise `InputError`."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} must be a non-empty string, got {value!r}; give {hint}")
    return value


def validate_names(name: str, value: object, hint: str) -> tuple[str, ...]:
    """Return *value* as a tuple of non-blank strings: ``None -> ()``, ``"Ann" -> ("Ann",)``. Errors: `InputError`."""
    values = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(values, list | tuple | set | frozenset):
        raise InputError(f"{name} must be a string or a list of strings, got {value!r}; give {hint}")
    return tuple(validate_name(name, each, hint) for each in values)


def validate_author(by: object, reason: object) -> None:
    """Raise `InputError` unless *by*, the person who decides, is a non-blank string, and *reason* is a string."""
    if not isinstance(by, str) or not by.strip():
        raise InputError(f"by must be a name, got {by!r}; give the name of who decides")
    if len(by) > LONGEST_REASON:
        raise InputError(f"by has {len(by)} characters; use at most {LONGEST_REASON}")
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise InputError(f"reason must be a string of at most {LONGEST_REASON} characters; make it shorter")


# Values that pydantic validates


def describe_invalid(error: ValidationError, where: str, names: Iterable[str]) -> str:
    """Return the first problem in *error* as a sentence: "the recipe has the unknown field 'limt'; use ..."."""
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    name = ".".join(map(str, first["loc"]))[:LONGEST_SHOWN] or "the value"
    if first["type"] in ("extra_forbidden", "invalid_key"):
        use = ", ".join(names) if len(first["loc"]) == 1 else "another name"
        return f"{where} has the unknown field {name!r}; use {use}"
    if first["type"] == "missing":
        return f"{where} has no {name!r}; add it"
    return f"{name} in {where} is {short(first['input'])}: {first['msg'][0].lower()}{first['msg'][1:]}"


@cache
def _adapter(kind: type) -> TypeAdapter[dict[str, Any]]:
    return TypeAdapter(TypedDict(kind.__name__, get_type_hints(kind, include_extras=True)))  # type: ignore[operator]


def validate_fields(owner: object, prefix: str = "") -> None:
    """Validate each field of the dataclass instance *owner*, and convert it to its type: ``"7"`` to 7.

    The instance is changed in place, even if it is frozen. Errors: `SettingsError`.
    """
    try:
        values = _adapter(type(owner)).validate_python({each.name: getattr(owner, each.name) for each in fields(owner)})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        problem = re.sub("^(Input should|Value error, must)", "must", first["msg"])
        shown = hide_password(first["input"]) if isinstance(first["input"], str) else first["input"]
        raise SettingsError(f"{prefix}{first['loc'][0]} {problem}, got {shown!r}") from None
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def read_variables(
    make: Callable[..., T], names: Iterable[str], environment: Mapping[str, str], prefix: str, given: Mapping[str, Any]
) -> T:
    """Call *make* with arguments from environment variables, and return its result.

    Errors: `SettingsError`.
    """
    values = {name: text for name in names if (text := environment.get(prefix + name.upper()))}
    try:
        return make(**{**given, **values})
    except SettingsError as error:
        name, _, problem = str(error).partition(" ")
        if name not in values:
            raise
        raise SettingsError(f"{prefix}{name.upper()} {problem}; change or unset the variable") from None


def hide_password(url: str) -> str:
    """Return *url* with ``***`` in place of its user and password: ``"falkor://***@host"``."""
    return _PASSWORD.sub("***", url)


_PASSWORD = re.compile(r"(?<=://).*(?=@)|^(?!\w+://).+(?=@)|(?<=password=)[^&]*")
