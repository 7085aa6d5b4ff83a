"""A full disk: writes fail with a clear error, no accepted data is lost, and writes work again with free space."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.embedded.server import Fsync
from kg_memory.errors import DatabaseUnavailable
from kg_memory.memory import open as opening
from tests.scripted import HashEmbeddings, Scripted

pytestmark = pytest.mark.system

SETTINGS = Settings(merge_threshold=0.98, ask_threshold=0.6, idle_seconds=0)


class Small(embedded.EmbeddedServer):
    """An embedded server whose files can be kept from growing, as on a full disk."""

    def __init__(self, folder: Path, fsync: Fsync) -> None:
        super().__init__(SETTINGS, lambda _: None)
        self.folder, self._fsync = folder, fsync
        found = binaries.download_missing()
        script = folder.with_name("redis-server")
        script.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec {found.redis_server} \"$@\"\n")  # a write fails, no signal
        script.chmod(0o700)
        self._binaries = replace(found, redis_server=script)

    def url(self) -> str:
        self.close()
        self._server = embedded.join(self.folder, self._binaries, fsync=self._fsync, idle_seconds=0)
        return self._server.url

    def fill(self, left: int) -> None:
        """Leave space for *left* more bytes."""
        self._limit(max(each.stat().st_size for each in (self.folder / "aof").iterdir()) + left)

    def free(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        process = int((self.folder / "run" / "pid").read_text())
        resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def opened(disk: Small, monkeypatch: pytest.MonkeyPatch) -> GraphMemory:
    monkeypatch.setattr(opening, "host", lambda *_: disk)
    return GraphMemory(SETTINGS, model=Scripted(), embeddings=HashEmbeddings())


def contents_and_status(memory: GraphMemory) -> list[tuple[str, str]]:
    return sorted((each.content, each.status) for each in memory.episodes.list())


@pytest.mark.parametrize("left", [0, 100, 3000])
def test_full_disk_stops_server_and_restart_keeps_all_data(tmp_path, monkeypatch, left):
    disk = Small(tmp_path / "db", "always")
    with opened(disk, monkeypatch) as memory:
        memory.add("Ann lives in Oslo.", speaker="Ann", at="2001-01-01")
        before = memory.stats()
        disk.fill(left)
        with pytest.raises(DatabaseUnavailable, match="the disk is full; free some space, then try again"):
            memory.add("Ann knows Bob.", speaker="Ann", at="2001-01-02")
        after = memory.stats()  # by a restarted server, with space
        assert before.facts == after.facts == 1
        memory.episodes.resume()
        memory.add("Ann knows Bob.", speaker="Ann", at="2001-01-02")
        assert contents_and_status(memory) == [("Ann knows Bob.", "done"), ("Ann lives in Oslo.", "done")]
        assert memory.stats().facts == 2


def test_full_disk_with_everysec_refuses_writes_until_freed(tmp_path, monkeypatch):
    disk = Small(tmp_path / "db", "everysec")
    with opened(disk, monkeypatch) as memory:
        memory.add("Ann lives in Oslo.", speaker="Ann", at="2001-01-01")
        disk.fill(100)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match=r"accepts no writes \(MISCONF .*free some space on its disk"):
                memory.add("Ann knows Bob.", speaker="Ann", at="2001-01-02")
        assert memory.stats().facts == 1, "reading goes on"
        disk.free()
        while True:  # the server tries to write by itself, each second
            try:
                memory.add("Ann knows Bob.", speaker="Ann", at="2001-01-02")
            except DatabaseUnavailable:
                continue
            break
        assert contents_and_status(memory) == [("Ann knows Bob.", "done"), ("Ann lives in Oslo.", "done")]
        assert memory.stats().facts == 2
