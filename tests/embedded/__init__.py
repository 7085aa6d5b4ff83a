"""Helpers to query, inspect and kill embedded servers."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kg_memory.contrib.embedded import Server
from tests.waiting import until


def connected(server: Server) -> redis.Redis:
    return redis.Redis.from_url(server.url, retry=Retry(NoBackoff(), 0))


def run(server: Server, cypher: str) -> list[list[Any]]:
    with connected(server) as client:
        reply = client.execute_command("GRAPH.QUERY", "g", cypher)
        return reply[1] if len(reply) == 3 else []


def pid(server: Server) -> int:
    with connected(server) as client:
        return int(client.info()["process_id"])


def kill(server: Server) -> None:
    os.kill(pid(server), signal.SIGKILL)


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """Yield *path* as a disk of *size*; skip the test if none can be mounted."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield path
    until(lambda: subprocess.run(["umount", str(path)], check=False, capture_output=True).returncode == 0)
