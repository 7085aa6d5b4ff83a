"""The watchdog of an embedded server: a small process that stops the server when it is no longer used.

Run as ``python -I -S watchdog.py RUN_FOLDER SOCKET``. It imports only the standard library, so it is small and survives
the removal of the environment that started it. Locks in the run folder are flocks, which the kernel releases when their
process ends for any reason:

    starting.lock   held while a process starts or stops the server
    users.lock      held, shared, by every client; its text is the idle time in seconds that the latest client set
    keeper.lock     held by the watchdog
    server.lock     held by the server, which inherits the open file from the process that started it
"""

# Paths are strings here, because importing pathlib would take longer than all other imports.
# ruff: noqa: PTH106, PTH108, PTH115, PTH116, PTH118, PTH123
from __future__ import annotations

import fcntl
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress

STARTING, USERS, WATCHDOG, SERVER = "starting.lock", "users.lock", "keeper.lock", "server.lock"
ELSEWHERE = "elsewhere"
"""A link to a private folder with the socket, used if the path of the run folder is too long for a socket."""
REWRITE_SIZE = 1_000_000
"""The growth of the append-only file, in bytes, from which it is rewritten at a stop: it then loads much faster."""
LONGEST_PAUSE, SHORTEST_PAUSE = 1.0, 0.05
FROZEN = 60.0
"""Seconds without an answer after which a server that uses no processor time is killed: its threads wait for each
other, as happens in FalkorDB (issues 2129 and 2623 of its repository)."""


def lock(path: str, how: int) -> int | None:
    """Open the file *path*, lock it, and return its file descriptor.

    If another process holds the lock, wait for it or, with LOCK_NB in *how*, return None.
    """
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
    """Release the lock of the open file *descriptor*, and close it.

    The lock is released even if a fork in another thread has copied the descriptor.
    """
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_held(path: str) -> bool:
    """Return whether a process holds a lock on the file *path*."""
    descriptor = lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        return True
    unlock(descriptor)
    return False


def connect(address: str) -> socket.socket | None:
    """Return a connection to the server at the socket path *address*, or None if it is not listening."""
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


def watch(run: str, address: str) -> None:
    """Start a background process that stops the server once no client has used it for the idle time.

    The calling process exits; the call returns in the background process, after the server has stopped.
    """
    if (link := connect(address)) is None:
        return
    lock_fd = lock(os.path.join(run, WATCHDOG), fcntl.LOCK_EX)  # an earlier watchdog exits within a second
    assert lock_fd is not None  # noqa: S101 - the call waits
    signal.signal(signal.SIGTERM, lambda _number, _frame: _stop_at_once(address))  # the background process inherits it
    _become_daemon()
    seen, quiet_since, idle = read_idle_time(run), time.monotonic(), 0.0
    process = int(_info(link, "server").get("process_id", 0))
    while not _is_gone(link, min(LONGEST_PAUSE, max(SHORTEST_PAUSE, idle / 10))):
        if _is_lost(run, lock_fd) or is_frozen(link, process):
            os.kill(process, signal.SIGKILL)
            return
        now, newest = time.monotonic(), read_idle_time(run)
        idle = newest[1]
        try:
            if newest != seen or is_held(os.path.join(run, USERS)):
                seen, quiet_since = newest, now
            elif now - quiet_since >= idle:
                if _stop(run, link, seen, lock_fd):
                    return
                quiet_since = time.monotonic()
        except FileNotFoundError:  # the folder was just deleted: the next iteration kills the server
            continue


def read_idle_time(run: str) -> tuple[int, float]:
    """Return ``(set_at, seconds)``: how long the server runs without clients, as last set by a client.

    ``set_at`` is in nanoseconds since the epoch. The result is ``(0, 0.0)`` if no client has set it.
    """
    path = os.path.join(run, USERS)
    try:
        with open(path, encoding="ascii") as file:
            return os.stat(path).st_mtime_ns, float(file.read())
    except (OSError, ValueError):
        return 0, 0.0


