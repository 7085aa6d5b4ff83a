"""Hosts: they know where the database server is, at a URL or on this machine, where a plug-in starts it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from kg_memory.plugins import load_plugin
from kg_memory.settings import Settings


class Host(Protocol):
    """Knows the URL of the database server, and starts the server if necessary."""

    def url(self) -> str:
        """Return the server's URL. If the server is embedded and not running, start it first."""

    def close(self) -> None:
        """Release the server, which may stop it. The host must not be used afterwards."""

    def advice(self) -> str:
        """Return what users should do if the server cannot be reached, for the end of an error message."""


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
        """Return the server's binaries like `find`; download them first if they are missing.

        Errors: `DatabaseMissing` if they cannot be downloaded.
        """


def local_host(settings: Settings, on_wait: Callable[[str], None]) -> LocalHost:
    """Return the host that runs the embedded database server according to *settings*.

    *on_wait* is called with a message before each long wait, such as a download.
    """
    host: LocalHost = load_plugin("hosts", "embedded")(settings, on_wait)
    return host
