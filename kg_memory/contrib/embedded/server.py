"""Join the embedded server of a data folder, or start it if it is not running.

A folder holds one database: ``aof/`` has the data, and ``run/`` the socket, the log and the locks (see `watchdog`,
which also stops the server). Only the owner can read them, and the server has no TCP port.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kg_memory.contrib.embedded import start_errors
from kg_memory.contrib.embedded.binaries import WAYS_OUT, Binaries, OnWait
from kg_memory.errors import DatabaseMissing, DatabaseStartError, DatabaseVersionError
from kg_memory.falkor.connect import OLDEST_MODULE, QUERY_PLANS

if sys.platform != "win32":  # Windows has neither flock nor redis-server; `join` raises there
    import fcntl

    from kg_memory.contrib.embedded import watchdog

Fsync = Literal["always", "everysec"]

LONGEST_ADDRESS = 100
"""The most bytes in the path of a Unix socket; Linux allows 107, macOS 103."""
PATIENCE = 2.0
"""Seconds until a wait is reported, and between reports."""
LONGEST_EXIT = 60.0


class _ServerGoneError(Exception):
    """Raised when the server ends while this process waits for it."""


class Server:
    """A running embedded server, used by this process until `close` is called or the process ends."""

    def __init__(self, folder: Path, socket: str, users: int, *, started: bool) -> None:
        self.folder = folder
        self.socket, self.url = socket, f"unix://{quote(socket)}"
        self.started = started
        """Whether this process started the server rather than joined it."""
        self._users: int | None = users

    def close(self) -> None:
        """Stop using the server; further calls do nothing.

        The server ends by itself some time after its last user has left.
        """
        users, self._users = self._users, None
        if users is not None:
            os.close(users)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def join(
    folder: Path,
    binaries: Binaries,
    *,
    fsync: Fsync = "always",
    idle_seconds: float = 300.0,
    allow_old: bool = False,
    on_wait: OnWait = lambda _: None,
) -> Server:
    """Return the embedded database server of *folder*, started if necessary, once its data is loaded.

    Errors: `DatabaseMissing`, `DatabaseStartError`, `DatabaseVersionError`.
    """
    if sys.platform == "win32":
        raise DatabaseMissing(f"There is no embedded FalkorDB for Windows: use WSL, or a server.\n{WAYS_OUT}")
    folder = Path(folder).expanduser().resolve()
    with start_errors.map_os_errors(folder):
        run = _make_private_folders(folder)
        start = partial(_start, run, binaries, fsync, on_wait)
        while True:
            server = _enter(run, start, idle_seconds, on_wait)
            try:
                _await(server, fsync, on_wait, allow_old=allow_old)
            except _ServerGoneError:
                server.close()
                if server.started:
                    raise start_errors.explain_exit(folder, binaries) from None
                on_wait("the database server ended while it was joined, starting it again ...")
            except BaseException:
                server.close()
                raise
            else:
                return server


def is_running(folder: Path) -> bool:
    """Return whether a process runs the embedded server of the data folder *folder*."""
    held = Path(folder).expanduser().resolve() / "run" / watchdog.SERVER
    return held.exists() and watchdog.is_held(str(held))


def _make_private_folders(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("aof", "run"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
        start_errors.check_owner(folder / name)
    return folder / "run"


def _enter(run: Path, start: Callable[[str], None], idle_seconds: float, on_wait: OnWait) -> Server:
    """Register this process as a user of the server of the folder *run*, starting it if needed; return the server."""
    with _hold_starting_lock(run, on_wait):
        users = watchdog.lock(str(run / watchdog.USERS), fcntl.LOCK_SH)
        assert users is not None  # noqa: S101 - the call waits
        try:
            os.ftruncate(users, 0)
            os.pwrite(users, str(idle_seconds).encode(), 0)
            socket = next(filter(_answers, _possible_addresses(run)), None)
            started = socket is None
            if socket is None:
                socket = _new_address(run)
                start(socket)
            if started or not watchdog.is_held(str(run / watchdog.WATCHDOG)):
                _start_watchdog(run, socket)
        except BaseException:
            os.close(users)
            raise
    return Server(run.parent, socket, users, started=started)


@contextlib.contextmanager
def _hold_starting_lock(run: Path, on_wait: OnWait) -> Iterator[None]:
    path = str(run / watchdog.STARTING)
    waiting = _Waiting(on_wait, "waiting for another process to start or stop the database")
    while (lock := watchdog.lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)) is None:
        waiting.pause()
    try:
        yield
    finally:
        watchdog.unlock(lock)


def _answers(address: str) -> bool:
    link = watchdog.connect(address)
    if link is not None:
        link.close()
    return link is not None


def _possible_addresses(run: Path) -> list[str]:
    near, elsewhere = str(run / "socket"), run / watchdog.ELSEWHERE
    addresses = [near] if _fits(near) else []
    if elsewhere.is_symlink() and _is_private(elsewhere.readlink()):
        addresses.append(str(elsewhere.readlink() / "socket"))
    return addresses


def _new_address(run: Path) -> str:
    near, elsewhere = str(run / "socket"), run / watchdog.ELSEWHERE
    if _fits(near):
        return near
    if not (elsewhere.is_symlink() and _is_private(elsewhere.readlink())):
        elsewhere.unlink(missing_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="kg-memory-"))
        elsewhere.symlink_to(
            folder if _fits(str(folder / "socket")) else tempfile.mkdtemp(prefix="kg-memory-", dir="/tmp")
        )
    return str(elsewhere.readlink() / "socket")


def _fits(address: str) -> bool:
    return len(os.fsencode(address)) <= LONGEST_ADDRESS


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _server_command(run: Path, binaries: Binaries, fsync: Fsync, socket: str) -> list[str]:
    """Return the command line to start redis-server with the FalkorDB module. The server listens only at *socket*."""
    threads = max(4, os.cpu_count() or 1)  # one per core, so that a few long reads do not block other graphs
    server = {
        "--port": "0",
        "--unixsocket": socket,
        "--unixsocketperm": "700",
        "--daemonize": "yes",
        "--dir": str(run.parent),
        "--pidfile": str(run / "pid"),
        "--logfile": str(run / "redis.log"),
        "--appendonly": "yes",
        "--appenddirname": "aof",
        "--appendfsync": fsync,
        "--auto-aof-rewrite-min-size": "16mb",
        "--save": "",  # the append-only file has all data
        "--locale-collate": "C",  # with a locale that is not installed the server would not start
    }
    module = ["--loadmodule", str(binaries.module), "THREAD_COUNT", str(threads), "NODE_CREATION_BUFFER", "128"]
    module += ["CACHE_SIZE", str(QUERY_PLANS)]
    module += ["CMD_INFO", "no"]  # do not log the latest queries with their contents
    return [str(binaries.redis_server), *(word for pair in server.items() for word in pair), *module]


def _start(run: Path, binaries: Binaries, fsync: Fsync, on_wait: OnWait, socket: str) -> None:
    """Start a server, and wait until it accepts connections at the path *socket*; it may still be loading its data."""
    start_errors.check_space(run.parent)
    start_errors.check_manifest(run.parent / "aof")
    lock = _lock_server(run, on_wait)
    log = run / "redis.log"
    if log.exists():
        log.replace(run / "redis.log.old")
    try:
        process = subprocess.run(
            _server_command(run, binaries, fsync, socket),
            check=False,
            cwd=run.parent,
            pass_fds=[lock],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o077,
        )
    except OSError as error:
        raise start_errors.explain_not_executable(binaries, error) from error
    finally:
        os.close(lock)  # do not unlock: the server has inherited the lock
    waiting = _Waiting(on_wait, "starting the database server")
    while process.returncode or not _answers(socket):
        if process.returncode or not watchdog.is_held(str(run / watchdog.SERVER)):
            raise start_errors.explain_exit(run.parent, binaries, process.stdout + process.stderr)
        waiting.pause()


def _lock_server(run: Path, on_wait: OnWait) -> int:
    """Wait for the previous server of the folder *run* to end, and lock; return the file descriptor.

    Errors: `DatabaseStartError` after `LONGEST_EXIT` seconds.
    """
    path, start = str(run / watchdog.SERVER), time.monotonic()
    waiting = _Waiting(on_wait, "waiting for the previous database server to end")
    while (lock := watchdog.lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)) is None:
        if time.monotonic() - start > LONGEST_EXIT:
            raise start_errors.explain_unreachable(run)
        waiting.pause()
    return lock


def _start_watchdog(run: Path, socket: str) -> None:
    """Start the watchdog, a process that stops the server when it is unused; wait until it holds its lock in *run*."""
    command = [sys.executable, "-I", "-S", watchdog.__file__, str(run), socket]
    process = subprocess.run(  # returns when the background process holds its lock
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if process.returncode:
        raise DatabaseStartError(
            "cannot start the process that stops the idle database; check that this command works: "
            + shlex.join(command)
        )


def _await(server: Server, fsync: Fsync, on_wait: OnWait, *, allow_old: bool) -> None:
    """Wait until *server* has loaded its data and built its indices, so that it can be used.

    Errors: `DatabaseVersionError`.
    """
    waiting = _Waiting(on_wait, "the database is loading")
    client: Any = redis.Redis(unix_socket_path=server.socket, socket_timeout=PATIENCE, retry=Retry(NoBackoff(), 0))
    with client:
        try:
            _check_version(_retry_while_loading(lambda: client.info("modules"), waiting), allow_old=allow_old)
        except DatabaseVersionError:
            if server.started:
                client.shutdown(nosave=True)
            raise
        _retry_while_loading(client.ping, waiting)
        if fsync == "always":
            _retry_while_loading(lambda: client.config_set("appendfsync", "always"), waiting)
        run_id = str(_retry_while_loading(lambda: client.info("server"), waiting)["run_id"])
        ready = server.folder / "run" / "ready"
        if not ready.exists() or ready.read_text() != run_id:
            _await_indices(client, waiting)
            ready.write_text(run_id)


def _await_indices(client: Any, waiting: _Waiting) -> None:
    """Wait until all indices of all graphs are built; until then, queries fail or return incomplete results."""
    for graph in _retry_while_loading(lambda: client.execute_command("GRAPH.LIST"), waiting):
        while any("UNDER CONSTRUCTION" in status for status in _index_states(client, graph, waiting)):
            waiting.pause("the database is rebuilding its indices")


def _index_states(client: Any, graph: bytes, waiting: _Waiting) -> list[str]:
    query = "CALL db.indexes() YIELD status RETURN status"
    try:
        reply = _retry_while_loading(lambda: client.execute_command("GRAPH.RO_QUERY", graph, query), waiting)
    except redis.ResponseError as error:
        if "empty key" in str(error):  # the graph was deleted after the list was read
            return []
        raise
    return [row[0].decode() for row in reply[1]]


def _retry_while_loading(call: Callable[[], Any], waiting: _Waiting) -> Any:
    """Return the result of *call*; repeat it, without limit, while the server is loading.

    *call* must be safe to repeat. Errors: `_ServerGoneError` if the connection is lost.
    """
    while True:
        try:
            return call()
        except (redis.exceptions.BusyLoadingError, redis.TimeoutError):
            waiting.pause()
        except redis.ConnectionError as error:
            raise _ServerGoneError from error


def _check_version(modules: dict[str, Any], *, allow_old: bool) -> None:
    versions = [int(module["ver"]) for module in modules.get("modules", ()) if module["name"] == "graph"]
    if not versions:
        raise DatabaseVersionError(
            f"the server of this folder has no FalkorDB module; stop it, then try again.\n{WAYS_OUT}"
        )
    if versions[0] >= OLDEST_MODULE:
        return
    problem = f"FalkorDB {versions[0]} is older than {OLDEST_MODULE} (4.22.1), and loses data at a restart"
    if not allow_old:
        raise DatabaseVersionError(f"{problem}; use a newer one, or set allow_old_falkordb.\n{WAYS_OUT}")
    warnings.warn(f"{problem} and ignores half of all vector updates; upgrade it", stacklevel=4)


class _Waiting:
    """Sleeps between the attempts of a polling loop, and informs the user through *on_wait* if the loop takes long."""

    def __init__(self, on_wait: OnWait, message: str) -> None:
        self._on_wait = on_wait
        self._message = message
        self._since = time.monotonic()
        self._next_report = self._since + PATIENCE
        self._pause = 0.002

    def pause(self, message: str | None = None) -> None:
        """Sleep 2 ms, a little longer at each call, up to 100 ms. Report *message* to the user every two seconds."""
        time.sleep(self._pause)
        self._pause = min(0.1, self._pause * 1.5)
        now = time.monotonic()
        if now >= self._next_report:
            self._next_report = now + PATIENCE
            self._on_wait(f"{message or self._message} ({now - self._since:.0f} s) ...")