def is_frozen(link: socket.socket, process: int) -> bool:
    """Ask the server over *link* for a sign of life; return whether all its threads wait for ever."""
    used = _processor_time(process)
    with suppress(ConnectionError):  # then select returns at once
        link.sendall(b"PING\r\n")
    while not select.select([link], [], [], FROZEN)[0]:
        before, used = used, _processor_time(process)
        if 0 <= used - before < 0.01 * FROZEN:  # a difference of infinite times is not
            return True
    _receive(link)
    return False


def _processor_time(process: int) -> float:
    """Return the seconds of processor time that *process* has used; infinity while it is not waiting, or unknown."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            state, *numbers = file.read().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return sum(map(int, numbers[10:12])) / os.sysconf("SC_CLK_TCK") if state == "S" else math.inf


def _become_daemon() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_gone(link: socket.socket, pause: float) -> bool:
    """Wait up to *pause* seconds for the server to close the connection *link*; return whether it did."""
    readable, _, _ = select.select([link], [], [], pause)
    return bool(readable) and not _receive(link)


def _is_lost(run: str, lock_fd: int) -> bool:
    """Return whether the folder *run* was deleted, moved, or replaced by another folder."""
    try:
        return not os.path.samestat(os.stat(os.path.join(run, WATCHDOG)), os.fstat(lock_fd))
    except FileNotFoundError:
        return True


def _receive(link: socket.socket) -> bytes:
    try:
        return link.recv(4096)
    except ConnectionError:
        return b""


def _stop(run: str, link: socket.socket, seen: tuple[int, float], lock_fd: int) -> bool:
    """Save the data and stop the server, unless a client has used it since *seen*; return whether it stopped."""
    _rewrite_append_file(run, link, lock_fd)
    if _is_lost(run, lock_fd):
        return False
    starting = lock(os.path.join(run, STARTING), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if starting is None:
        return False
    try:
        if read_idle_time(run) != seen or is_held(os.path.join(run, USERS)) or _ask_server(link, "SHUTDOWN"):
            return False
        _remove_socket_folder(run)
        return True
    finally:
        unlock(starting)


def _rewrite_append_file(run: str, link: socket.socket, lock_fd: int) -> None:
    aof = _info(link, "persistence")
    if int(aof.get("aof_current_size", 0)) - int(aof.get("aof_base_size", 0)) < REWRITE_SIZE:
        return
    _ask_server(link, "BGREWRITEAOF")
    aof = _info(link, "persistence")
    while "1" in (aof.get("aof_rewrite_in_progress"), aof.get("aof_rewrite_scheduled")) and not _is_lost(run, lock_fd):
        time.sleep(SHORTEST_PAUSE)
        aof = _info(link, "persistence")


def _info(link: socket.socket, section: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in _ask_server(link, f"INFO {section}").splitlines() if ":" in line)


def _ask_server(link: socket.socket, command: str) -> str:
    try:
        link.sendall(command.encode() + b"\r\n")
        with link.makefile("rb") as reply:
            line = reply.readline()
            return (reply.read(int(line[1:]) + 2) if line.startswith(b"$") else line).decode(errors="replace")
    except ConnectionError:
        return ""


def _stop_at_once(address: str) -> None:
    """Handle SIGTERM: save and stop the server at the socket path *address*, and exit."""
    link = connect(address)  # the first connection may be in the middle of a reply
    if link is not None:
        _ask_server(link, "SHUTDOWN")
    os._exit(0)


def _remove_socket_folder(run: str) -> None:
    try:
        folder = os.readlink(os.path.join(run, ELSEWHERE))
        os.unlink(os.path.join(run, ELSEWHERE))
        os.rmdir(folder)
    except OSError:
        return  # it does not exist or belongs to another user, and is not needed


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2])
