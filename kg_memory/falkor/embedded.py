"""The embedded server of a data folder: joined where it runs, started where it does not.

A folder holds one database: ``aof/`` is the data, ``run/`` the socket, the log and the locks (see `keeper`, which also
stops the server). All of it is readable by its owner only, and the server has no TCP port.
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

from kg_memory.errors import DatabaseMissing, DatabaseStartError, DatabaseVersionError
from kg_memory.falkor import start_errors
from kg_memory.falkor.binaries import OLDEST_MODULE, WAYS_OUT, Binaries, Say

if sys.platform != "win32":  # which has neither flock nor redis-server; `join` says so
    import fcntl

    from kg_memory.falkor import watchdog

Fsync = Literal["always", "everysec"]

LONGEST_ADDRESS = 100
"""Bytes of a unix socket's path: Linux takes 107, macOS 103."""
PATIENCE = 2.0
"""Seconds of silence after which a wait is reported, again and again."""
LONGEST_DYING = 60.0
QUERY_PLANS = 64
"""How many plans of queries the server keeps for each graph: an agent that adds and searches in turns asks some 40
different queries, of which it would make the plans anew each time where it keeps 25, as by itself."""


class _GoneError(Exception):
    """The server went away while it was waited for."""


class Server:
    """A running embedded server, in use by this process until `close` (or the process's end, however it comes).

    Connect to `url` or `socket`. A forked child is a user too, until it ends.
    """

    def __init__(self, folder: Path, socket: str, users: int, *, started: bool) -> None:
        self.folder = folder
        self.socket = socket
        self.started = started
        """Whether this call started the server, rather than join it."""
        self._users: int | None = users

    @property
    def url(self) -> str:
        return "unix://" + quote(self.socket)

    def close(self) -> None:
        """Stop using the server; it stops by itself when nobody uses it. May be called again."""
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
    say: Say = lambda _: None,
) -> Server:
    """Return the server of *folder*, ready to answer in full: all data loaded, every index built.

    Any number of processes may join one folder; they share one server, which saves and stops *idle_seconds* after the
    last one left (the newest one's wish holds). A server that a crash left is joined, or its remains are cleaned away.
    However long the loading takes, it is waited for, and *say* is told.

    Errors: `DatabaseMissing` (no such thing on this platform), `DatabaseStartError`, `DatabaseVersionError` (a FalkorDB
    that loses data, unless *allow_old*).
    """
    if sys.platform == "win32":
        raise DatabaseMissing(f"There is no embedded FalkorDB for Windows: use WSL, or a server.\n{WAYS_OUT}")
    folder = Path(folder).expanduser().resolve()
    with start_errors.translated(folder):
        run = _prepare(folder)
        start = partial(_start, run, binaries, fsync, say)
        while True:
            server = _enter(run, start, idle_seconds, say)
            try:
                _await(server, fsync, say, allow_old=allow_old)
            except _GoneError:
                server.close()
                if server.started:
                    raise start_errors.explained(folder, binaries) from None
                say("the database server went away while it was joined, starting it again ...")
            except BaseException:
                server.close()
                raise
            else:
                return server


def is_running(folder: Path) -> bool:
    """Tell whether an embedded server runs on *folder*."""
    held = Path(folder).expanduser().resolve() / "run" / watchdog.SERVER
    return held.exists() and watchdog.is_held(str(held))


