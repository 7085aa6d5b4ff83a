"""Read data sets record by record, with errors that name the file and the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from kg_memory.errors import InputError

T = TypeVar("T")
_CHUNK = 1 << 20
_LARGEST = 1 << 28
"""The most characters of one record; those of LongMemEval-M have about 5 million."""


class JsonList(Sequence[T], Generic[T]):
    """The items of a JSON list in a file, of which none is held: each is read and built when it is asked for.

    *form* tells what the file should hold. *build* makes an item of a record.

    Raises: `InputError` if the file holds no list of JSON, or a record is of another form.
    """

    def __init__(self, path: Path, form: str, build: Callable[[Any], T]) -> None:
        self._path, self._form, self._build = path, form, build
        self._places: list[tuple[int, int]] = []
        for start, length, value in _scan(path, form):
            self._places.append((start, length))
            self._made(len(self._places), value)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        start, length = self._places[index]
        with self._path.open("rb") as file:
            file.seek(start)
            return self._made(index % len(self) + 1, json.loads(file.read(length)))

    def _made(self, number: int, value: Any) -> T:
        with malformed(self._path, number, self._form):
            return self._build(value)


def _scan(path: Path, form: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the place of each item of the list in *path*, its length in bytes, and the item."""
    with path.open(encoding="utf-8", newline="") as file:
        scanner = _Scanner(file.read, path, form)
        yield from scanner.items()


class _Scanner:
    """Walks through a JSON list: `buffer` is what was read and not used yet, `place` its offset in bytes."""

    def __init__(self, read: Callable[[int], str], path: Path, form: str) -> None:
        self.read, self.path, self.form = read, path, form
        self.buffer, self.place = "", 0

    def items(self) -> Iterator[tuple[int, int, Any]]:
        number = 0
        if self._next() != "[":
            raise InputError(f"{self.path} holds no JSON list: give {self.form}")
        self._use(1)
        while (mark := self._next()) != "]":
            if mark == ",":
                self._use(1)
                continue
            number += 1
            value, end = self._decode(number)
            start, length = self.place, self._use(end)
            yield start, length, value

    def _next(self) -> str:
        """Return the next character that is no space; the end of the file is an error."""
        while True:
            rest = self.buffer.lstrip(" \t\r\n\ufeff")
            self._use(len(self.buffer) - len(rest))
            if rest:
                return rest[0]
            if not self._more(_CHUNK):
                raise InputError(f"{self.path} ends in the middle: download it again, {self.form}")

    def _more(self, size: int) -> bool:
        try:
            more = self.read(size)
        except UnicodeDecodeError:
            raise InputError(f"{self.path} is no UTF-8 text: give {self.form}") from None
        self.buffer += more
        return bool(more)

    def _use(self, count: int) -> int:
        """Drop *count* characters, and return how many bytes they were."""
        size = len(self.buffer[:count].encode())
        self.buffer = self.buffer[count:]
        self.place += size
        return size

    def _decode(self, number: int) -> tuple[Any, int]:
        """Return the value that the buffer begins with, and where it ends; read on as long as it needs."""
        while True:
            try:
                return json.JSONDecoder().raw_decode(self.buffer)
            except ValueError as error:
                # Twice as much each time: an item is decoded a few times at most.
                if len(self.buffer) >= _LARGEST or not self._more(max(_CHUNK, len(self.buffer))):
                    raise InputError(
                        f"{self.path}, record {number}: not valid JSON ({error}): give {self.form}"
                    ) from None


def json_lines(path: Path, form: str) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line of a JSON Lines file that is not empty.

    Raises: `InputError`.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, json.loads(line)
    except UnicodeDecodeError:
        raise InputError(f"{path} is no UTF-8 text: give {form}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: not valid JSON ({error.msg}): give {form}") from None


@contextmanager
def malformed(path: Path, number: int, form: str) -> Iterator[None]:
    """Turn what is missing in a record, or of another type, into an `InputError` that names the file and the record."""
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{path}, record {number} has no {error}: give {form}") from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path}, record {number} is malformed ({error}): give {form}") from None
