"""The embedded server is killed at every command of a run: the client raises, and its next call restarts the server."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.falkor.connect import Database
from kg_memory.memory import open as opening
from tests.faults.cutting import Open, add_at_every_command, save_at_every_command
from tests.faults.proxy import Plan, Proxy
from tests.faults.whole import Tenant
from tests.scripted import At, HashEmbeddings, Scripted

pytestmark = pytest.mark.system


class Behind:
    """The embedded server of a folder, behind a proxy; each command may be its last."""

    def __init__(self, folder: Path) -> None:
        self.plan = Plan(self.kill)
        self.proxy = Proxy(self.plan)
        self.server: embedded.Server
        self._folder = folder

    def url(self) -> str:
        """Join the server, or start it again, as the memory's own host does."""
        self.server = embedded.join(self._folder, binaries.download_missing(), idle_seconds=0)
        self.proxy.upstream = self.server.socket
        return self.proxy.url

    def close(self) -> None:
        self.server.close()

    def advice(self) -> str:
        return embedded.AGAIN

    def kill(self) -> None:
        os.kill(int((self._folder / "run" / "pid").read_text()), signal.SIGKILL)

    def direct(self) -> Database:
        """Connect to the running server without the proxy."""
        return Database(At(self.server))


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("killed")
    made = Behind(folder)
    with made.proxy, embedded.join(folder, binaries.download_missing(), idle_seconds=0):
        made.url()
        yield made
        made.close()


@pytest.fixture
def opened(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Return a function that opens a memory behind the proxy."""
    monkeypatch.setattr(opening, "host", lambda *_: behind)
    settings = Settings(merge_threshold=0.98, ask_threshold=0.6)
    return lambda: GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings())


def test_server_killed_in_first_save_loses_nothing(behind, opened):
    save_at_every_command(behind.plan, Tenant(behind.direct), opened, "unanswered")


@pytest.mark.parametrize("how", ["unsent", "unanswered"])
def test_server_killed_in_add_loses_nothing_and_pays_once(behind, opened, how):
    add_at_every_command(behind.plan, Tenant(behind.direct), opened, how)
