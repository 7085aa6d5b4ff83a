"""Explain why an embedded server did not start and what to do, from its log, its output, and the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from kg_memory.errors import DatabaseMissing, DatabaseStartError
from kg_memory.falkor.binaries import WAYS_OUT, Binaries

TAIL = 12
LITTLE_SPACE = 1_000_000

MANIFEST = "appendonly.aof.manifest"
EMPTY = 1024
"""The most bytes of the snapshot of an empty database, which is written just before the manifest."""

PACKAGES = {"libgomp": "libgomp1", "libssl": "libssl3", "libcrypto": "libssl3", "libstdc++": "libstdc++6"}
"""The packages of Debian and Ubuntu with the libraries that falkordb.so needs."""


FULL = "the disk is full; free some space, then try again (nothing that was saved is lost)"

SYSTEM = {
    (errno.ENOSPC, errno.EDQUOT): "the disk is full, free some space",
    (errno.EACCES, errno.EPERM): "this user may not write there, change its rights or choose another folder",
    (errno.EROFS,): "the disk is read-only, choose another folder",
    (errno.EEXIST, errno.ENOTDIR): "it is a file or lies in one, choose a folder",
    (errno.ENAMETOOLONG,): "its path is too long, choose a shorter one",
    (errno.ENOLCK, errno.EOPNOTSUPP): "its file system has no locks or sockets, choose a folder on a local disk",
    (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM): "the system is short of files, processes or memory",
}
"""Remedies for errors of the operating system."""


@contextlib.contextmanager
def map_os_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the operating system about *folder* as `DatabaseStartError` with a remedy."""
    try:
        yield
    except OSError as error:
        remedies = (advice for numbers, advice in SYSTEM.items() if error.errno in numbers)
        advice = next(remedies, "fix that, then try again")
        raise DatabaseStartError(f"cannot open the database in {folder} ({error}); {advice}") from error


def check_space(folder: Path) -> None:
    """Refuse a full disk at once: a server would start, and end at the first write that it cannot store."""
    if shutil.disk_usage(folder).free < LITTLE_SPACE:
        raise DatabaseStartError(f"cannot start the database in {folder}: {FULL}")


def check_owner(folder: Path) -> None:
    """Refuse a folder of another user, or that everybody can write: a server of theirs could be in it.

    That a group can write it is not refused: volumes of Kubernetes are that of the pod's own group.
    """
    status = folder.lstat()
    if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
        raise DatabaseStartError(
            f"{folder} belongs to another user (id {status.st_uid}), who could read what is saved there; "
            "run as that user, or choose another folder."
        )
    if status.st_mode & 0o002:
        raise DatabaseStartError(f"{folder} can be written by everybody; run 'chmod 700 {shlex.quote(str(folder))}'.")


def check_manifest(aof: Path) -> None:
    """Refuse data without their manifest: the server would start empty, and write beside them."""
    if (aof / MANIFEST).exists():
        return
    sizes = {file.name: file.stat().st_size for file in aof.iterdir()}
    files = [name for name, size in sizes.items() if size > (EMPTY if name.endswith(".rdb") else 0)]
    if files:
        raise DatabaseStartError(
            f"{aof} has data ({files[0]}), but no {MANIFEST}, without which the server cannot read them: "
            "put back the manifest, or a backup of the whole folder; or move the folder away to begin anew."
        )


def explain_exit(folder: Path, binaries: Binaries, output: str = "") -> DatabaseStartError | DatabaseMissing:
    """Return the error for a server that ended while it started, with its *output*."""
    with contextlib.suppress(OSError):
        output = (folder / "run" / "redis.log").read_text(errors="replace") + output
    tail = _tail(output)
    kind, advice = _advice(output, folder, binaries)
    log = f" Its log ends with:\n{tail}" if tail else " Its log is empty."
    return kind(f"The database server of {folder} ended while it started.{log}\n{advice}")


def explain_end(folder: Path) -> str | None:
    """Return the remedy for a server that ended while it ran, or None if its log has no reason."""
    with contextlib.suppress(OSError):
        tail = _tail((folder / "run" / "redis.log").read_text(errors="replace"))
        if re.search(r"AOF write error|No space left|Disk quota", tail):
            return FULL
    return None