def _prepare(folder: Path) -> Path:
    """Make the folders, private, and return the one with the locks."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("aof", "run"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    return folder / "run"


def _enter(run: Path, start: Callable[[str], None], idle_seconds: float, say: Say) -> Server:
    """Become a user of the server, starting it and its keeper where there is none."""
    with _starting(run, say):
        users = watchdog.lock(str(run / watchdog.USERS), fcntl.LOCK_SH)
        assert users is not None  # noqa: S101 - it waits
        try:
            os.ftruncate(users, 0)
            os.pwrite(users, str(idle_seconds).encode(), 0)
            socket = next(filter(_answers, _addresses(run)), None)
            started = socket is None
            if socket is None:
                socket = _new_address(run)
                start(socket)
            if started or not watchdog.is_held(str(run / watchdog.KEEPER)):
                _begin_keeper(run, socket)
        except BaseException:
            os.close(users)
            raise
    return Server(run.parent, socket, users, started=started)


@contextlib.contextmanager
def _starting(run: Path, say: Say) -> Iterator[None]:
    """Be the only one to start or stop the server."""
    path = str(run / watchdog.STARTING)
    waiting = _Waiting(say, "waiting for another process to start or stop the database")
    while (held := watchdog.lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)) is None:
        waiting.pause()
    try:
        yield
    finally:
        watchdog.unlock(held)


def _answers(address: str) -> bool:
    link = watchdog.connect(address)
    if link is not None:
        link.close()
    return link is not None


def _addresses(run: Path) -> list[str]:
    """Return where the socket of a running server can be."""
    near, elsewhere = str(run / "socket"), run / watchdog.ELSEWHERE
    found = [near] if _fits(near) else []
    if elsewhere.is_symlink() and _is_private(elsewhere.readlink()):
        found.append(str(elsewhere.readlink() / "socket"))
    return found


def _new_address(run: Path) -> str:
    """Return where to put a socket: a private temporary folder, where the run folder's path is too long for one."""
    near, elsewhere = str(run / "socket"), run / watchdog.ELSEWHERE
    if _fits(near):
        return near
    if not (elsewhere.is_symlink() and _is_private(elsewhere.readlink())):
        elsewhere.unlink(missing_ok=True)
        made = Path(tempfile.mkdtemp(prefix="kg-memory-"))
        elsewhere.symlink_to(made if _fits(str(made / "socket")) else tempfile.mkdtemp(prefix="kg-memory-", dir="/tmp"))
    return str(elsewhere.readlink() / "socket")


def _fits(address: str) -> bool:
    return len(os.fsencode(address)) <= LONGEST_ADDRESS


def _is_private(folder: Path) -> bool:
    """Tell whether *folder* is ours alone: somebody else may have made one of that name since."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _command(run: Path, binaries: Binaries, fsync: Fsync, socket: str) -> list[str]:
    """Return redis-server's command line."""
    threads = max(4, os.cpu_count() or 1)  # with one a core, a few long reads would starve every other graph
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
        "--save": "",  # the append-only file has it all; it is itself rewritten as a snapshot
        "--locale-collate": "C",  # else a locale that is set but not installed keeps the server from starting
    }
    module = ["--loadmodule", str(binaries.module), "THREAD_COUNT", str(threads), "NODE_CREATION_BUFFER", "128"]
    module += ["CACHE_SIZE", str(QUERY_PLANS)]
    module += ["CMD_INFO", "no"]  # else the server keeps the latest queries with all that they say, in a stream
    return [str(binaries.redis_server), *(word for pair in server.items() for word in pair), *module]


def _start(run: Path, binaries: Binaries, fsync: Fsync, say: Say, socket: str) -> None:
    """Start the server and return as soon as it listens; it may go on loading."""
    start_errors.check_space(run.parent)
    held = _own(run, say)
    log = run / "redis.log"
    if log.exists():
        log.replace(run / "redis.log.old")
    try:
        begun = subprocess.run(
            _command(run, binaries, fsync, socket),
            check=False,
            cwd=run.parent,
            pass_fds=[held],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o077,
        )
    except OSError as error:
        raise start_errors.not_executable(binaries, error) from error
    finally:
        os.close(held)  # not unlocked: the server has inherited the lock
    waiting = _Waiting(say, "starting the database server")
    while begun.returncode or not _answers(socket):
        if begun.returncode or not watchdog.is_held(str(run / watchdog.SERVER)):
            raise start_errors.explained(run.parent, binaries, begun.stdout + begun.stderr)
        waiting.pause()


def _own(run: Path, say: Say) -> int:
    """Take the server's lock; a server that was killed, or a process of its own that still writes, is waited for."""
    path, begin = str(run / watchdog.SERVER), time.monotonic()
    waiting = _Waiting(say, "waiting for the former database server to end")
    while (held := watchdog.lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)) is None:
        if time.monotonic() - begin > LONGEST_DYING:
            raise start_errors.unreachable(run)
        waiting.pause()
    return held


