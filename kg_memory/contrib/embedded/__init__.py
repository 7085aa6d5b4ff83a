"""The embedded server: a private FalkorDB in a data folder, without a TCP port, shared by all processes of one user."""

from __future__ import annotations

from collections.abc import Callable

from kg_memory.contrib.embedded import binaries, start_errors
from kg_memory.contrib.embedded.binaries import Binaries
from kg_memory.contrib.embedded.server import Server, is_running, join
from kg_memory.settings import Settings

__all__ = ["EmbeddedServer", "Server", "is_running", "join"]

AGAIN = "try again: the next call starts it again"


class EmbeddedServer:
    """The embedded database server of one data folder. `url` starts it, unless it is already running."""

    def __init__(self, settings: Settings, on_wait: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_wait = on_wait
        self._home = binaries.data_home(settings.xdg_data_home)
        self.folder = settings.data_dir or self._home / "database"
        self._server: Server | None = None

    def find(self) -> Binaries:
        """Return the paths of redis-server and the FalkorDB module.

        Errors: `DatabaseMissing` if they are not installed.
        """
        return binaries.find(self._settings.bin_dir, home=self._home)

    def fetch(self) -> Binaries:
        """Return the paths of redis-server and the FalkorDB module; download them if they are missing.

        Errors: `DatabaseMissing`.
        """
        return self.find() if self._settings.bin_dir else binaries.download_missing(self._home, on_wait=self._on_wait)

    def url(self) -> str:
        """Start the server unless it is already running, and return its URL, such as "unix:///home/ann/.../socket"."""
        self.close()
        settings = self._settings
        self._server = join(
            self.folder,
            self.find(),
            fsync=settings.fsync,
            idle_seconds=settings.idle_seconds,
            allow_old=settings.allow_old_falkordb,
            on_wait=self._on_wait,
        )
        return self._server.url

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def advice(self) -> str:
        """Return what the user should do after the server has ended unexpectedly, according to its log."""
        return (self._server and start_errors.explain_end(self._server.folder)) or AGAIN
