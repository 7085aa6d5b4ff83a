"""A FalkorDB server on 127.0.0.1 and a free port."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from kg_memory.falkor import binaries


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Give the URL of a server that keeps nothing, and ends afterwards."""
    found = binaries.fetch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", "", "--locale-collate", "C"]
    command = [str(found.redis_server), *address, "--loadmodule", str(found.module)]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _await(process, port, folder / "log")
            yield f"falkor://127.0.0.1:{port}"
        finally:
            process.terminate()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the server answers."""
    with redis.Redis(port=port) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            else:
                return
