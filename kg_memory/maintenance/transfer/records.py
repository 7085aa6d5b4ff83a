"""Records of other memories: lists in JSON, under one of a few names or bare, or one record a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kg_memory.errors import InputError

UNDER = ("results", "items", "memories", "history", "data")
Record = Mapping[str, Any]


def records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file with their numbers.

    Errors: `InputError` where it has none, or one that is no object.
    """
    found = _listed(path)
    if not found:
        raise InputError(f"{path} has no records: give a list in JSON, or one record a line")
    for number, each in enumerate(found, start=1):
        if not isinstance(each, Mapping):
            raise InputError(f"{path}, record {number}: no object: write it as {{...}}, or take it out")
        yield number, each


def moment(record: Record, *names: str) -> datetime | None:
    """Return the time under the first of *names* that has one.

    Errors: `ValueError` for what is no time.
    """
    for name in names:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 10**11 else value, UTC)
        if value:
            return datetime.fromisoformat(str(value))
    return None


def chosen(groups: Sequence[str], group: str | None, what: str) -> str:
    """Return the group that is meant, of those that there are.

    Errors: `InputError` where there are several, or not that one: each is somebody's own memory.
    """
    if group is None and len(groups) == 1:
        return groups[0]
    if group is None or group not in groups:
        told = f"there is no {what} {group!r}" if group is not None else f"there are {len(groups)} of them"
        raise InputError(f"{told}: say which {what} is meant (--group), such as {list(groups[:5])}")
    return group


def _listed(path: Path) -> Sequence[Any]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): give a file of JSON in UTF-8") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return list(_lines(path, text))
    if isinstance(document, Mapping):
        return next((document[name] for name in UNDER if isinstance(document.get(name), list)), [document])
    return document if isinstance(document, list) else []


def _lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{number}: no JSON ({error}): mend the line, or take it out") from None
