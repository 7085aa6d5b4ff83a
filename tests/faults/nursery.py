"""A warm process that forks a child for each run: to ingest, or to finish what a killed child left."""

import gc
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from kg_memory import GraphMemory, Settings

ROOT = Path(__file__).parents[2]
SERVE = "import sys; from tests.faults.nursery import serve; serve(*sys.argv[1:])"
NAMESPACE = "n"
DAYS = "2001-01-01", "2001-01-02"
SAID = "Ann lives in Oslo.", "Ann lives in Paris, and knows Bob."
MESSAGES: list[dict[str, Any]] = [
    {"content": content, "speaker": "Ann", "at": at, "thread": "t", "source_id": f"m{place}"}
    for place, (content, at) in enumerate(zip(SAID, DAYS, strict=True))
]


class Nursery:
    """Forks children, by a process that runs the code *serving* with the arguments *given*; see `served`."""

    def __init__(self, *given: str, serving: str = SERVE) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", serving, *given], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._born = threading.Event()
        self._child = 0
        while self._told() != "ready":
            pass

    def live(self, verb: str, *, count: Callable[[int], object] = int) -> tuple[int, list[str]]:
        """Let a child do *verb*, or several joined by ``+``; return its exit status and its acknowledgements.

        The status is negative for a signal. *count* is called with the number of acknowledgements after each.
        """
        assert self._process.stdin
        self._process.stdin.write(verb + "\n")
        self._process.stdin.flush()
        self._child = int(self._told())
        self._born.set()
        acknowledged = []
        while not (told := self._told()).startswith("ended"):
            acknowledged.append(told)
            count(len(acknowledged))
        self._born.clear()
        return int(told.split()[1]), acknowledged

    def kill(self) -> None:
        """Kill the running child by SIGKILL."""
        assert self._born.wait(120)
        os.kill(self._child, 9)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(120) == 0

    def _told(self) -> str:
        assert self._process.stdout
        told = self._process.stdout.readline()
        assert told, "the nursery ended"
        return told.strip()


def serve(url: str, models: str) -> None:
    """Serve verbs on the database at *url*, with the models at *models*."""
    where = Settings(url=url, base_url=models, api_key="k", model="scripted", embedding_model="hash")
    settings = where.with_(merge_threshold=0.98, ask_threshold=0.6)
    with GraphMemory(settings) as first:  # imports lazy modules once, for all children
        for verb in VERBS.values():
            verb(first)
    memory = GraphMemory(settings)
    memory.graphs.ingestion  # noqa: B018 - made once, for all children
    gc.freeze()
    served(lambda verb: [VERBS[each](memory) for each in verb.split("+")])


def served(do: Callable[[str], object]) -> None:
    """Fork a child for each verb read from stdin; print its process id, and its exit status at the end."""
    tell("ready")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            tell(str(os.getpid()))
            _live(do, line.strip())
        tell(f"ended {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


def tell(line: str) -> None:
    """Write *line* without a buffer, so that a kill cannot lose it."""
    os.write(1, f"{line}\n".encode())


def _live(do: Callable[[str], object], verb: str) -> None:
    status = 1
    try:
        do(verb)
        status = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _save(memory: GraphMemory) -> None:
    memory.episodes.save(MESSAGES[:1], namespace=NAMESPACE)
    tell("saved")


def _begin(memory: GraphMemory) -> None:
    memory.add(**MESSAGES[0], namespace=NAMESPACE)


def _add(memory: GraphMemory) -> None:
    memory.add(**MESSAGES[1], namespace=NAMESPACE)
    tell("added")


def _finish(memory: GraphMemory) -> None:
    """Resume: all stored episodes are read, and no new one appears."""
    before = _episodes(memory)
    memory.episodes.resume(namespace=NAMESPACE)
    assert memory.stats(namespace=NAMESPACE).waiting == 0
    assert _episodes(memory) == before


def _episodes(memory: GraphMemory) -> list[tuple[str, str]]:
    return sorted((str(each.source_id), each.content) for each in memory.episodes.list(namespace=NAMESPACE))


VERBS = {"save": _save, "begin": _begin, "add": _add, "finish": _finish}
