"""Read JSON records one by one: of a list, of lists under names, or one record a line; a file is never held whole."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TextIO

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.text.message_fields import MOST_VALUES_OF_RECORD, has_more_values

CHUNK = 1 << 16
LONGEST = 1 << 24
"""The most characters of one record."""
_SPACE = re.compile(r"\s*")


def read_json_records(path: Path, names: Collection[str]) -> Iterator[tuple[int, str, Row]]:
    """Yield the number of each record in *path*, the one of *names* whose list has it, or "", and the record.

    An object is a record, unless it has a list of objects under one of *names*: then those are. So pages as an API
    returns them may follow each other. Errors: `InputError` names the line of what is not JSON, and the record that is
    no object.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for name, value in _values(_Text(path, file), names):
                number += 1
                if not isinstance(value, dict):
                    problem = "a record must be an object; write it as {...}, or remove it"
                    raise InputError(f"{path}, record {number}: {problem}")
                yield number, name, value
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path} ({error}); pass a JSON file in UTF-8") from None
    if not number:
        raise InputError(f"{path} has no records; write a list in JSON, or one record a line")


def parse_json(data: bytes) -> Any:
    """Return the JSON value *data*. Errors: `ValueError`, also for one with over `MOST_VALUES_OF_RECORD`."""
    text = data.decode("utf-8-sig")
    if has_more_values(text, MOST_VALUES_OF_RECORD):
        raise ValueError(f"it has over {MOST_VALUES_OF_RECORD:,} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("objects lie too deep in each other") from None


class _Text:
    """The text of *file* from `place` on, as far as it was read."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._place, self._line, self._ended = "", 0, 1, False

    def _read_more(self) -> bool:
        """Read on, by as much as is held already, and tell whether there was more."""
        chunk = "" if self._ended else self._file.read(max(CHUNK, len(self._text) - self._place))
        self._ended = not chunk
        self._line += self._text.count("\n", 0, self._place)
        self._text, self._place = self._text[self._place :] + chunk, 0
        return bool(chunk)

    def peek(self, skip: int = 0) -> str:
        """Return the character that follows after *skip* characters and spaces; "" at the end."""
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
        """Take one of the *expected* characters. Errors: `InputError`."""
        character = self.peek()
        if character not in expected or not character:
            raise self._error(f"expected {' or '.join(expected)}, got {character or 'the end'}")
        self._place += 1
        return character

    def value(self) -> Any:
        """Take the value that follows. Errors: `InputError`."""
        self.peek()
        while True:
            problem = None
            try:
                value, end = self._decode(self._text, self._place)
            except ValueError as error:
                problem = str(error)
            except RecursionError:
                raise self._error("objects lie too deep in each other") from None
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


def _values(text: _Text, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    while first := text.peek():
        if first == "[":
            for item in _items(text):
                yield "", item
        elif first == "{":
            yield from _object(text, names)
        else:
            yield "", text.value()


def _items(text: _Text) -> Iterator[Any]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    while True:
        yield text.value()
        if text.take(",", "]") == "]":
            return


def _object(text: _Text, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the records that an object lists under *names*, or else the object, if there is anything in it."""
    text.take("{")
    fields: Row = {}
    lists = 0
    closing = text.peek() == "}"
    if closing:
        text.take("}")
    while not closing:
        key = text.value()
        text.take(":")
        if key in names and text.peek() == "[" and text.peek(skip=1) == "{":
            lists += 1
            for item in _items(text):
                yield key, item
        else:
            fields[key] = text.value()
        closing = text.take(",", "}") == "}"
    if not lists and any(isinstance(value, str | dict) and value for value in fields.values()):
        yield "", fields
