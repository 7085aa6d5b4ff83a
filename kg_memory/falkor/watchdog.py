"""The keeper of an embedded server: a small process that stops the server once nobody uses it.

Run as ``python -I -S watchdog.py RUN_FOLDER SOCKET``: it imports the standard library only, so it is light and outlives
the environment of the process that began it. Who holds which lock file of the run folder (by flock, so that the kernel
drops the lock of a process that dies, however it dies):

    starting.lock   whoever starts or stops the server, for that long
    users.lock      every client, shared; its text is the idle time that the newest client asked for, in seconds
    keeper.lock     the keeper
    server.lock     the server itself: it inherits the open file from its starter
"""

# Paths are strings here: pathlib would take longer to import than all the rest.
# ruff: noqa: PTH106, PTH108, PTH115, PTH116, PTH118, PTH123
from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
import time

STARTING, USERS, KEEPER, SERVER = "starting.lock", "users.lock", "keeper.lock", "server.lock"
ELSEWHERE = "elsewhere"
"""A link to the private folder with the socket, where the run folder's own path is too long for one."""
GROWN = 1_000_000
"""Bytes appended to the append-only file after which a stop is worth a rewrite (it loads several times faster)."""
LONGEST_PAUSE, SHORTEST_PAUSE = 1.0, 0.05


def lock(path: str, how: int) -> int | None:
    """Open and lock *path*; return its descriptor, or None where *how* does not wait and another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def unlock(descriptor: int) -> None:
    """Give up a lock, also where a fork in another thread copied its descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_held(path: str) -> bool:
    """Tell whether any process holds the lock file *path*."""
    descriptor = lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        return True
    unlock(descriptor)
    return False


def connect(address: str) -> socket.socket | None:
    """Connect to the server at *address*; None where no process listens."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except BaseException:
        link.close()
        raise
    return link


def keep(run: str, address: str) -> None:
    """Go to the background as the keeper of the server at *address*, and stop it when it has been idle."""
    link = connect(address)
    if link is None:
        return
    own = lock(os.path.join(run, KEEPER), fcntl.LOCK_EX)  # the keeper of a server that died leaves within a second
    assert own is not None  # noqa: S101 - it waits
    _detach()
    signal.signal(signal.SIGTERM, lambda _number, _frame: _stop_at_once(address))
    seen, quiet_since, idle = wish(run), time.monotonic(), 0.0
    while not _is_gone(link, min(LONGEST_PAUSE, max(SHORTEST_PAUSE, idle / 10))):
        if _is_lost(os.path.join(run, KEEPER), own):
            os.kill(int(_info(link, "server")["process_id"]), signal.SIGKILL)
            return
        now, newest = time.monotonic(), wish(run)
        idle = newest[1]
        if newest != seen or is_held(os.path.join(run, USERS)):
            seen, quiet_since = newest, now
        elif now - quiet_since >= idle:
            if _stop(run, link, seen):
                return
            quiet_since = time.monotonic()


def wish(run: str) -> tuple[int, float]:
    """Return when the newest client came (a stamp to compare, no clock) and the idle seconds that it asked for."""
    path = os.path.join(run, USERS)
    try:
        with open(path, encoding="ascii") as file:
            return os.stat(path).st_mtime_ns, float(file.read())
    except (OSError, ValueError):
        return 0, 0.0


def _detach() -> None:
    """Leave the parent, its terminal and its folder; the parent returns from waiting, so no zombie stays."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_gone(link: socket.socket, pause: float) -> bool:
    """Wait for *pause* seconds, or until the server closes the connection; tell whether it did."""
    readable, _, _ = select.select([link], [], [], pause)
    return bool(readable) and not _received(link)


def _is_lost(path: str, descriptor: int) -> bool:
    """Tell whether the folder was deleted, moved or replaced.

    Its server must go without an orderly stop, which would remove the socket of the next server by its name.
    """
    try:
        return not os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return True


def _received(link: socket.socket) -> bytes:
    try:
        return link.recv(4096)
    except ConnectionError:
        return b""


def _stop(run: str, link: socket.socket, seen: tuple[int, float]) -> bool:
    """Save and stop the server unless somebody came meanwhile; tell whether it is gone.

    A client that comes now waits for the starting lock, and then starts a server of its own.
    """
    _compact(link)
    starting = lock(os.path.join(run, STARTING), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if starting is None:
        return False
    try:
        if wish(run) != seen or is_held(os.path.join(run, USERS)) or _ask(link, "SHUTDOWN"):
            return False
        _tidy(run)
        return True
    finally:
        unlock(starting)


def _compact(link: socket.socket) -> None:
    """Have the append-only file rewritten as a snapshot if it grew."""
    state = _info(link, "persistence")
    if int(state.get("aof_current_size", 0)) - int(state.get("aof_base_size", 0)) < GROWN:
        return
    _ask(link, "BGREWRITEAOF")
    state = _info(link, "persistence")
    while "1" in (state.get("aof_rewrite_in_progress"), state.get("aof_rewrite_scheduled")):
        time.sleep(SHORTEST_PAUSE)
        state = _info(link, "persistence")


def _info(link: socket.socket, section: str) -> dict[str, str]:
    lines = _ask(link, f"INFO {section}").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _ask(link: socket.socket, command: str) -> str:
    """Return the server's reply to *command*, a line or a bulk string; empty if the server is gone."""
    try:
        link.sendall(command.encode() + b"\r\n")
        with link.makefile("rb") as reply:
            line = reply.readline()
            return (reply.read(int(line[1:]) + 2) if line.startswith(b"$") else line).decode(errors="replace")
    except ConnectionError:
        return ""


def _stop_at_once(address: str) -> None:
    """Stop the server, which saves first: who ends the keeper wants no server that nobody would ever stop."""
    link = connect(address)  # the other connection may be in the middle of a reply
    if link is not None:
        _ask(link, "SHUTDOWN")
    os._exit(0)


def _tidy(run: str) -> None:
    """Remove the private folder of the socket, if there is one."""
    try:
        folder = os.readlink(os.path.join(run, ELSEWHERE))
        os.unlink(os.path.join(run, ELSEWHERE))
        os.rmdir(folder)
    except OSError:
        return  # none, or not ours to remove: nothing depends on it


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2])