def _begin_keeper(run: Path, socket: str) -> None:
    """Begin a keeper, and return when it has its lock."""
    command = [sys.executable, "-I", "-S", watchdog.__file__, str(run), socket]
    begun = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if begun.returncode:
        raise DatabaseStartError(
            "The process that stops the idle database could not be started: check that this command works: "
            + shlex.join(command)
        )


def _await(server: Server, fsync: Fsync, say: Say, *, allow_old: bool) -> None:
    """Wait until the server answers in full."""
    waiting = _Waiting(say, "the database is loading")
    client: Any = redis.Redis(unix_socket_path=server.socket, socket_timeout=PATIENCE, retry=Retry(NoBackoff(), 0))
    with client:
        try:
            _check_version(_patiently(lambda: client.info("modules"), waiting), allow_old=allow_old)
        except DatabaseVersionError:
            if server.started:
                client.shutdown(nosave=True)
            raise
        _patiently(client.ping, waiting)
        if fsync == "always":
            _patiently(lambda: client.config_set("appendfsync", "always"), waiting)
        run_id = str(_patiently(lambda: client.info("server"), waiting)["run_id"])
        ready = server.folder / "run" / "ready"
        if not ready.exists() or ready.read_text() != run_id:
            _await_indices(client, waiting)
            ready.write_text(run_id)


def _await_indices(client: Any, waiting: _Waiting) -> None:
    """Wait for every index of every graph: one that is being built would answer with an error, or short."""
    for graph in _patiently(lambda: client.execute_command("GRAPH.LIST"), waiting):
        while any("UNDER CONSTRUCTION" in status for status in _index_states(client, graph, waiting)):
            waiting.pause("the database is rebuilding its indices")


def _index_states(client: Any, graph: bytes, waiting: _Waiting) -> list[str]:
    query = "CALL db.indexes() YIELD status RETURN status"
    try:
        reply = _patiently(lambda: client.execute_command("GRAPH.RO_QUERY", graph, query), waiting)
    except redis.ResponseError as error:
        if "empty key" in str(error):  # deleted since it was listed
            return []
        raise
    return [row[0].decode() for row in reply[1]]


def _patiently(call: Callable[[], Any], waiting: _Waiting) -> Any:
    """Return the answer to *call*, a read, however long the server is busy loading."""
    while True:
        try:
            return call()
        except (redis.exceptions.BusyLoadingError, redis.TimeoutError):
            waiting.pause()
        except redis.ConnectionError as error:
            raise _GoneError from error


def _check_version(modules: dict[str, Any], *, allow_old: bool) -> None:
    versions = [int(each["ver"]) for each in modules.get("modules", ()) if each["name"] == "graph"]
    if not versions:
        raise DatabaseVersionError(f"The server of this folder has no FalkorDB: end it, and try again.\n{WAYS_OUT}")
    if versions[0] >= OLDEST_MODULE:
        return
    complaint = f"FalkorDB {versions[0]} is older than {OLDEST_MODULE} (4.22.1): it loses data at a restart"
    if not allow_old:
        raise DatabaseVersionError(f"{complaint}. Use another, or set allow_old_falkordb.\n{WAYS_OUT}")
    warnings.warn(f"{complaint}, and ignores half of all changes to vectors: upgrade it", stacklevel=4)


class _Waiting:
    """Pauses in a loop that waits, and reports that it does."""

    def __init__(self, say: Say, what: str) -> None:
        self._say = say
        self._what = what
        self._since = time.monotonic()
        self._next = self._since + PATIENCE
        self._pause = 0.002

    def pause(self, what: str | None = None) -> None:
        """Sleep, at first for a very short time, and speak when it has been long."""
        time.sleep(self._pause)
        self._pause = min(0.1, self._pause * 1.5)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PATIENCE
            self._say(f"{what or self._what} ({now - self._since:.0f} s) ...")
