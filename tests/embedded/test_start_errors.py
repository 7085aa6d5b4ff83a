"""Real servers that cannot start, and the advice of their errors."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded.binaries import Binaries
from kg_memory.errors import DatabaseMissing, DatabaseStartError
from tests.embedded import run, small_disk
from tests.waiting import until


def test_join_refuses_file_as_data_folder(tmp_path, found):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DatabaseStartError, match="choose a folder"):
            embedded.join(path, found)


def test_join_refuses_folder_without_permissions(tmp_path, found):
    tmp_path.chmod(0o500)
    root = os.geteuid() == 0
    if root:  # root may write everywhere
        os.seteuid(65534)
    try:
        with pytest.raises(DatabaseStartError, match="change the permissions"):
            embedded.join(tmp_path / "db", found)
    finally:
        if root:
            os.seteuid(0)
        tmp_path.chmod(0o700)


def broken(tmp_path: Path, found: Binaries, change: Callable[[bytearray], None], *, server: bool = False) -> Binaries:
    """Copy the binaries, with the module (or the server) changed."""
    source = found.redis_server if server else found.module
    data = bytearray(source.read_bytes())
    change(data)
    path = tmp_path / source.name
    path.write_bytes(data)
    path.chmod(0o755)
    return Binaries(path, found.module, "a test") if server else Binaries(found.redis_server, path, "a test")


def of_another_machine(data: bytearray) -> None:
    data[18:20] = (183 if data[18] != 183 else 62).to_bytes(2, "little")  # ELF e_machine: AArch64, else x86-64


def without_libgomp(data: bytearray) -> None:
    at = data.index(b"libgomp.so.1\0")
    data[at : at + 12] = b"libgomp.so.9"


@pytest.mark.skipif(sys.platform == "darwin", reason="these are ELF files")
@pytest.mark.parametrize(
    ("change", "server", "advice"),
    [
        (without_libgomp, False, r"libgomp\.so\.9(.|\n)*was not loaded. Install the library that the log names"),
        (of_another_machine, True, "cannot be run .* not made for this machine"),
        (of_another_machine, False, "was not loaded.* damaged, or not made for"),
        (lambda data: data.__delitem__(slice(1000, None)), False, "was not loaded"),
        (lambda data: data.__setitem__(slice(0, 4), b"what"), False, "was not loaded"),
    ],
)
def test_join_explains_binaries_that_do_not_run(folder, found, change, server, advice):
    with pytest.raises(DatabaseMissing, match=advice):
        embedded.join(folder, broken(folder.parent, found, change, server=server))
    assert not embedded.is_running(folder)
    with embedded.join(folder, found, idle_seconds=0) as mended:
        assert mended.started


@pytest.mark.parametrize(("server", "name"), [(False, "falkordb.so"), (True, "redis-server")])
def test_join_explains_binaries_that_are_not_executable(folder, tmp_path, found, server, name):
    copied = broken(tmp_path, found, lambda _: None, server=server)
    (tmp_path / name).chmod(0o644)
    with pytest.raises(DatabaseMissing, match=rf"chmod \+x .*{name}"):
        embedded.join(folder, copied)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("name", ["aof", "run"])
def test_join_refuses_folder_of_another_user(folder, found, name):
    (folder / name).mkdir(parents=True, mode=0o700)
    os.chown(folder / name, 65534, 65534)
    with pytest.raises(DatabaseStartError, match=r"another user \(id 65534\)"):
        embedded.join(folder, found)


def test_join_refuses_folder_writable_by_everybody(folder, found):
    (folder / "run").mkdir(parents=True)
    (folder / "run").chmod(0o777)
    with pytest.raises(DatabaseStartError, match="run 'chmod 700"):
        embedded.join(folder, found)


def test_join_refuses_data_without_manifest_until_restored(folder, found, tmp_path):
    with embedded.join(folder, found, idle_seconds=0) as server:
        run(server, "CREATE (:N)")
    until(lambda: not embedded.is_running(folder))
    manifest = folder / "aof" / "appendonly.aof.manifest"
    manifest.rename(tmp_path / "manifest")
    with pytest.raises(DatabaseStartError, match=r"but no appendonly\.aof\.manifest"):
        embedded.join(folder, found, idle_seconds=0)
    (tmp_path / "manifest").rename(manifest)
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "MATCH (n:N) RETURN count(n)")[0][0] == 1


def damage(folder: Path, found: Binaries, mark: bytes, change: Callable[[int], slice]) -> str:
    """Write a hundred nodes, damage the append-only file near *mark*, and return the error of the next start."""
    with embedded.join(folder, found, idle_seconds=0) as server:
        for number in range(100):
            run(server, f"CREATE (:N {{v: {number}}})")
    until(lambda: not embedded.is_running(folder))
    (file,) = (folder / "aof").glob("*.incr.aof")
    data = bytearray(file.read_bytes())
    place = change(data.index(mark, len(data) // 2))
    data[place] = b"#" * len(data[place])
    file.write_bytes(data)
    with pytest.raises(DatabaseStartError, match="is damaged: restore a backup") as refused:
        embedded.join(folder, found, idle_seconds=0)
    return str(refused.value)


def test_join_refuses_damaged_data_and_advice_repairs_file(folder, found):
    damage(folder / "value", found, b"GRAPH.EFFECT", lambda at: slice(at + 30, at + 50))
    refused = damage(folder, found, b"*", lambda at: slice(at, at + 2))
    (advice,) = [line for line in refused.splitlines() if line.startswith("  bash -c")]
    subprocess.run(shlex.split(advice), input="y\n", text=True, check=True, capture_output=True)
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert 30 < run(server, "MATCH (n:N) RETURN count(n)")[0][0] < 70


def test_join_on_full_disk_raises_clear_error(tmp_path, found):
    with small_disk(tmp_path / "disk", "1600k") as disk:
        (disk / "full").write_bytes(b"x" * 1_500_000)
        with pytest.raises(DatabaseStartError, match="disk is full"):
            embedded.join(disk / "db", found, idle_seconds=0)
