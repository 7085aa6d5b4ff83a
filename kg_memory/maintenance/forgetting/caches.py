"""What this process keeps at hand of users' texts: cleared when something is forgotten."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from kg_memory.runtime.effects import work
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import clear_caches


def cleared() -> Flow[None]:
    """Clear the vectors, scores, answers and words that this process keeps; those of others last until they end."""
    yield from work(_clear)


def _clear() -> None:
    clear_caches()
    for each in kept_functions():
        each.cache_clear()


def kept_functions() -> list[Any]:
    """Return the functions of ours that keep what they returned for so many texts."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("kg_memory") and module]
    return [each for module in modules for each in vars(module).values() if _keeps(each)]


def _keeps(each: Any) -> bool:
    parameters: Callable[[], dict[str, Any]] | None = getattr(each, "cache_parameters", None)
    return callable(parameters) and parameters()["maxsize"] is not None
