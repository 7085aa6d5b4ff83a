"""Run a PostgreSQL server on a Unix socket, from the programs of Debian's package; tests are skipped without them."""

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

POSTGRES_DIR = Path("/usr/lib/postgresql")


@contextmanager
def run_server() -> Iterator[str]:
    """Run a PostgreSQL server with fsync in the with block, and yield its connection string.

    Its data is deleted at the end.
    """
    programs = sorted(POSTGRES_DIR.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not programs:
        pytest.skip(f"no PostgreSQL in {POSTGRES_DIR}: apt-get install postgresql")
    program = programs[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short enough for the path of a socket
    data, log = folder / "data", folder / "log"
    try:
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
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


def create_database(server: str) -> str:
    """Create an empty database on *server* and return its connection string."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server} dbname={name}"


def _run(*words: str | Path) -> None:
    """Run a program, as the user postgres if this process is root."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryFile("w+") as output:  # a starting server would keep a pipe open
        command = [*as_user, *map(str, words)]
        process = subprocess.run(
            command, check=False, cwd=tempfile.gettempdir(), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        output.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{command}: {output.read()}")
