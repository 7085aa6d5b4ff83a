"""Validators of arguments that many verbs share."""

from __future__ import annotations

import math
import re
import unicodedata
from reprlib import repr as short

from kg_memory.errors import InputError

DEFAULT_NAMESPACE = "default"
"""The namespace of a call that names none."""
UNFILLED = re.compile(r"\{[\w.\s]*\}")
"""A place of a template that nobody filled, as in ``{user_id}``."""
MAX_COUNT = 10**9
"""The largest number that may be asked for; from 2^63 on, the database refuses it."""
LONGEST_REASON = 2000


def validate_namespace(namespace: object) -> str:
    """Return *namespace*, which may be any string with something in it but ``{user_id}`` and the like.

    ``None``, blank and unfilled ones are no default: users whose id is missing would share a memory.
    Errors: `InputError`.
    """
    if not isinstance(namespace, str) or _is_blank(namespace):
        raise InputError(
            f"namespace must be a non-empty string, got {short(namespace)}; give one, such as a user id, or leave the "
            f"argument out for {DEFAULT_NAMESPACE!r}"
        )
    if unfilled := UNFILLED.search(namespace):
        raise InputError(
            f"namespace must have no unfilled {unfilled[0]!r}, got {short(namespace)}; fill it in, as with "
            "str.format(user_id=...) or an f-string"
        )
    return namespace


def _is_blank(text: str) -> bool:
    """Return whether nothing of *text* can be seen."""
    return all(char.isspace() or unicodedata.category(char) == "Cf" for char in text)


def validate_count(name: str, value: object, least: int = 1) -> int:
    """Return *value*, the argument *name*, which must be a whole number from *least* to `MAX_COUNT`.

    Errors: `InputError`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
        raise InputError(f"{name} must be a whole number from {least} to {MAX_COUNT}, got {value!r}")
    return value


def validate_number(name: str, value: object, least: float, most: float) -> float:
    """Return *value*, the argument *name*, which must be a number from *least* to *most*.

    Errors: `InputError`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} must be a number from {least:.0f} to {most:.0f}, got {value!r}")
    return float(value)


def validate_seconds(name: str, value: object) -> float:
    """Return *value*, the argument *name*, which must be a number of seconds, 0 or more. Errors: `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{name} must be a number of seconds, 0 or more, got {value!r}")
    return float(value)


def validate_text(name: str, value: object, hint: str = "") -> str:
    """Return *value*, the argument *name*, which must be a string, empty or not; *hint* says what to give.

    Errors: `InputError`.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {short(value)}" + (hint and f"; give {hint}"))
    return value


def validate_name(name: str, value: object, hint: str) -> str:
    """Return *value*, the argument *name*, which must be a string with something in it; *hint* says what to give.

    Errors: `InputError`.
    """
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} must be a non-empty string, got {value!r}; give {hint}")
    return value


def validate_names(name: str, value: object, hint: str) -> tuple[str, ...]:
    """Return *value*, the argument *name*, which must be one non-empty string or several, or ``None``, as a tuple.

    Errors: `InputError`.
    """
    values = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        raise InputError(f"{name} must be a string or a list of strings, got {value!r}; give {hint}")
    return tuple(validate_name(name, each, hint) for each in values)


def validate_author(by: object, reason: object) -> None:
    """Check who decides something, and why. Errors: `InputError`."""
    if not isinstance(by, str) or not by.strip():
        raise InputError(f"by must be a name, got {by!r}")
    if len(by) > LONGEST_REASON:
        raise InputError(f"by has {len(by)} characters; use at most {LONGEST_REASON}")
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise InputError(f"reason must be a string of at most {LONGEST_REASON} characters; make it shorter")
