"""Find plug-ins among the entry points of installed distributions, by kind and name.

The entry point group of a kind such as ``importers`` is ``kg_memory.importers``; `docs/architecture.md` lists all
kinds. Another distribution adds a plug-in in its ``pyproject.toml``::

    [project.entry-points."kg_memory.importers"]
    acme = "acme_memory:read_acme"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kg_memory.errors import SettingsError


def plugin_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of the installed plug-ins of *kind*: ``("memoryd", "zeph")`` for "ontologies"."""
    return tuple(sorted(_plugins(kind)))


@cache
def load_plugin(kind: str, name: str) -> Any:
    """Import the installed plug-in *name*, and return the function, class or other object that it provides.

    *kind* is the kind of plug-in, such as "ontologies". Raises `SettingsError` if it is not installed.
    """
    plugin = _plugins(kind).get(name)
    if plugin is None:
        installed = ", ".join(plugin_names(kind)) or "none: install temporal-kg-memory again"
        raise SettingsError(f"no plug-in {name!r} for {kind} is installed; installed are {installed}")
    return plugin.load()


def load_plugins(kind: str) -> list[Any]:
    """Import all installed plug-ins of *kind*, and return the objects that they provide, in order of plug-in names."""
    return [load_plugin(kind, name) for name in plugin_names(kind)]


@cache
def _installed() -> Any:  # the type differs between versions of Python
    """Return the entry points of all installed packages; cached, because reading them is slow."""
    return entry_points()


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of the installed plug-ins of *kind*, such as "ontologies", as ``{name: entry point}``."""
    return {point.name: point for point in _installed().select(group=f"kg_memory.{kind}")}
