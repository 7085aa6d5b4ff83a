"""JSON-plain values as text that the database holds, and back: exact, NaN and long numbers too."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from kg_memory.errors import InputError

_SURROGATES = re.compile("[\ud800-\udfff]")


def written(value: Any, name: str = "value") -> str:
    """Return *value* as JSON text; the database refuses NUL and lone surrogates, so they are escaped in it.

    Errors: `InputError` tells where in *name* something lies that JSON has not.
    """
    try:
        _check(value, name)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} is nested too deeply, or holds itself: store a flatter one") from error
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read(text: str) -> Any:
    """Return the value that was `written`."""
    return json.loads(text)


def key_of(value: Any) -> str:
    """Return a key for the JSON-plain *value*, of fixed length: an index takes it whatever the value is."""
    return hashlib.sha256(written(value).encode()).hexdigest()[:32]


def _check(value: Any, path: str) -> None:
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise InputError(f"{path} has the key {name!r}, a {type(name).__name__}: JSON keys are strings")
            _check(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _check(each, f"{path}[{index}]")
    elif value is not None and not isinstance(value, str | int | float):
        raise InputError(f"{path} is a {type(value).__name__}: store {_advice(value)}")


def _advice(value: Any) -> str:
    if isinstance(value, Mapping):
        return "dict(...) of it"
    return "strings, numbers, booleans, None, lists and dicts with string keys, such as its text"
