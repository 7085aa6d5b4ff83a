"""Reads the files of data sets, and converts their sessions to episodes (messages). Errors name file and record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

from kg_memory.contrib.importers.moving import read_json_records
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

T = TypeVar("T")
TICK = timedelta(microseconds=1)
"""The messages of a session share one time in the data sets; this difference keeps them in order."""
_WEEKDAY = re.compile(r"\s*\([^)]*\)\s*")


def require_data(path: Path | None, name: str, form: str) -> Path:
    """Return *path*, a data file or folder of the data set *name*.

    Errors: `InputError`.
    """
    if path is None:
        raise InputError(f"{name} is read from {form}: give its path with --data")
    if not path.exists():
        raise InputError(f"{path} does not exist: {name} is read from {form}; correct --data")
    return path


def find_file(path: Path | None, name: str, pattern: str) -> Path:
    """Return *path* if it is a file; if it is a folder, return its first file that matches *pattern*.

    Errors: `InputError`.
    """
    path = require_data(path, name, f"{pattern}, or the folder that it is in")
    if not path.is_dir():
        return path
    found = sorted(path.glob(pattern))
    if not found:
        raise InputError(f"{path} has no file {pattern}: download it, or give another variant")
    return found[0]


@contextmanager
def malformed(path: Path, record: str, form: str) -> Iterator[None]:
    """Context manager: raise errors about missing or wrong fields as `InputError` with *path* and *record*."""
    try:
        yield
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, {record}: not valid JSON ({error}): give {form}") from None
    except KeyError as error:
        raise InputError(f"{path}, {record} lacks the field {error}: give {form}") from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path}, {record} is malformed ({error}): give {form}") from None


@dataclass(frozen=True)
class JsonRecords(Generic[T]):
    """An iterable over the records of a JSON list or JSON Lines file, each converted by ``build(number, record)``."""

    path: Path
    form: str
    build: Callable[[int, Any], T]

    def __iter__(self) -> Iterator[T]:
        for number, (_, record) in enumerate(read_json_records(self.path), start=1):
            with malformed(self.path, f"record {number}", self.form):
                yield self.build(number, record)


def moment(text: str) -> datetime:
    """Parse a time such as ``2023/05/20 (Sat) 02:21`` to a datetime in UTC; these data sets have no time zones.

    Raises `ValueError` for another form.
    """
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def messages(turns: Iterable[Mapping[str, Any]], session: str, at: datetime) -> Iterator[tuple[int, EpisodeInput]]:
    """Yield (index, episode) for each message in *turns*, the messages of a session; empty ones are skipped."""
    for place, turn in enumerate(turns):
        content = turn["content"]
        if content and content.strip():
            time, source = at + place * TICK, f"{session}/{place}"
            yield place, EpisodeInput(content=content, speaker=turn["role"], at=time, thread=session, source_id=source)


def following(at: datetime, episodes: Sequence[EpisodeInput]) -> datetime:
    """Return the start time of a session: *at*, or just after the last of *episodes* if that is later."""
    last = episodes[-1].at if episodes else None
    return at if last is None else max(at, last + TICK)


class Names:
    """Makes names unique: ``a``, ``a`` and ``a`` become ``a``, ``a~2`` and ``a~3``."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._given[name] = self._given.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name}~{count}")
