"""Shared parts of the importers: records, times, owners, a dictionary on disk, and a streaming JSON parser."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.identity import canonical_name
from kg_memory.text.message_fields import MOST_VALUES_OF_RECORD, has_more_values, parse_time

LIST_NAMES = ("results", "items", "memories", "history", "data")
"""Keys of the lists of records in the exports of memories that store sentences."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record to import: a message, or a fact as a dict for `facts.add_many`."""

    place: str
    value: EpisodeInput | Row
    replaces: Mapping[str, object] | None = None

    @property
    def is_fact(self) -> bool:
        """Whether the record is a fact; otherwise it is a message."""
        return isinstance(self.value, dict)


Reading = Callable[[Counter[str]], Iterator[Record]]
"""A function that yields all records of an export from the start, and counts records left out by reason."""


class DiskDictionary:
    """A dictionary of texts in a temporary SQLite database, for exports that do not fit into memory."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("CREATE TABLE lookup (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def put(self, key: str, value: str) -> bool:
        """Store *value* under *key* and return True, or return False if *key* already has a value."""
        row = (_storable(key), _storable(value))
        return self._database.execute("INSERT OR IGNORE INTO lookup VALUES (?, ?)", row).rowcount > 0

    def count(self, key: str) -> int:
        """Increment the counter of *key* and return it: 1 at the first call, 2 at the second."""
        query = "INSERT INTO lookup VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
        return int(self._database.execute(query, (_storable(key),)).fetchone()[0])

    def get(self, key: object) -> str | None:
        """Return the value stored under *key*, or None."""
        row = self._database.execute("SELECT value FROM lookup WHERE key = ?", (_storable(str(key)),)).fetchone()
        return None if row is None else str(row[0])


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def choose_owner(owners: Iterable[str], group: str | None, noun: str) -> str:
    """Return the owner to import: *group* or, if *group* is None, the only one of *owners*.

    Errors: `InputError`.
    """
    names = sorted({*owners})
    if group is None and len(names) > 1:
        raise InputError(f"the export has {len(names)} {noun}s; choose one with --group, such as one of {names[:5]}")
    if group is not None and group not in names:
        raise InputError(f"the export has no {noun} {group!r}; choose one with --group, such as one of {names[:5]}")
    return group if group is not None else next(iter(names), "")


def read_time(place: str, record: Row, *names: str) -> datetime | None:
    """Return the time in the first of the fields *names* that *record* has, or None. Errors: `InputError`."""
    for name in names:
        value = record.get(name)
        if value or (value == 0 and value is not False):
            try:
                return parse_time(value)
            except InputError as error:
                raise InputError(f"{place}: {name} is not a time ({error})") from None
    return None


def read_text(place: str, record: Row, *names: str) -> str | None:
    """Return the text in the first of the fields *names* that *record* has, or None. Errors: `InputError`."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            if not isinstance(value, str):
                raise InputError(f"{place}: {name} must be a text, got {type(value).__name__}; correct the record")
            return value
    return None


def require_text(place: str, record: Row, *names: str, hint: str) -> str:
    """Return the text in the first of the fields *names* that is set in *record*.

    Errors: `InputError`.
    """
    text = read_text(place, record, *names)
    if text is None:
        raise InputError(f"{place}: the record has no {names[0]}; {hint}")
    return text


def start_before(start: datetime | None, end: datetime | None) -> datetime | None:
    """Return *start*, the date when a fact became true, or None if it is not before *end* and therefore wrong."""
    return None if start and end and end <= start else start


def name_objects(subject: str, name: str) -> str | None:
    """Return *name*, the object of an imported fact, or None if it names the same entity as *subject*."""
    return None if canonical_name(subject) == canonical_name(name) else name


# Streaming JSON records: of a list, of lists under names, or one record a line; only one record is in memory

CHUNK = 1 << 16
LONGEST = 1 << 24
"""The most characters of one record."""
_SPACE = re.compile(r"\s*")


def read_json(path: Path) -> Any:
    """Return the JSON value in the file *path*. Errors: `InputError` if it cannot be read, or is not JSON in UTF-8."""
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON in UTF-8 ({error}); correct it, or pass another file") from None


