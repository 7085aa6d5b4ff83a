"""Read facts from a CSV or TSV file. Its first line has the names of fields of `FactRow`, such as "subject"."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from kg_memory.contrib.importers.moving import DiskDictionary, Reading, Record
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row

NUMBERS = ("confidence", "trust")


def read_csv(path: Path, group: str | None = None) -> Reading:
    """Return a function that yields the facts in the CSV or TSV file *path*.

    Errors: `InputError` if *group* is given.
    """
    if group is not None:
        raise InputError("a CSV file of facts has no groups; leave out --group")
    return partial(_records, path)


def _records(path: Path, _: Counter[str]) -> Iterator[Record]:
    for line, row in identify_rows(read_table(path), path):
        yield Record(f"{path}:{line}", row)


def identify_rows(rows: Iterable[tuple[int, Row]], path: Path) -> Iterator[tuple[int, Row]]:
    """Add an id to each of *rows*, so that importing the same file again adds nothing."""
    counts = DiskDictionary()
    for line, row in rows:
        digest = hashlib.sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:16]
        number = counts.count(digest)
        id_ = digest if number == 1 else f"{digest}-{number}"
        yield line, row if row.get("source_id") else {"source": path.name, **row, "source_id": id_}


def read_table(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield (line number, row) for each line after the first of a CSV or TSV file: ``(2, {"subject": "Ann"})``.

    Cells are separated by commas, semicolons or tabs, whichever is most frequent in the first line. Empty cells are
    left out. Errors: `InputError` for an invalid file.
    """
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            table = csv.DictReader(file, delimiter=max(",;\t", key=header.count), strict=True)
            for row in table:
                line = table.line_num
                if None in row or None in row.values():
                    raise InputError(f"{path}:{line}: the line must have as many cells as the header; correct it")
                cells = {name.strip(): cell.strip() for name, cell in row.items() if cell.strip()}
                yield line, {name: _to_number(name, cell, path, line) for name, cell in cells.items()}
    except csv.Error as error:
        raise InputError(f"{path}:{line + 1}: not valid CSV ({error}): correct the line") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}:{_undecodable_line(path)}: not UTF-8 text: save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error}); check the path") from None


def _undecodable_line(path: Path) -> int:
    with path.open("rb") as file:
        return next(number for number, line in enumerate(file, 1) if line.decode(errors="ignore").encode() != line)


def _to_number(name: str, cell: str, path: Path, line: int) -> str | float:
    if name not in NUMBERS:
        return cell
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{path}:{line}: {name} must be a number, got {cell!r}; correct it") from None
