"""A span for each verb of a memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from kg_memory.runtime import telemetry

C = TypeVar("C", bound=type)


def traced(kind: C) -> C:
    """Have each verb of the class *kind* tell of itself: what works on a namespace and has an ``a`` twin."""
    for name in dir(kind):
        twin = getattr(kind, f"a{name}", None)
        if not name.startswith("_") and callable(twin) and "namespace" in inspect.signature(twin).parameters:
            setattr(kind, name, _sync(name, getattr(kind, name)))
            setattr(kind, f"a{name}", _async(name, twin))
    return kind


def _sync(name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        if not telemetry.is_on():
            return verb(self, *given, **named)
        with telemetry.verb(name, named.get("namespace"), _question(given, named)) as told:
            return told(verb(self, *given, **named))

    return call


def _async(name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    async def call(self: Any, *given: Any, **named: Any) -> Any:
        if not telemetry.is_on():
            return await verb(self, *given, **named)
        with telemetry.verb(name, named.get("namespace"), _question(given, named)) as told:
            return told(await verb(self, *given, **named))

    return call


def _question(given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    asked = given[0] if given else named.get("question")
    return asked if isinstance(asked, str) else None
