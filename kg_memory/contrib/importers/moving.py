"""Records of other memories, and helpers of their readers: times, owners, and look-ups on disk."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.identity import canonical_name

LIST_NAMES = ("results", "items", "memories", "history", "data")
"""The names of lists of records in the exports of memories that keep sentences."""


@dataclass(frozen=True, slots=True)
class Record:
    """A message of another memory, or a fact, as the row that declares it; *place* names it in errors.

    A message takes the place of those earlier ones that pass the filter *replaces*.
    """

    place: str
    value: EpisodeInput | Row
    replaces: Mapping[str, object] | None = None

    @property
    def is_fact(self) -> bool:
        """Whether it is a fact."""
        return isinstance(self.value, dict)


Reading = Callable[[Counter[str]], Iterator[Record]]
"""Reads all records anew, and counts what has no counterpart here."""
Open = Callable[[Path, str | None], Reading]
"""Looks through a file for the memory of one owner, by default the only one, and returns how to read that."""


class Lookup:
    """Texts by their keys, on disk, however many there are."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("CREATE TABLE lookup (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def put(self, key: str, value: str) -> bool:
        """Keep *value*, unless there is one with that key; tell whether there was none."""
        row = (_storable(key), _storable(value))
        return self._database.execute("INSERT OR IGNORE INTO lookup VALUES (?, ?)", row).rowcount > 0

    def count(self, key: str) -> int:
        """Return how often *key* was counted, with this time."""
        query = "INSERT INTO lookup VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
        return int(self._database.execute(query, (_storable(key),)).fetchone()[0])

    def get(self, key: object) -> str | None:
        """Return the value of *key*."""
        row = self._database.execute("SELECT value FROM lookup WHERE key = ?", (_storable(str(key)),)).fetchone()
        return None if row is None else str(row[0])


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def choose_owner(owners: Iterable[str], group: str | None, noun: str) -> str:
    """Return the owner whose memory is read: *group*, or the only one there is.

    Errors: `InputError` if there are several, or *group* is not among them: each is one person's own memory.
    """
    names = sorted({*owners})
    if group is None and len(names) > 1:
        raise InputError(f"there are {len(names)} {noun}s; choose one of them with --group, such as {names[:5]}")
    if group is not None and group not in names:
        raise InputError(f"there is no {noun} {group!r}; choose one with --group, such as {names[:5]}")
    return group if group is not None else next(iter(names), "")


def read_time(place: str, record: Row, *names: str) -> datetime | None:
    """Return the first of the times *names* that *record* has; a number is Unix time in seconds or milliseconds.

    Errors: `InputError` for what is no time.
    """
    for name in names:
        value = record.get(name)
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value / 1000 if value > 10**11 else value, UTC)
            if value:
                time = datetime.fromisoformat(str(value))
                return time if time.tzinfo else time.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise InputError(f"{place}: {name} is not a time ({error}); write it as 2024-05-01T10:00Z") from None
    return None


def read_text(place: str, record: Row, *names: str) -> str | None:
    """Return the first of the fields *names* that *record* has as a text. Errors: `InputError` for another type."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            if not isinstance(value, str):
                raise InputError(f"{place}: {name} must be a text, got {type(value).__name__}; correct the record")
            return value
    return None


def require_text(place: str, record: Row, *names: str, hint: str) -> str:
    """Return the first of the fields *names* that *record* has. Errors: `InputError`, with *hint*, for none."""
    text = read_text(place, record, *names)
    if text is None:
        raise InputError(f"{place}: there is no {names[0]}; {hint}")
    return text


def start_before(start: datetime | None, end: datetime | None) -> datetime | None:
    """Return *start*, or ``None`` where it is not before *end*: then only the end is known."""
    return None if start and end and end <= start else start


def name_objects(subject: str, name: str) -> str | None:
    """Return the object *name*; ``None`` for a fact that joins something to itself, which is about it alone."""
    return None if canonical_name(subject) == canonical_name(name) else name
