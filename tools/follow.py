"""Count the files of the package that one verb enters: ``python -m tools.follow``.

An embedded memory is opened, given some facts and warmed. Then one `add` (plan standard, a scripted model, one new fact
that ends an earlier one), one `search` and one `context` are profiled. The driver's own files, which all verbs share,
are counted apart. ``--root`` is another project to look at, ``-v`` lists the functions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path, PurePath
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
FOLLOWED = ".follow.json"
"""The file of counts that `tools.house` reads."""
MESSAGES = ("I moved to Oslo.", "I know Bob.", "I know Carol.")
NEW_MESSAGE, QUESTION = "I moved to Paris.", "Where does Ann live?"
ANSWER = "Ann lives in Paris"
GOALS = {"add": 18, "search": 15, "context": 15}
SCRIPTED = (("Scripted", "ScriptedModel"), ("HashEmbeddings", "ScriptedEmbeddings"))
"""The names that `tests.scripted` may have for the model and the embeddings."""
DRIVER = {
    "runtime": "runtime/*.py telemetry/*.py"
    " driver.py flow.py effects.py course.py nodes.py asking.py contexts.py forms.py scopes.py clock.py",
    "model": "llm/*.py llm/budget/*.py"
    " budgets.py purse.py ledger.py ask_cost.py pace.py retries.py embeddings.py cross_encoders/*.py chat/*.py",
    "database": "falkor/graph_store.py falkor/wire.py"
    " falkor/connect*.py falkor/embedded*.py falkor/decode.py falkor/parameters.py falkor/pipeline_reads.py"
    " falkor/replica.py falkor/schema.py falkor/migrations.py falkor/index_lock.py falkor/watchdog.py falkor/errors.py"
    " falkor/launch.py falkor/replies.py falkor/lanes.py falkor/making.py falkor/keeper.py falkor/refusals.py",
}
"""The driver and what it answers effects with: in each line the places in the design, then those of commit 5e318d2."""


class Recorder:
    """Records the functions of a package that are entered while a verb runs, on all threads that start after it."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}{os.sep}"
        self._functions: dict[str, set[str]] | None = None
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def record(self, verb: Callable[[], Any]) -> dict[str, list[str]]:
        """Return the functions that *verb* enters, by file, and check that it speaks of the new fact."""
        self._functions = functions = defaultdict[str, set[str]](set)
        try:
            result = verb()
        finally:
            self._functions = None
        if ANSWER not in repr(result) and ANSWER not in str(result):
            sys.exit(f"the scripted model must lead to {ANSWER!r}, got {result!r}; adapt tools/follow.py")
        return {file: sorted(functions[file]) for file in sorted(functions)}

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        functions, code = self._functions, frame.f_code
        if functions is None or event != "call" or not code.co_filename.startswith(self._package):
            return
        if code.co_name == "<lambda>" or not code.co_name.startswith("<"):  # no modules and no comprehensions
            functions[code.co_filename.removeprefix(self._package)].add(code.co_qualname)


def follow(root: Path) -> dict[str, dict[str, list[str]]]:
    """Return the functions that each verb enters, by file. This is the only place that knows the API."""
    sys.path.insert(0, str(root))
    package = importlib.import_module("kg_memory")
    model, embeddings = map(_make_scripted, SCRIPTED)
    recorder = Recorder(Path(str(package.__file__)).parent)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ |= {"KG_MEMORY_DATA_DIR": folder, "KG_MEMORY_IDLE_SECONDS": "0", "KG_MEMORY_PLAN": "standard"}
        os.environ |= {"KG_MEMORY_MERGE_THRESHOLD": "0.98", "KG_MEMORY_ASK_THRESHOLD": "0.6"}  # hashes are no meanings
        with package.GraphMemory.open(model=model, embeddings=embeddings) as memory:
            if not any(Path(folder).iterdir()):
                sys.exit("KG_MEMORY_DATA_DIR has no effect: adapt tools/follow.py")
            for day, message in enumerate(MESSAGES, 1):
                memory.add(message, speaker="Ann", at=f"2024-05-0{day}", thread="talk")
            verbs: dict[str, Callable[[], Any]] = {
                "add": lambda: memory.add(NEW_MESSAGE, speaker="Ann", at="2024-06-01", thread="talk"),
                "search": lambda: memory.search(QUESTION),
                "context": lambda: memory.context(QUESTION),
            }
            verbs["search"](), verbs["context"]()
            return {name: recorder.record(verb) for name, verb in verbs.items()}


def _make_scripted(names: tuple[str, ...]) -> Any:
    """Return an instance of the class that has one of the *names*."""
    module = importlib.import_module("tests.scripted")
    return next(getattr(module, name) for name in names if hasattr(module, name))()


def part_of(file: str) -> str:
    """Return the part of the driver that *file* belongs to, or "" where it belongs to the verb itself."""
    path = PurePath(file)
    return next((part for part, names in DRIVER.items() if any(map(path.match, names.split()))), "")


def main() -> None:
    """Print the files by verb, and save how many there are besides the driver's own."""
    parser = argparse.ArgumentParser(prog="python -m tools.follow", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of the project, if not this one")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the functions, too")
    chosen = parser.parse_args()
    counts = {}
    for verb, files in follow(chosen.root.resolve()).items():
        parts = Counter(map(part_of, files))
        own = ", ".join(f"{part} {parts[part]}" for part in DRIVER)
        counts[verb] = parts[""]
        verdict = "met" if parts[""] <= GOALS[verb] else "NOT MET"
        print(f"{verb}: {len(files)} files, {parts['']} besides the driver's own ({own}); <= {GOALS[verb]} {verdict}")
        for file, functions in sorted(files.items(), key=lambda item: (part_of(item[0]), item[0])):
            names = f"  {', '.join(functions)}" if chosen.verbose else ""
            print(f"  {part_of(file):9}{len(functions):4} {file}{names}")
    if chosen.root == ROOT:
        (ROOT / FOLLOWED).write_text(json.dumps(counts))


if __name__ == "__main__":
    main()
