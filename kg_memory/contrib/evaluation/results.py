"""The results file of an evaluation: one JSON line for each finished step, so that a stopped run can continue."""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from kg_memory.contrib.evaluation.records import Conversation, Question
from kg_memory.errors import InputError
from kg_memory.models.operations import Usage

FILE = "results.jsonl"
Row = dict[str, Any]
COSTS = ("calls", "input_tokens", "output_tokens")
_SAME = ("dataset", "variant", "data", "reader", "model", "embedder", "max_tokens")


def question_key(conversation: Conversation, question: Question) -> str:
    """Return the name of a question that is unique in its data set: ``"locomo-1/17"``."""
    return f"{conversation.name}/{question.id}"


def cost_of(row: Mapping[str, Any], prefix: str = "") -> Usage:
    """Return the calls and tokens in a result row: the fields ``reader_calls`` etc. if *prefix* is ``reader_``."""
    return Usage(**{name: row.get(f"{prefix}{name}", 0) for name in COSTS})


def cost_fields(cost: Usage, prefix: str = "") -> dict[str, int]:
    """Convert *cost* to fields of a result row, whose names begin with *prefix*: ``{"reader_calls": 1, ...}``."""
    return {f"{prefix}{name}": getattr(cost, name) for name in COSTS}


class Results:
    """The results file of an evaluation in *folder*, one JSON row for each step; new rows are appended.

    Errors: `InputError` if another process has the file open.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / FILE
        self.rows: list[Row] = []
        self._latest: defaultdict[tuple[str | None, ...], dict[str, Row]] = defaultdict(dict)
        self._file = self.path.open("a+b")
        self._lock = Lock()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InputError(f"another run writes to {folder}: wait for it, or use another --out") from None
        self._read()

    def _read(self) -> None:
        """Load all rows of the file, and remove an incomplete last line, which a killed process leaves."""
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):  # the process was killed while it wrote the line
                break
            try:
                row = json.loads(line)
            except ValueError:
                raise InputError(f"{self.path}:{number}: not valid JSON; correct the line, or delete it") from None
            self._index_row(row)
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def start(self, options: Mapping[str, Any]) -> None:
        """Append a row with the *options* of an evaluation that starts or continues.

        Errors: `InputError`.
        """
        for row in self.rows:
            if row["kind"] != "run":
                continue
            for name in _SAME:
                then, now = row.get(name), options.get(name)
                if then is not None and now is not None and then != now:
                    raise InputError(
                        f"{self.folder} has results with {name} {then!r}, not {now!r}: use another --out, or {then!r}"
                    )
        self.add("run", **options)

    def add(self, kind: str, **fields: Any) -> None:
        """Append a row of *kind*, with *fields*, to the results file. When this returns, the row is written."""
        row = {"kind": kind, **fields}
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._index_row(row)
            self._file.write(line)
            self._file.flush()

    def of(self, kind: str, system: str | None = None) -> list[Row]:
        """Return all rows of *kind*, such as "ingest"; with *system*, only the rows of this system."""
        with self._lock:
            return [row for row in self.rows if row["kind"] == kind and system in (None, row.get("system"))]

    def latest(self, kind: str, system: str, judge: str | None = None) -> Mapping[str, Row]:
        """Return the latest row of *kind* for each question: ``{"locomo-1/17": {...}}``."""
        return self._latest[kind, system, judge]

    def _index_row(self, row: Row) -> None:
        self.rows.append(row)
        if "question" in row:
            latest = self._latest[row["kind"], row["system"], row.get("judge")]
            latest[row["question"]] = row
            if None in row.get("verdict", {}).values():  # no score: the answer is judged again
                del latest[row["question"]]

    def close(self) -> None:
        """Close the results file."""
        self._file.close()
