"""JSON-plain values as text that the database holds, and back: exact, NaN and long numbers too."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from kg_memory.errors import InputError

DEEPEST = 200
"""Levels of lists and dicts: a deeper value could be written, and not be read again where the stack is deep already."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATES = re.compile("[\ud800-\udfff]")


def written(value: Any, name: str = "value") -> str:
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
    """Return the value that was `written`."""
    return json.loads(text)


def key_of(value: Any) -> str:
    """Return a key for the JSON-plain *value*, of fixed length: an index takes it whatever the value is."""
    return hashlib.sha256(written(value).encode()).hexdigest()[:32]


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
