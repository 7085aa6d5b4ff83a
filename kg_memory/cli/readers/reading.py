"""Recognise a file's format and read it."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from kg_memory.cli.readers import formats
from kg_memory.cli.readers.records import Item, build, from_record, is_message, place
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind

_LOOKED_AT = 200


@dataclass
class Reading:
    """A file as episodes; it can be iterated again, and again gives the same.

    `problems` are what the last iteration could not read and left out; with `strict` the first is raised.
    `at` dates what the file does not date.
    """

    path: Path
    strict: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    wanted: Format | None = None
    problems: list[InputError] = field(default_factory=list)

    @cached_property
    def format(self) -> Format:
        """The format, as asked for or as the content shows."""
        check(self.path)
        return self.wanted or _recognise(self)

    @cached_property
    def document(self) -> Any:
        """The file as one JSON document."""
        text = whole_text(self.path)
        try:
            return json.loads(text, parse_constant=str)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{self.path}:{error.lineno}: not valid JSON ({error.msg} at column {error.colno}): correct it there"
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: this JSON cannot be read ({error}): simplify it") from None

    def __iter__(self) -> Iterator[EpisodeInput]:
        """Yield the episodes in the file's order."""
        self.problems.clear()
        for item in place(_READ[self.format](self), self.path.name, self.at):
            if not isinstance(item, InputError):
                yield item
                continue
            problem = _at_path(self.path, item)
            if self.strict:
                raise problem
            self.problems.append(problem)


def read(
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002 - the word for it
    at: datetime | None = None,
    strict: bool = False,
) -> Reading:
    """Return the episodes of the file at *path*, its format recognised from its content unless given.

    Without *strict*, lines and messages that cannot be read are left out and listed in `Reading.problems`.
    *at* dates what the file leaves undated, now by default.
    Errors: `InputError` says what is wrong where, when the file is iterated.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"{format!r} is no format: choose one of {', '.join(FORMATS)}")
    return Reading(Path(path), strict=strict, at=at or datetime.now(UTC), wanted=format)


def _recognise(reading: Reading) -> Format:
    head = [line for line in islice(lines_of(reading.path), _LOOKED_AT) if not isinstance(line, InputError)]
    texts = [text for _, text in head if text.strip()]
    if not texts:
        whole_text(reading.path)  # says where it is no text
        raise InputError(f"{reading.path} has no text: give a file with messages in it")
    # A line in brackets may open a chat's time stamp as well as a list.
    if texts[0].lstrip()[0] not in "{[" or formats.split(texts[0])[0] is not None:
        return "chat" if formats.is_chat(texts) else "text"
    if sum(_is_object(text) for text in texts) > (len(texts) == 1):
        return "jsonl"
    try:
        return _recognise_json(reading.document)
    except InputError:
        if reading.path.suffix in (".jsonl", ".ndjson"):
            return "jsonl"
        raise


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _recognise_json(document: Any) -> Format:
    if formats.samples(document):
        return "locomo"
    if formats.is_beam(document):
        return "beam"
    first = next(iter(formats.messages_of(document) or []), None)
    if formats.is_langchain(first):
        return "langchain"
    # A list of messages with times or threads is what JSON Lines have, only in one list.
    if formats.is_openai(first) and isinstance(first, dict):
        return "openai"
    return "json"


def _read_lines(reading: Reading) -> Iterator[Item]:
    for line in lines_of(reading.path):
        if isinstance(line, InputError):
            yield line
            continue
        number, text = line
        if not text.strip():
            continue
        try:
            yield from _from_line(json.loads(text, parse_constant=str), f"{_thread(reading)}-{number}")
        except InputError as error:
            yield InputError(f"line {number}: {error}")
        except json.JSONDecodeError as error:
            yield InputError(f"line {number}: not valid JSON ({error.msg} at column {error.colno}): correct the line")
        except (ValueError, RecursionError) as error:
            yield InputError(f"line {number}: this JSON cannot be read ({error}): simplify it")


def _from_line(record: Any, thread: str) -> Iterator[Item]:
    """Yield the episode of one line, or the messages of a line that has a whole list of them."""
    messages_ = formats.messages_of(record)
    if messages_ and (formats.is_openai(messages_[0]) or formats.is_langchain(messages_[0])):
        yield from formats.read_messages(record, thread)
    elif formats.is_langchain(record) and not is_message(record):
        yield from formats.read_messages([record], thread)
    elif (episode := from_record(record)) is not None:
        yield episode


def _read_json(reading: Reading) -> Iterator[Item]:
    document = reading.document
    many = isinstance(document, list) and bool(document) and all(isinstance(item, dict) for item in document)
    records = document if many else [document]
    for number, record in enumerate(records, start=1):
        try:
            if isinstance(record, dict):
                episode = from_record(record)
            else:
                episode = build(content=json.dumps(record, ensure_ascii=False), kind=EpisodeKind.JSON)
            if episode is not None:
                yield episode
        except InputError as error:
            yield InputError(f"record {number}: {error}")


def _read_text(reading: Reading) -> Iterator[Item]:
    yield build(content=whole_text(reading.path), kind=EpisodeKind.TEXT)


def _read_chat(reading: Reading) -> Iterable[Item]:
    return formats.read_chat(lines_of(reading.path), _thread(reading))


def _read_messages(reading: Reading) -> Iterable[Item]:
    if not formats.messages_of(reading.document):
        raise _not_of(reading, "list of messages")
    return formats.read_messages(reading.document, _thread(reading))


def _read_locomo(reading: Reading) -> Iterable[Item]:
    if not formats.samples(reading.document):
        raise _not_of(reading, "LoCoMo conversation")
    return formats.read_locomo(reading.document, _thread(reading))


def _read_beam(reading: Reading) -> Iterable[Item]:
    if not formats.is_beam(reading.document):
        raise _not_of(reading, "BEAM chat")
    return formats.read_beam(reading.document, _thread(reading))


_READ: dict[Format, Callable[[Reading], Iterable[Item]]] = {
    "jsonl": _read_lines,
    "openai": _read_messages,
    "langchain": _read_messages,
    "locomo": _read_locomo,
    "beam": _read_beam,
    "json": _read_json,
    "chat": _read_chat,
    "text": _read_text,
}


def _thread(reading: Reading) -> str:
    """Return a name for the file's conversation: files are often called alike in different folders."""
    return "-".join(part for part in (reading.path.absolute().parent.name, reading.path.stem) if part)