def read_json_records(path: Path, names: Collection[str] = ()) -> Iterator[tuple[str, Row]]:
    """Yield (place, record) for each record in the JSON file *path*: ``("export.json, record 1", {...})``.

    The file may be a list, one record per line (JSON Lines), or API pages such as ``{"edges": [...]}``. *names* are the
    keys of such lists. Errors: `InputError` for an invalid file.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, value in enumerate(_values(_Text(path, file), names), start=1):
                place = f"{path}, record {number}"
                if not isinstance(value, dict):
                    raise InputError(f"{place}: a record must be an object; write it as {{...}}, or remove it")
                yield place, value
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path} ({error}); pass a JSON file in UTF-8") from None
    if not number:
        raise InputError(f"{path} has no records; write a JSON list, or one record on each line")


def parse_json(data: bytes) -> Any:
    """Return the JSON value in *data*.

    Errors: `ValueError` for invalid JSON and for more than `MOST_VALUES_OF_RECORD` values.
    """
    text = data.decode("utf-8-sig")
    if has_more_values(text, MOST_VALUES_OF_RECORD):
        raise ValueError(f"the record has over {MOST_VALUES_OF_RECORD:,} values; split it")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("objects are nested too deeply") from None


class _Text:
    """Parser for a JSON file of any size: it loads the file in chunks, and parses one value at a time."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._place, self._line, self._ended = "", 0, 1, False

    def _read_more(self) -> bool:
        """Load the next chunk of the file, and drop the text already parsed; return False at the end of the file."""
        chunk = "" if self._ended else self._file.read(max(CHUNK, len(self._text) - self._place))
        self._ended = not chunk
        self._line += self._text.count("\n", 0, self._place)
        self._text, self._place = self._text[self._place :] + chunk, 0
        return bool(chunk)

    def peek(self, skip: int = 0) -> str:
        """Return the next character that is not white space, without consuming it; "" at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._place + skip)
            end = space.end() if space else len(self._text)
            if end < len(self._text):
                if not skip:
                    self._place = end
                return self._text[end]
            if not self._read_more():
                return ""

    def take(self, *expected: str) -> str:
        """Consume the next character that is not white space, and return it.

        Errors: `InputError` if it is not one of *expected*.
        """
        character = self.peek()
        if character not in expected or not character:
            raise self._error(f"expected {' or '.join(expected)}, got {character or 'the end'}")
        self._place += 1
        return character

    def skip(self, mark: str) -> bool:
        """Consume *mark* if it is the next character that is not white space; return whether it was."""
        return self.peek() == mark and bool(self.take(mark))

    def value(self) -> Any:
        """Parse, consume and return the next JSON value. Errors: `InputError` if it is invalid or too large."""
        self.peek()
        while True:
            problem = None
            try:
                value, end = self._decode(self._text, self._place)
            except ValueError as error:
                problem = str(error)
            except RecursionError:
                raise self._error("objects are nested too deeply") from None
            if problem is None and (end < len(self._text) or self._ended):
                self._place = end
                return value
            if len(self._text) - self._place > LONGEST:
                raise self._error(f"{problem or 'it does not end'}, or it has over {LONGEST:,} characters")
            if has_more_values(self._text[self._place :], MOST_VALUES_OF_RECORD):
                raise self._error(f"a record has over {MOST_VALUES_OF_RECORD:,} values")
            if not self._read_more() and problem is not None:
                raise self._error(problem)

    def _error(self, problem: str) -> InputError:
        line = self._line + self._text.count("\n", 0, self._place)
        return InputError(f"{self._path}:{line}: not JSON ({problem}); fix or remove the line")


def _values(text: _Text, names: Collection[str]) -> Iterator[Any]:
    """Yield each record of the file; *names* are the keys of objects whose lists contain records, such as "edges"."""
    while first := text.peek():
        if first == "[":
            yield from _parse_list(text)
        elif first == "{":
            yield from _parse_object(text, names)
        else:
            yield text.value()


def _parse_list(text: _Text) -> Iterator[Any]:
    text.take("[")
    closing = text.skip("]")
    while not closing:
        yield text.value()
        closing = text.take(",", "]") == "]"


def _parse_object(text: _Text, names: Collection[str]) -> Iterator[Any]:
    """Parse the next object, and yield the records in it: the items of its lists under the keys *names*."""
    text.take("{")
    fields: Row = {}
    lists = 0
    closing = text.skip("}")
    while not closing:
        key = text.value()
        text.take(":")
        if key in names and text.peek() == "[" and text.peek(skip=1) == "{":
            lists += 1
            yield from _parse_list(text)
        else:
            fields[key] = text.value()
        closing = text.take(",", "}") == "}"
    is_page = names and not any(isinstance(value, str | dict) and value for value in fields.values())
    if not lists and not is_page:
        yield fields
