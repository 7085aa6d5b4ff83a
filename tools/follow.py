"""Count the source files that one call enters and its database round trips: ``python -m tools.follow``.

An embedded memory is opened, filled with some facts, and warmed up. Then one `add` (plan standard, a scripted model,
one new fact that ends an existing one), one `search` and one `context` are profiled. ``-v`` lists the functions by
file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import kg_memory
from kg_memory import GraphMemory
from kg_memory.falkor.graph_store import GraphStore
from kg_memory.runtime.effects import Query, Reads
from kg_memory.runtime.flow import Flow
from tests.scripted import HashEmbeddings, Scripted

PACKAGE = f"{Path(kg_memory.__file__).parent}{os.sep}"
MESSAGES = ("I moved to Oslo.", "I know Bob.", "I know Carol.")
NEW_MESSAGE, QUESTION, ANSWER = "I moved to Paris.", "Where does Ann live?", "Ann lives in Paris"


class Cost(NamedTuple):
    """The cost of one call: the functions entered, by source file, the database round trips, and the queries."""

    functions: dict[str, list[str]]
    trips: int
    queries: int


@contextmanager
def count_trips(counts: list[int]) -> Iterator[None]:
    """Append the number of queries of each database round trip in the with block to *counts*."""
    perform = GraphStore.perform

    def counted(store: GraphStore, key: str, query: Query | Reads) -> Flow[Any]:
        counts.append(len(query.queries) if isinstance(query, Reads) else 1)
        return perform(store, key, query)

    GraphStore.perform = counted  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        GraphStore.perform = perform  # type: ignore[method-assign]


class Recorder:
    """Records which functions of the package are called while a verb runs, also in threads that start later."""

    def __init__(self) -> None:
        self._functions: dict[str, set[str]] | None = None
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def record(self, verb: Callable[[], Any]) -> Cost:
        """Run *verb*, check that its result contains the new fact, and return its cost. Exits if it does not."""
        self._functions = functions = defaultdict[str, set[str]](set)
        trips: list[int] = []
        with count_trips(trips):
            try:
                result = verb()
            finally:
                self._functions = None
        if ANSWER not in repr(result) and ANSWER not in str(result):
            sys.exit(f"the scripted model must lead to {ANSWER!r}, got {result!r}; adapt tools/follow.py")
        return Cost({file: sorted(functions[file]) for file in sorted(functions)}, len(trips), sum(trips))

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        functions, code = self._functions, frame.f_code
        if functions is None or event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name == "<lambda>" or not code.co_name.startswith("<"):  # no modules and no comprehensions
            functions[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)


def follow() -> dict[str, Cost]:
    """Return the cost of `add`, `search` and `context` on a small, warm memory, by their names."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ |= {"KG_MEMORY_DATA_DIR": folder, "KG_MEMORY_IDLE_SECONDS": "0", "KG_MEMORY_PLAN": "standard"}
        os.environ |= {"KG_MEMORY_MERGE_THRESHOLD": "0.98", "KG_MEMORY_ASK_THRESHOLD": "0.6"}  # hashes are no meanings
        with GraphMemory.open(model=Scripted(), embeddings=HashEmbeddings()) as memory:
            for day, message in enumerate(MESSAGES, 1):
                memory.add(message, speaker="Ann", at=f"2024-05-0{day}", thread="talk")
            verbs: dict[str, Callable[[], Any]] = {
                "add": lambda: memory.add(NEW_MESSAGE, speaker="Ann", at="2024-06-01", thread="talk"),
                "search": lambda: memory.search(QUESTION),
                "context": lambda: memory.context(QUESTION),
            }
            verbs["search"](), verbs["context"]()
            return {name: recorder.record(verb) for name, verb in verbs.items()}


def main() -> None:
    """Print the counts and the source files of each verb."""
    parser = argparse.ArgumentParser(prog="python -m tools.follow", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the counts only, as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the functions, too")
    chosen = parser.parse_args()
    costs = follow()
    if chosen.json:
        counts = {verb: [len(cost.functions), cost.trips, cost.queries] for verb, cost in costs.items()}
        print(json.dumps(counts))
        return
    for verb, cost in costs.items():
        print(f"{verb}: {len(cost.functions)} files, {cost.queries} queries in {cost.trips} round trips")
        for file, functions in cost.functions.items():
            print(f"{len(functions):6} {file}{'  ' + ', '.join(functions) if chosen.verbose else ''}")


if __name__ == "__main__":
    main()
