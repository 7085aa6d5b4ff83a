"""Memory systems, a module each: its `open_system` takes the tools and a variant, and returns the system."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kg_memory.contrib.evaluation import plugins
from kg_memory.contrib.evaluation.records import System, Tools


def system_names() -> list[str]:
    """Return the names of the systems."""
    return plugins.names(sys.modules[__name__])


def find_system(name: str) -> Callable[[Tools], System]:
    """Return the function that opens the system *name*, ``name:variant``, or the user's ``package.module:function``.

    Raises: `InputError` if there is none, `MissingExtra` if what it needs is not installed.
    """
    own, _, variant = name.partition(":")
    if own in system_names():
        open_system: Callable[[Tools, str | None], System] = plugins.load(
            sys.modules[__name__], own, "open_system", "system"
        )
        return lambda tools: open_system(tools, variant or None)
    users: Callable[[Tools], System] = plugins.load(sys.modules[__name__], name, "open_system", "system")
    return users
