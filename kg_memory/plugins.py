"""Find plug-ins among the entry points of installed distributions, by kind and name.

The entry point group of a kind such as ``importers`` is ``kg_memory.importers``; `docs/architecture.md` lists all
kinds. Another distribution adds a plug-in in its ``pyproject.toml``::

    [project.entry-points."kg_memory.importers"]
    acme = "acme_memory:read_acme"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

from kg_memory.errors import SettingsError


def plugin_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of the installed plug-ins of *kind*: ``("memoryd", "zeph")`` for "ontologies"."""
    return tuple(sorted(_entry_points(kind)))


@cache
def load_plugin(kind: str, name: str) -> Any:
    """Import the installed plug-in *name*, and return the function, class or other object that it provides.

    *kind* is the kind of plug-in, such as "ontologies". Raises `SettingsError` if it is not installed.
    """
    plugin = _entry_points(kind).get(name)
    if plugin is None:
        installed = ", ".join(plugin_names(kind)) or "none: install temporal-kg-memory again"
        raise SettingsError(f"no plug-in {name!r} for {kind} is installed; installed are {installed}")
    return plugin.load()


def load_plugins(kind: str) -> list[Any]:
    """Import all installed plug-ins of *kind*, and return the objects that they provide, in order of plug-in names."""
    return [load_plugin(kind, name) for name in plugin_names(kind)]


@cache
def _installed() -> Any:  # the type differs between versions of Python
    # Cached, because reading the metadata of all packages is slow.
    return entry_points()


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _installed().select(group=f"kg_memory.{kind}")}


# Hosts: they know where the database server is, at a URL or on this machine, where a plug-in starts it


class Host(Protocol):
    """Knows the URL of the database server, and starts the server if necessary."""

    def url(self) -> str:
        """Return the server's URL. If the server is embedded and not running, start it first."""

    def close(self) -> None:
        """Release the server, which may stop it. The host must not be used afterwards."""

    def advice(self) -> str:
        """Return instructions for the user if the server cannot be reached, for the end of an error message."""


class LocalHost(Host, Protocol):
    """A host that runs a database server on this machine, with its data in *folder*.

    The plug-in `embedded` of the kind `hosts` provides it.
    """

    folder: Path

    def find(self) -> Any:
        """Find the server's binaries on this machine: an object with `redis_server` and `module` (paths), and `origin`.

        Errors: `DatabaseMissing` if there are none.
        """

    def fetch(self) -> Any:
        """Return the server's binaries, as the method `find` does, but download them first if they are missing.

        Errors: `DatabaseMissing` if they cannot be downloaded.
        """
