"""The place of a server: named by its URL, or embedded in this machine by a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from kg_memory.plugins import load_plugin
from kg_memory.settings import Settings


class Host(Protocol):
    """The place of a server."""

    def url(self) -> str:
        """Return the server's URL, after starting an embedded server if none runs."""

    def close(self) -> None:
        """Stop using the server."""

    def advice(self) -> str:
        """Return what to do where the server cannot be reached."""


class LocalHost(Host, Protocol):
    """A server that runs on this machine in a *folder*: the plug-in `embedded` of the kind `hosts`."""

    folder: Path

    def find(self) -> Any:
        """Return the paths of its `redis_server` and `module`, and their `origin`. Errors: `DatabaseMissing`."""

    def fetch(self) -> Any:
        """Return the same, after downloading them if they are not there. Errors: `DatabaseMissing`."""


def local_host(settings: Settings, on_wait: Callable[[str], None]) -> LocalHost:
    """Return the embedded server of *settings*; *on_wait* is called with a message at each long wait."""
    host: LocalHost = load_plugin("hosts", "embedded")(settings, on_wait)
    return host
