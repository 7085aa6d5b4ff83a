"""``kg-memory declare``: state facts as triples, one by one or from a file, without a model."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.files import check, lines_of, whole_text
from kg_memory.cli.output import ProgressBar, Screen, count_noun
from kg_memory.errors import InputError
from kg_memory.models.operations import AddResult
from kg_memory.plugins import load_plugin

_OPTIONS = "valid_at invalid_at sentence source source_id confidence trust at subject_type object_type rests_on".split()
_SHOWN = 10
_HEADINGS = {
    "ended": "no longer so",
    "unmapped": "left out",
    "dropped": "not taken",
    "skipped": "saved but not stated",
    "errors": "saved but not finished",
}
Row = dict[str, Any]


def declare(arguments: Namespace, screen: Screen) -> int:
    """State the fact of the command line, or all of a file; return 1 if any is saved but not finished."""
    rows = _rows_of(arguments)
    mapping = _read_json(arguments.mapping) if arguments.mapping else None
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory, ProgressBar(len(rows), screen) as meter:
        began = time.monotonic()
        added = memory.facts.add_many(rows, mapping=mapping, namespace=namespace, progress=meter.progress)
        seconds = time.monotonic() - began
    _report(added, seconds, screen)
    return any(result.error for result in added)


def _rows_of(arguments: Namespace) -> Sequence[Row]:
    words = arguments.words
    options = {name: value for name in _OPTIONS if (value := getattr(arguments, name)) is not None}
    if arguments.file is None:
        if arguments.mapping is not None or len(words) < 2:
            raise InputError("no fact is stated: give SUBJECT PREDICATE [OBJECT ...], or a --file")
        return [{"subject": words[0], "predicate": words[1], "object": words[2:] or None, **options}]
    if words:
        raise InputError(f"--file must stand alone, got {' '.join(words)!r} too; leave one of them out")
    rows = list(_read_rows(arguments.file))
    if not rows:
        raise InputError(f"{arguments.file} has no facts in it: give rows, or check the file")
    if arguments.mapping:
        return rows
    numbered = enumerate({**options, **row} for row in rows)
    identify_rows = load_plugin("readers", "facts").identify_rows
    return [row for _, row in identify_rows(numbered, arguments.file)]


def _read_rows(path: Path) -> Iterator[Row]:
    check(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from (row for _, row in load_plugin("readers", "facts").read_table(path))
        return
    if path.suffix.lower() == ".json":
        document = _read_json(path)
        yield from document if isinstance(document, list) else [document]
        return
    for line in lines_of(path):
        if isinstance(line, InputError):
            raise InputError(f"{path}: {line}")
        number, text = line
        if text.strip():
            try:
                yield json.loads(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not valid JSON ({error}): correct the line") from None


def _read_json(path: Path) -> Any:
    check(path)
    try:
        return json.loads(whole_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}): correct it") from None


def _report(added: Sequence[AddResult], seconds: float, screen: Screen) -> None:
    facts = sum(len(result.facts) for result in added)
    again, rate = sum(not result.new for result in added), facts / max(seconds, 1e-6)
    notes: dict[str, list[str]] = {name: [] for name in _HEADINGS}
    for result in added:
        notes["ended"] += result.ended
        notes["unmapped"] += result.unmapped
        notes["dropped"] += (f"{loss.text}: {loss.reason}" for loss in result.dropped)
        notes["skipped"] += filter(None, (result.skipped,))
        notes["errors"] += filter(None, (result.error,))
    if screen.as_json:
        numbers = {"facts": facts, "again": again, "seconds": round(seconds, 2), "per_second": round(rate, 1)}
        screen.json({**numbers, **notes})
        return
    repeated = f", {again} there already" if again else ""
    speed = f"{seconds:.1f} s, {rate:.0f} facts a second"
    screen.line(f"{count_noun(facts, 'fact')} stated{repeated} ({speed})", "bold")
    for name, heading in _HEADINGS.items():
        for text in notes[name][:_SHOWN]:
            screen.note(f"{heading}: {text}")
        if len(notes[name]) > _SHOWN:
            screen.note(f"... and {len(notes[name]) - _SHOWN} more {heading} (--json lists all)")
