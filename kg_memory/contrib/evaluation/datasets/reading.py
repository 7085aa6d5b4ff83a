"""Read the files of data sets, with errors that name the file and the record, and make episodes of their sessions."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

T = TypeVar("T")
TICK = timedelta(microseconds=1)
"""Messages of one session have one time in the data; they keep their order by this much."""
_WEEKDAY = re.compile(r"\s*\([^)]*\)\s*")
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:%s[^"\[\]{}]*+)*+([\[\]{}])' % _STRING, re.DOTALL)
"""A bracket, after anything that is none and after whole strings."""


def require(path: Path | None, name: str, form: str) -> Path:
    """Return *path*, which must exist; *form* is the file or folder that the data set *name* is read from.

    Raises: `InputError`.
    """
    if path is None:
        raise InputError(f"{name} is read from {form}: give its path with --data")
    if not path.exists():
        raise InputError(f"{path} does not exist: {name} is read from {form}; correct --data")
    return path


def read_json(path: Path) -> Any:
    """Return the JSON document at *path*.

    Raises: `InputError` if it is a folder, not UTF-8 or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: give the file in it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no UTF-8 text: give the JSON file of the data set") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not valid JSON ({error.msg}): download the file again") from None


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
def malformed(path: Path, record: str, form: str) -> Iterator[None]:
    """Turn errors about missing fields and wrong types of a record into an `InputError` that names file and record."""
    try:
        yield
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, {record}: not valid JSON ({error}): give {form}") from None
    except KeyError as error:
        raise InputError(f"{path}, {record} has no {error}: give {form}") from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path}, {record} is malformed ({error}): give {form}") from None


class JsonList(Sequence[T], Generic[T]):
    """The objects of a JSON list in a file. Each is read when it is asked for, so that memory holds one at a time.

    *form* says what the file should hold. *build* makes an item of a record.

    Raises: `InputError` if the file holds no whole JSON list; an item that *build* cannot make raises it, too.
    """

    def __init__(self, path: Path, form: str, build: Callable[[Any], T]) -> None:
        self._path, self._form, self._build = path, form, build
        with path.open("rb") as file:
            if not _LIST.match(file.read(64)):
                raise InputError(f"{path} is no JSON list: give {form}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self._spans = list(self._scan(data))

    def _scan(self, data: mmap.mmap) -> Iterator[tuple[int, int]]:
        """Yield the place of each object of the list."""
        depth = start = 0
        for bracket in _BRACKET.finditer(data):
            if bracket[1] in b"[{":
                depth += 1
                start = bracket.start(1) if depth == 2 else start
            else:
                depth -= 1
                if depth == 1:
                    yield start, bracket.end()
        if depth:
            raise InputError(f"{self._path} ends in the middle: download it again, {self._form}")

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        start, end = self._spans[index]
        with self._path.open("rb") as file, malformed(self._path, f"record {index % len(self) + 1}", self._form):
            file.seek(start)
            return self._build(json.loads(file.read(end - start)))


def moment(text: str) -> datetime:
    """Return a time such as ``2023/05/20 (Sat) 02:21``, in UTC as these data sets name no time zone.

    Raises:
        ValueError: *text* is no such time.
    """
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def messages(turns: Iterable[Mapping[str, Any]], session: str, at: datetime) -> Iterator[tuple[int, EpisodeInput]]:
    """Yield the turns that are not empty as messages, with their places.

    The id of a message is ``session/place``, and its speaker the turn's role.
    """
    for place, turn in enumerate(turns):
        content = turn["content"]
        if content and content.strip():
            time, source = at + place * TICK, f"{session}/{place}"
            message = EpisodeInput(content=content, speaker=turn["role"], at=time, thread=session, source_id=source)
            yield place, message


def following(at: datetime, episodes: Sequence[EpisodeInput]) -> datetime:
    """Return *at*, or right after the last of *episodes* if that is later: sessions of one time keep their order."""
    last = episodes[-1].at if episodes else None
    return at if last is None else max(at, last + TICK)


class Names:
    """Make names unique: a name that was given before gets ``~2``, ``~3`` and so on."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._given[name] = self._given.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name}~{count}")
