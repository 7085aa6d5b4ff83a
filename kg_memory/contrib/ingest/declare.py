"""``kg-memory declare``: store facts that the user states on the command line or in a file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.output import ProgressMeter, Screen, count_noun
from kg_memory.contrib.importers.from_csv import identify_rows, read_table
from kg_memory.contrib.importers.moving import read_json, read_json_records
from kg_memory.contrib.ingest.ingest import show_problems
from kg_memory.errors import InputError
from kg_memory.models.operations import AddResult

Row = dict[str, Any]


def declare(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory declare``: store facts, and print a report; return the exit code."""
    rows = _rows_of(arguments)
    mapping = read_json(arguments.mapping) if arguments.mapping else None
    namespace = namespace_of(arguments)
    meter = ProgressMeter(len(rows), screen)
    with open_memory(arguments, screen) as memory:
        added = memory.facts.add_many(rows, mapping=mapping, namespace=namespace, progress=meter.progress)
    _report_declared(added, meter.seconds, screen)
    return any(result.error for result in added)


def _rows_of(arguments: Namespace) -> Sequence[Row]:
    """Return the facts to store: the one on the command line, or those in the file of ``--file``.

    Errors: `InputError`.
    """
    words = arguments.words
    options = {name: value for name in arguments.parameters if (value := getattr(arguments, name)) is not None}
    if arguments.file is None:
        if arguments.mapping is not None or len(words) < 2:
            raise InputError("no fact given: pass SUBJECT PREDICATE [OBJECT ...], or --file")
        return [{"subject": words[0], "predicate": words[1], "object": words[2:] or None, **options}]
    if words:
        raise InputError(f"--file cannot be combined with a fact, got {' '.join(words)!r}; leave out one of them")
    rows = list(_read_rows(arguments.file))
    if not rows:
        raise InputError(f"{arguments.file} contains no facts: add rows, or check the file")
    if arguments.mapping:
        return rows
    return [row for _, row in identify_rows(enumerate({**options, **row} for row in rows), arguments.file)]


def _read_rows(path: Path) -> Iterator[Row]:
    if path.suffix.lower() in (".csv", ".tsv"):
        return (row for _, row in read_table(path))
    return (row for _, row in read_json_records(path))


def _report_declared(added: Sequence[AddResult], seconds: float, screen: Screen) -> None:
    """Print how many facts were stored in *seconds*, which earlier facts they ended, and what failed."""
    facts = sum(len(result.facts) for result in added)
    again, rate = sum(not result.new for result in added), facts / seconds
    notes = {
        "ended": [text for result in added for text in result.ended],
        "unmapped": [text for result in added for text in result.unmapped],
        "dropped": [f"{loss.text}: {loss.reason}" for result in added for loss in result.dropped],
        "skipped": [result.skipped for result in added if result.skipped],
        "errors": [result.error for result in added if result.error],
    }
    if screen.as_json:
        numbers = {"facts": facts, "again": again, "seconds": round(seconds, 2), "per_second": round(rate, 1)}
        screen.json({**numbers, **notes})
        return
    repeated = f", {again} there already" if again else ""
    screen.line(f"{count_noun(facts, 'fact')} stated{repeated} ({seconds:.1f} s, {rate:.0f} facts a second)", "bold")
    for name, texts in notes.items():
        show_problems(texts, screen, name, f"more {name}")
