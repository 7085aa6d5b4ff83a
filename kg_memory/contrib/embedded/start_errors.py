"""Explain why an embedded server did not start, from its log, its output and the disk, and what the user can do."""

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

from kg_memory.contrib.embedded.binaries import WAYS_OUT, Binaries
from kg_memory.errors import DatabaseMissing, DatabaseStartError

TAIL = 12
LITTLE_SPACE = 1_000_000

MANIFEST = "appendonly.aof.manifest"
EMPTY = 1024
"""The most bytes of the snapshot of an empty database, which is written before the manifest."""

FULL = "the disk is full; free some space, then try again (saved data is not lost)"
LOADED = r"Module '\w+' loaded from"
NOT_LOADED = r"cannot open shared object file|version `GLIBC|execute permissions|failed to load|REDIS BUG REPORT"
DAMAGED = (
    r"Bad file format reading|Unexpected end of file|[Mm]anifest|while loading from disk|loading the append only"
    r"|RDB (file|CRC)|Internal error in RDB"
)
"""Log messages of a server that cannot load falkordb.so, or its data."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
NO_RIGHTS = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextlib.contextmanager
def map_os_errors(folder: Path) -> Iterator[None]:
    """Context manager: convert an `OSError` of the body to a `DatabaseStartError` about *folder*, with advice."""
    try:
        yield
    except OSError as error:
        advice = "fix this error, or choose a folder on a local disk"
        if error.errno in NO_SPACE:
            advice = FULL
        elif error.errno in NO_RIGHTS:
            advice = "this user may not write there; change the permissions, or choose another folder"
        raise DatabaseStartError(f"cannot open the database in {folder} ({error}); {advice}") from error


def check_space(folder: Path) -> None:
    """Raise `DatabaseStartError` if the disk of *folder* is full: the server would fail at its first write."""
    if shutil.disk_usage(folder).free < LITTLE_SPACE:
        raise DatabaseStartError(f"cannot start the database in {folder}: {FULL}")


def check_owner(folder: Path) -> None:
    """Raise `DatabaseStartError` if *folder* belongs to another user, or if all users may write to it."""
    status = folder.lstat()
    if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
        raise DatabaseStartError(
            f"{folder} belongs to another user (id {status.st_uid}), who could read the data; "
            "run as that user, or choose another folder."
        )
    if status.st_mode & 0o002:
        raise DatabaseStartError(f"{folder} is writable for all users; run 'chmod 700 {shlex.quote(str(folder))}'.")


def check_manifest(aof: Path) -> None:
    """Raise `DatabaseStartError` if the folder *aof* has data files but lacks the manifest that lists them.

    Without the manifest, the server would start with an empty database and write new data beside the old.
    """
    if (aof / MANIFEST).exists():
        return
    sizes = {file.name: file.stat().st_size for file in aof.iterdir()}
    files = [name for name, size in sizes.items() if size > (EMPTY if name.endswith(".rdb") else 0)]
    if files:
        raise DatabaseStartError(
            f"{aof} has data ({files[0]}), but no {MANIFEST}, without which the server cannot read it: "
            "restore the manifest, or a backup of the whole folder; or move the folder away to start empty."
        )


def explain_exit(folder: Path, binaries: Binaries, output: str = "") -> DatabaseStartError | DatabaseMissing:
    """Return the exception to raise if a server ended during its start, with the end of its log and advice."""
    with contextlib.suppress(OSError):
        output = (folder / "run" / "redis.log").read_text(errors="replace") + output
    tail = _tail(output)
    kind, advice = _advice(output, folder, binaries)
    log = f" Its log ends with:\n{tail}" if tail else " Its log is empty."
    return kind(f"The database server of {folder} ended during its start.{log}\n{advice}")


def explain_end(folder: Path) -> str | None:
    """Return advice about a server that ended while it was in use; None if its log does not show the reason.

    *folder* is the data folder of the server.
    """
    with contextlib.suppress(OSError):
        tail = _tail((folder / "run" / "redis.log").read_text(errors="replace"))
        if re.search(r"AOF write error|No space left|Disk quota", tail):
            return FULL
    return None


def explain_not_executable(binaries: Binaries, error: OSError) -> DatabaseMissing:
    """Return the exception to raise if the operating system refused to execute redis-server with *error*."""
    name = shlex.quote(str(binaries.redis_server))
    return DatabaseMissing(
        f"{binaries.redis_server} ({binaries.origin}) cannot be run ({error}): run 'chmod +x {name}', or replace it if "
        f"it is not made for this machine ({platform.machine()}).\n{WAYS_OUT}"
    )


def explain_unreachable(run: Path) -> DatabaseStartError:
    """Return the exception to raise if a server is still running in the folder *run*, but its socket was deleted."""
    return DatabaseStartError(
        f"A database server still holds {run.parent}, but has no socket; end its process, whose id is in "
        f"{run / 'pid'} (it saves its data first), then try again."
    )


def _tail(output: str) -> str:
    """Return the last `TAIL` lines of a server's log and, after a crash, the start of its crash report."""
    head, crash, report = output.partition("=== REDIS BUG REPORT START")
    lines = [line for line in head.splitlines() if line.strip() and "overcommit" not in line][-TAIL:]
    return "\n".join(lines + ((crash + report).splitlines()[:4] if crash else []))


def _advice(output: str, folder: Path, binaries: Binaries) -> tuple[type[DatabaseStartError | DatabaseMissing], str]:
    """Return the class of the exception to raise, and advice for the user, chosen by the errors in *output*."""
    if re.search(NOT_LOADED, output) and not re.search(LOADED, output):
        return DatabaseMissing, (
            f"{binaries.module} was not loaded. Install the library that the log names (Debian, Ubuntu: libgomp1, "
            f"libssl3, libstdc++6); run 'chmod +x {shlex.quote(str(binaries.module))}' if it is not executable; "
            f"replace it if it is damaged, or not made for this machine ({platform.machine()}).\n{WAYS_OUT}"
        )
    if re.search(r"No space left|Disk quota", output) or shutil.disk_usage(folder).free < LITTLE_SPACE:
        advice = FULL
    elif re.search(DAMAGED, output):
        advice = _explain_damage(folder, binaries)
    elif re.search(r"[Ff]ailed opening Unix socket|bind:|Permission denied", output):
        advice = f"Make {folder} and all files in it writable for this user, or choose a folder on a local disk."
    else:
        advice = f"Fix this error and try again; the whole log is {folder / 'run' / 'redis.log'}."
    return DatabaseStartError, advice


def _explain_damage(folder: Path, binaries: Binaries) -> str:
    manifest = shlex.quote(str(folder / "aof" / MANIFEST))
    # redis-server is the repair tool if it is run under the name of that tool.
    command = f"exec -a redis-check-aof {shlex.quote(str(binaries.redis_server))} --fix {manifest}"
    return (
        f"The data in {folder / 'aof'} is damaged: restore a backup of that folder. Without a backup, copy the folder "
        f"to a safe place, then cut off a damaged end with\n  bash -c {shlex.quote(command)}\nand try again."
    )
