"""A PostgreSQL server on a unix socket, of the programs that Debian installs; skips where there are none."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

PLACE = Path("/usr/lib/postgresql")


@contextmanager
def running() -> Iterator[str]:
    """Give the URL of a new server's databases, which ends with its data afterwards. fsync is on, as it comes."""
    programs = sorted(PLACE.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not programs:
        pytest.skip(f"there is no PostgreSQL in {PLACE}: apt-get install postgresql")
    program = programs[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a path that is short enough for a socket
    data, log = folder / "data", folder / "log"
    try:
        if os.geteuid() == 0:  # which PostgreSQL refuses to run as
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        _run(program / "initdb", "-D", data, "-A", "trust", "-U", "test", "-E", "UTF8", "--locale=C")
        options = f"-k {folder} -c listen_addresses='' -c max_connections=100"
        _run(program / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"host={folder} user=test"
        finally:
            _run(program / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def created(server: str) -> str:
    """Make an empty database on *server* and return its URL."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server} dbname={name}"


def _run(*words: str | Path) -> None:
    """Run a program, as the user postgres if we are root."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryFile("w+") as said:  # a server that starts would keep a pipe open
        command = [*as_user, *map(str, words)]
        done = subprocess.run(command, check=False, cwd="/tmp", stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        said.seek(0)
        assert done.returncode == 0, f"{command}: {said.read()}"
