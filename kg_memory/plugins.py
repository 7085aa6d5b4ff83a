"""Find plug-ins by kind and name among the entry points of the installed distributions.

The group of an entry point is ``kg_memory.`` and the kind, such as ``importers``; `docs/architecture.md` has all kinds.
A distribution of its own adds a plug-in the same way::

    [project.entry-points."kg_memory.importers"]
    acme = "acme_memory:read_acme"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kg_memory.errors import SettingsError


def plugin_names(kind: str) -> tuple[str, ...]:
    """Return the names of the installed plug-ins of *kind*, sorted."""
    return tuple(sorted(_plugins(kind)))


@cache
def load_plugin(kind: str, name: str) -> Any:
    """Return the object that the plug-in *name* of *kind* names, and import its module.

    Raises: `SettingsError` if no such plug-in is installed.
    """
    plugin = _plugins(kind).get(name)
    if plugin is None:
        installed = ", ".join(plugin_names(kind)) or "none: install temporal-kg-memory again"
        raise SettingsError(f"no plug-in {name!r} for {kind} is installed; installed are {installed}")
    return plugin.load()


def load_plugins(kind: str) -> list[Any]:
    """Return the objects that all installed plug-ins of *kind* name, sorted by the plug-ins' names."""
    return [load_plugin(kind, name) for name in plugin_names(kind)]


@cache
def _installed() -> Any:  # its type differs between versions of Python
    return entry_points()  # looks through all distributions, whatever the group


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _installed().select(group=f"kg_memory.{kind}")}
