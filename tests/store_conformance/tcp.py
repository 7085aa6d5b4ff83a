"""A FalkorDB server on 127.0.0.1 and a free port."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from kg_memory.contrib.embedded import binaries


@contextmanager
def run_server(folder: Path) -> Iterator[str]:
    """Run a server without persistence and yield its URL."""
    programs = binaries.download_missing()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", "", "--locale-collate", "C"]
    command = [str(programs.redis_server), *address, "--loadmodule", str(programs.module)]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_ready(process, port, folder / "log")
            yield f"falkor://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the server answers."""
    with redis.Redis(port=port) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            else:
                return