def _not_of(reading: Reading, what: str) -> InputError:
    return InputError(f"{reading.path} has no {what}: leave the format out to have it recognised")


def _at_path(path: Path, problem: InputError) -> InputError:
    """Return *problem* with the file before it, as ``file:line`` where it has a line."""
    text = str(problem)
    return InputError(f"{path}:{text.removeprefix('line ')}" if text.startswith("line ") else f"{path}: {text}")


_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_HEAD = 4096


def check(path: Path) -> None:
    """Refuse what is no readable text file.

    Errors: `InputError`.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the files in it")
    if not path.exists():
        raise InputError(f"{path} does not exist: check the name")
    if not path.is_file():
        raise InputError(f"{path} is no ordinary file: save its content to one first")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): change its permissions") from None
    if not head.strip():
        raise InputError(f"{path} is empty: give a file with messages in it")
    for mark, name in _OTHER_MARKS.items():
        if head.startswith(mark):
            raise InputError(f"{path} is {name}: convert it, as with `iconv -f {name} -t UTF-8 {path.name}`")
    if b"\0" in head:
        raise InputError(f"{path} is no text file: give messages as text or JSON")


def lines_of(path: Path) -> Iterator[tuple[int, str] | InputError]:
    """Yield each line with its number, and an error in the place of a line that is not UTF-8."""
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            if number == 1:
                data = data.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901 - the mark is no part of the line
            try:
                yield number, data.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                yield InputError(f"line {number}: byte {error.start + 1} is not UTF-8: save the file as UTF-8")


def whole_text(path: Path) -> str:
    """Return all of the text.

    Errors: `InputError`.
    """
    data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text: save the file as UTF-8") from None


Format = Literal["jsonl", "openai", "langchain", "locomo", "beam", "json", "chat", "text"]
FORMATS: tuple[Format, ...] = get_args(Format)