def explain_not_executable(binaries: Binaries, error: OSError) -> DatabaseMissing:
    """Return the error for a redis-server that the system cannot execute."""
    if error.errno == errno.ENOEXEC:
        why = f"it is not made for this machine ({platform.system()}, {platform.machine()})"
    elif error.errno in (errno.EACCES, errno.EPERM):
        name = shlex.quote(str(binaries.redis_server))
        why = f"it is not executable: run 'chmod +x {name}', or mount its disk without noexec"
    else:
        why = str(error)
    return DatabaseMissing(f"{binaries.redis_server} ({binaries.origin}) cannot be run: {why}.\n{WAYS_OUT}")


def explain_unreachable(run: Path) -> DatabaseStartError:
    """Return the error for a server that holds the folder but has lost its socket."""
    with contextlib.suppress(OSError):
        number = (run / "pid").read_text().strip()
        return DatabaseStartError(
            f"A database server (process {number}) still holds {run.parent}, but has no socket; "
            f"end it with 'kill {number}' (it saves first), then try again."
        )
    return DatabaseStartError(
        f"A process still holds {run / 'server.lock'}, but no database server answers; end that process "
        "('fuser' with the file's name shows it), then try again."
    )


def _tail(output: str) -> str:
    """Return the last lines with content, and of a crash its beginning without registers and stacks."""
    head, crash, report = output.partition("=== REDIS BUG REPORT START")
    lines = [line for line in head.splitlines() if line.strip() and "overcommit" not in line][-TAIL:]
    return "\n".join(lines + ((crash + report).splitlines()[:4] if crash else []))


def _advice(output: str, folder: Path, binaries: Binaries) -> tuple[type[DatabaseStartError | DatabaseMissing], str]:
    """Return the class of the error, and the remedy, for the server's *output*."""
    missing = _explain_module(output, binaries)
    if missing:
        return DatabaseMissing, missing
    if re.search(r"No space left|Disk quota", output) or shutil.disk_usage(folder).free < LITTLE_SPACE:
        advice = FULL
    elif re.search(r"Bad file format reading|Unexpected end of file|[Mm]anifest", output):
        advice = _explain_damage(folder, binaries)
    elif re.search(r"while loading from disk|loading the append only|RDB (file|CRC)|Internal error in RDB", output):
        advice = f"The data in {folder / 'aof'} is damaged: put a backup of that folder in its place."
    elif re.search(r"[Ff]ailed opening Unix socket|bind:", output):
        advice = "The folder's file system has no unix sockets: choose a folder on a local disk."
    elif "Permission denied" in output:
        advice = f"Make {folder} and all in it readable and writable for this user, or choose another folder."
    else:
        advice = f"Fix that and try again; the whole log is {folder / 'run' / 'redis.log'}."
    return DatabaseStartError, advice


def _explain_module(output: str, binaries: Binaries) -> str | None:
    """Return why falkordb.so was not loaded, or None if it was, or the server did not come so far."""
    if re.search(r"Module '\w+' loaded from", output):
        return None
    library = re.search(r"((lib[\w+]+)\.so[.\d]*): cannot open shared object file", output)
    if library:
        package = PACKAGES.get(library[2], library[2])
        return f"The library {library[1]} is missing: run 'apt-get install {package}' (Debian, Ubuntu), then try again."
    if re.search(r"version `GLIBC\w*_[\d.]+' not found", output):
        return f"This system's C or C++ library is too old for {binaries.module}.\n{WAYS_OUT}"
    if "execute permissions" in output:
        return f"Run 'chmod +x {shlex.quote(str(binaries.module))}', then try again."
    if "failed to load" in output or "REDIS BUG REPORT" in output:
        return f"{binaries.module} is damaged, or not made for this machine ({platform.machine()}).\n{WAYS_OUT}"
    return None


def _explain_damage(folder: Path, binaries: Binaries) -> str:
    """Return how to repair a damaged append-only file: redis-server checks it when called by the checker's name."""
    manifest = shlex.quote(str(folder / "aof" / MANIFEST))
    command = f"exec -a redis-check-aof {shlex.quote(str(binaries.redis_server))} --fix {manifest}"
    return (
        f"The append-only file is damaged. Copy {folder / 'aof'} to a safe place, then cut the damaged end off with\n"
        f"  bash -c {shlex.quote(command)}\nand try again; or put a backup in its place."
    )
