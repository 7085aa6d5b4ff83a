"""Hosts: where the database server is, at a URL or started on this machine by a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from kg_memory.plugins import load_plugin
from kg_memory.settings import Settings


class Host(Protocol):
    """Finds the URL of the database server, and starts the server first if necessary."""

    def url(self) -> str:
        """Return the server's URL; an embedded server that is not running is started first."""

    def close(self) -> None:
        """Release the server; the host is not used again."""

    def advice(self) -> str:
        """Return the remedy that an error message shows when the server cannot be reached."""


class LocalHost(Host, Protocol):
    """A host that runs a database server on this machine with its data in *folder*.

    It is provided by the plug-in `embedded` of the kind `hosts`.
    """

    folder: Path

    def find(self) -> Any:
        """Return the server's binaries on this machine: `redis_server` and `module` (paths) and their `origin`.

        Errors: `DatabaseMissing` if there are none.
        """

    def fetch(self) -> Any:
        """Return the server's binaries as `find` does, downloading them first if they are missing.

        Errors: `DatabaseMissing` if they cannot be downloaded.
        """


def local_host(settings: Settings, on_wait: Callable[[str], None]) -> LocalHost:
    """Return the host of the embedded server that *settings* describe.

    *on_wait* is called with a message before each long wait, such as a download.
    """
    host: LocalHost = load_plugin("hosts", "embedded")(settings, on_wait)
    return host
