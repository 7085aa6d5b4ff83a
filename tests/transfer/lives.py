"""A warm process that forks a child for each life: one that exports or imports, and may be killed at any command."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Self

from kg_memory import GraphMemory, Settings
from tests.scripted import HashEmbeddings, Scripted

ROOT = Path(__file__).parents[2]
SERVE = "import sys; from tests.transfer.lives import serve; serve(*sys.argv[1:])"
KEPT, NEW = "kept", "new"


class Lives:
    """Has children do *verbs* on the database at *url*, with files in *folder*; see `serve`."""

    def __init__(self, url: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, url, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._born = threading.Event()
        self._child = 0
        assert self._told() == "ready"

    def live(self, verb: str) -> int:
        """Let a child do *verb*, and return its status, negative for a signal."""
        assert self._process.stdin
        self._process.stdin.write(verb + "\n")
        self._process.stdin.flush()
        self._child = int(self._told())
        self._born.set()
        ended = int(self._told())
        self._born.clear()
        return ended

    def kill(self) -> None:
        """Kill the child that is alive, with no last word."""
        assert self._born.wait(20)
        os.kill(self._child, 9)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(20) == 0

    def _told(self) -> str:
        assert self._process.stdout
        told = self._process.stdout.readline().strip()
        assert told, "the process ended"
        return told


def serve(url: str, folder: str) -> None:
    """Fork a child for each verb that is read; tell its process id, and its status when it has ended."""
    memory = GraphMemory(Settings(url=url), model=Scripted(), embeddings=HashEmbeddings())
    tell("ready")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            tell(str(os.getpid()))
            _live(memory, line.strip(), Path(folder))
        tell(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _live(memory: GraphMemory, verb: str, folder: Path) -> None:
    status = 1
    try:
        if verb == "export":
            memory.export(folder / "out.jsonl", namespace=KEPT)
        else:
            memory.import_(folder / "in.jsonl", namespace=NEW if verb == "import" else KEPT, replace=verb == "replace")
        status = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)
