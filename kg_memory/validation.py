"""Validators of arguments that many verbs share."""

from __future__ import annotations

from reprlib import repr as short

from kg_memory.errors import InputError

DEFAULT_NAMESPACE = "default"
MAX_COUNT = 10**9
"""The largest number that may be asked for; from 2^63 on, the database refuses it."""
LONGEST_REASON = 2000


def validate_namespace(namespace: object) -> str:
    """Return *namespace*, which may be any string that is not empty; ``None`` is the default one.

    Errors: `InputError`.
    """
    if namespace is None:
        return DEFAULT_NAMESPACE
    if not isinstance(namespace, str) or not namespace:
        raise InputError(f"namespace must be a non-empty string, got {namespace!r}; give one, such as a user id")
    return namespace


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


def validate_author(by: object, reason: object) -> None:
    """Check who decides something, and why. Errors: `InputError`."""
    if not isinstance(by, str) or not by.strip():
        raise InputError(f"by must be a name, got {by!r}")
    if len(by) > LONGEST_REASON:
        raise InputError(f"by has {len(by)} characters; use at most {LONGEST_REASON}")
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise InputError(f"reason must be a string of at most {LONGEST_REASON} characters; make it shorter")
