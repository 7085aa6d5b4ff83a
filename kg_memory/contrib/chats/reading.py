"""Recognise the format of a file, folder or zip from its content, and read the episodes (messages or texts) in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from kg_memory.contrib.chats import formats, records
from kg_memory.contrib.chats.assistants import ASSISTANTS
from kg_memory.contrib.chats.files import ABOUT_CHATS, File, files_of, is_archive, lines_of, validate_file, whole_text
from kg_memory.contrib.chats.messengers import MESSENGERS
from kg_memory.contrib.chats.whatsapp import DateOrder, is_whatsapp, read_whatsapp
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.validation import validate_choice

_LOOKED_AT = 200
_JSON = (".json", ".jsonl", ".ndjson")
_OTHERS = frozenset((".csv", ".tsv", ".htm", ".html", ".eml", ".mbox", ".srt", ".vtt"))
CHATS: Mapping[str, records.Chat] = {chat.name: chat for chat in (*MESSENGERS, *ASSISTANTS)}
"""Readers of JSON chat exports by format name, in the order in which they are tried."""


@dataclass
class _Part:
    """One file to read: the file that the caller named, or a file inside a folder or zip."""

    path: Path
    file: File
    report: records.Report
    wanted: str | None = None
    date_order: DateOrder | None = None
    names: Mapping[str, records.Json] = field(default_factory=dict)

    @cached_property
    def format(self) -> str:
        """The format of the file: the one that the caller gave, or else the one detected from its content.

        Errors: `InputError` if it is unknown.
        """
        return self.wanted or _detect_format(self)

    @cached_property
    def document(self) -> Any:
        """The whole file parsed as one JSON document. Errors: `InputError` if the file is not valid JSON."""
        return _parse_json(whole_text(self.file), f"{self.path}:")

    @cached_property
    def thread(self) -> str:
        """The thread of the file's episodes: "folder-name", since files in different folders may have equal names."""
        return "-".join(part for part in (self.path.absolute().parent.name, self.path.stem) if part)


@dataclass
class Reading:
    """An iterable over the episodes in a file, folder or zip; invalid messages are added to `problems`.

    With `strict`, the first one is raised instead.
    """

    path: Path
    strict: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    wanted: str | None = None
    date_order: DateOrder | None = None
    max_content: int | None = None
    problems: list[InputError] = field(default_factory=list)
    _skipped: list[InputError] = field(default_factory=list, init=False)

    @cached_property
    def parts(self) -> list[_Part]:
        """The files to read: the path itself or, for a folder or zip, the files in it that contain conversations.

        Errors: `InputError`.
        """
        if not is_archive(self.path):
            validate_file(self.path)
            return [self._part(self.path, self.path)]
        found = [self._part(path, file) for path, file in files_of(self.path)]
        names = _read_slack_users(found)
        chats: list[_Part] = []
        for part in found:
            try:
                if part.wanted is not None or part.format not in ("json", "text", "records"):
                    part.names = names
                    chats.append(part)
                elif part.format == "text":  # JSON without messages is, say, a profile
                    problem = f"{part.path} contains no conversation: pass this file alone to read it as one text"
                    self._skipped.append(InputError(problem))
            except InputError as error:
                if part.path.name not in ABOUT_CHATS:
                    self._skipped.append(error)
        if not chats:
            raise InputError(
                f"no chat export found in {self.path} (known formats: {_LISTED}): pass the paths of the files in it"
            )
        return chats

    @property
    def format(self) -> str:
        """The format of the file; for a folder or zip, the formats of its files, separated by commas."""
        return ", ".join(dict.fromkeys(part.format for part in self.parts))

    def _part(self, path: Path, file: File) -> _Part:
        return _Part(path, file, partial(self._report, path), self.wanted, self.date_order)

    def _report(self, path: Path, error: InputError) -> None:
        """Add *error*, with *path* in front, to `problems`; with `strict`, raise it."""
        text = str(error)
        problem = InputError(f"{path}:{text.removeprefix('line ')}" if text.startswith("line ") else f"{path}: {text}")
        if self.strict:
            raise problem from None
        self.problems.append(problem)

    def __iter__(self) -> Iterator[EpisodeInput]:
        """Yield the episodes in file order; `problems` gets the files and messages that cannot be read."""
        self.problems[:] = self._skipped if self.parts else []
        for part in self.parts:
            read_part = _READ.get(part.format)
            items = read_part(part) if read_part else _read_chats(CHATS[part.format], part.document, part)
            try:
                for episode in records.complete_episodes(items, part.path.name, self.at, part.report):
                    text, most = episode.content, self.max_content
                    if most is None or len(text) <= most:
                        yield episode
                        continue
                    size = f"has {len(text)} characters, and the limit is {most}"
                    advice = "split it, or raise KG_MEMORY_MAX_CONTENT"
                    part.report(InputError(f"the content starting with {text[:40]!r} {size}: {advice}"))
            except InputError as error:  # of the whole file
                if self.strict or len(self.parts) == 1:
                    raise
                self.problems.append(error)


def read(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - the word for it
    at: datetime | None = None,
    strict: bool = False,
    date_order: DateOrder | None = None,
    max_content: int | None = None,
) -> Reading:
    """Return the episodes in the file, folder or zip at *path*, as an iterable `Reading`.

    Errors: `InputError`.
    """
    if format is not None:
        validate_choice("the format", format, FORMATS)
    return Reading(Path(path), strict, at or datetime.now(UTC), format, date_order, max_content)


def _read_slack_users(parts: list[_Part]) -> dict[str, records.Json]:
    users = (part.document for part in parts if part.path.name in ("users.json", "org_users.json"))
    return {str(user["id"]): user for each in users for user in records.objects(each) if "id" in user}


def _detect_format(part: _Part) -> str:
    """Return the format of *part* ("whatsapp" etc.), detected from its first lines. Errors: `InputError` if unknown."""
    head = islice(lines_of(part.file, lambda _: None), _LOOKED_AT)
    texts = [text for _, text in head if text.strip()]
    if not texts:
        whole_text(part.file)  # raises with the line if it is not text
        raise InputError(f"{part.path} contains no text: pass a file with messages")
    if part.path.suffix.lower() in _OTHERS:
        raise _unknown(part, "--format text to import it as one text")
    if is_whatsapp(texts):
        return "whatsapp"
    parsed = list(map(_parse_object, texts))
    if not (part.path.suffix.lower() in _JSON or any(parsed) or formats.JSON_START.match("\n".join(texts))):
        is_chat = formats.is_chat(texts)
        if not is_chat and formats.is_dialogue(texts):
            raise _unknown(part, "--format text to import it as one text")
        return "chat" if is_chat else "text"
    if len(texts) == 1 or parsed[0] is None:
        try:
            return _detect_json_format(part)
        except InputError:
            if "document" in part.__dict__ or not (part.path.suffix in _JSON[1:] or any(parsed[1:])):
                raise
    _refuse_unknown_chats(part, [record for record in parsed if record is not None])
    return "jsonl"


def _parse_object(text: str) -> records.Json | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _detect_json_format(part: _Part) -> str:
    """Return the format of *part*, a file with one JSON document ("openai" etc.). Errors: `InputError` if unknown."""
    document = part.document
    if formats.samples(document):
        return "locomo"
    if formats.is_beam(document):
        return "beam"
    if (chat := _chat_of(document)) is not None:
        return chat.name
    first_ = next(iter(formats.find_messages(document) or []), None)
    if formats.is_langchain(first_):
        return "langchain"
    # A list of messages with times or threads is read like JSON Lines: "json" below.
    if formats.is_openai(first_) and isinstance(first_, dict):
        return "openai"
    _refuse_unknown_chats(part, document if isinstance(document, list) else [document])
    return "json"


def _chat_of(document: Any) -> records.Chat | None:
    return next((chat for chat in CHATS.values() if chat.unfold(document)), None)


def _refuse_unknown_chats(part: _Part, records: list[Any]) -> None:
    for record in records[:_LOOKED_AT]:
        if not (isinstance(record, dict) and _is_readable(record)) and formats.looks_like_chat(record):
            raise _unknown(part, "--records to import it as JSON records")


def _unknown(part: _Part, option: str) -> InputError:
    return InputError(
        f"{part.path} is in an unknown format (known: {_LISTED}). Convert a conversation to JSON Lines, as "
        f'{{"content": "Hi", "speaker": "Ann", "at": "2024-05-01T10:00:00Z", "thread": "t1"}}, or pass {option}'
    )


def _is_readable(record: records.Json) -> bool:
    if _chat_of(record) is not None or formats.is_langchain(record) or formats.find_messages(record):
        messages = formats.find_messages(record) or []
        return not messages or formats.is_openai(messages[0]) or formats.is_langchain(messages[0])
    return records.is_message(record) and not isinstance(
        records.first(record, "speaker", "name", "author", "role"), dict | list
    )


def _read_chats(chat: records.Chat, document: Any, part: _Part, line: int | None = None) -> Iterator[EpisodeInput]:
    """Yield the messages of all conversations in *document*, a chat export, each in its own thread."""
    conversations = chat.unfold(document)
    if not conversations:
        raise _not_of(part, f"{chat.name} conversation")
    fallback = part.thread if line is None else f"{part.thread}-{line}"
    titles: list[str | None] = [_title_of(each, part) for each in conversations]
    for number, (conversation, title) in enumerate(zip(conversations, titles, strict=True), start=1):
        id_ = records.first(conversation, "conversation_id", "uuid", "id") or records.first(
            conversation.get("channel"), "id"
        )
        own = fallback if len(conversations) == 1 else f"{fallback}-{number}"
        if chat.named:
            name = title if titles.count(title) == 1 else f"{title} ({id_})"
        else:
            name = str(id_) if isinstance(id_, str | int) else title
        name = str(name or id_ or own).replace("/", "-")
        start = records.first(conversation, "create_time", "created_at", "createdAt", "created", "timestamp", "date")
        thread = records.Thread(chat.name, name, str(id_ or name), part.report, records.read_moment(start), part.names)
        yield from records.date_beginning(chat.read(conversation, thread))


def _title_of(conversation: records.Json, part: _Part) -> str | None:
    """Return the title of an exported conversation (for Slack, the name of the channel's folder); None without one."""
    if "ts" in next(iter(records.objects(conversation.get("messages"))), {}) and "name" not in conversation:
        return part.path.absolute().parent.name if part.path.stem[:4].isdecimal() else part.path.stem
    guild, channel = conversation.get("guild"), conversation.get("channel")
    named = [records.first(guild, "name"), records.first(channel, "name")]
    names = named if isinstance(channel, dict) else [records.first(conversation, "title", "name")]
    untitled = "Saved Messages" if conversation.get("type") == "saved_messages" else None
    return " - ".join(str(name) for name in names if name) or untitled


def _parse_json(text: str, place: str, number: int | None = None) -> Any:
    """Parse the JSON *text*, a whole file or its line *number*.

    Errors: `InputError`; its message begins with *place* and the number of the line at fault.
    """
    try:
        return json.loads(text, parse_constant=str)
    except json.JSONDecodeError as error:
        line, told = number or error.lineno, f"{error.msg} at column {error.colno}"
        raise InputError(f"{place}{line}: not valid JSON ({told}): correct the line") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}{number or 1}: the JSON cannot be read ({error}): reduce its nesting") from None


def _parsed_lines(part: _Part) -> Iterator[tuple[int, Any]]:
    for number, text in lines_of(part.file, part.report):
        if text.strip():
            try:
                yield number, _parse_json(text, "line ", number)
            except InputError as error:
                part.report(error)


def _read_lines(part: _Part) -> Iterator[EpisodeInput]:
    for number, record in _parsed_lines(part):
        thread, messages = f"{part.thread}-{number}", formats.find_messages(record)
        is_message = isinstance(record, Mapping) and records.is_message(record)
        if messages and (formats.is_openai(messages[0]) or formats.is_langchain(messages[0])):
            yield from formats.read_messages(record, thread, part.report)
        elif not is_message and (chat := _chat_of(record)) is not None:
            yield from _read_chats(chat, record, part, number)
        elif not is_message and (formats.is_langchain(record) or formats.is_openai(record)):
            yield from formats.read_messages([record], part.thread, part.report)
        else:
            yield from _read_record(record, f"line {number}", part)


def _read_json(part: _Part) -> Iterator[EpisodeInput]:
    for number, record in enumerate(_records(part.document), start=1):
        if isinstance(record, dict):
            yield from _read_record(record, f"record {number}", part)
        else:
            yield _to_record(record)


def _read_record(record: Any, place: str, part: _Part) -> Iterator[EpisodeInput]:
    try:
        episode = records.from_record(record)
    except InputError as error:
        part.report(InputError(f"{place}: {error}"))
        return
    if episode is not None:
        yield episode


def _records(document: Any) -> list[Any]:
    many = isinstance(document, list) and bool(document) and all(isinstance(item, dict) for item in document)
    return document if many else [document]


def _to_record(record: Any) -> EpisodeInput:
    return records.make_input(content=records.to_json(record), kind=EpisodeKind.JSON)


def _read_records(part: _Part) -> Iterator[EpisodeInput]:
    """Yield each object of *part*, a JSON list or JSON Lines file, as a JSON record, even if it looks like a chat."""
    try:
        yield from map(_to_record, _records(part.document))
    except InputError:
        if "document" in part.__dict__:
            raise
        yield from (_to_record(record) for _, record in _parsed_lines(part))


def _document_reader(
    is_valid: Callable[[Any], object], read_document: Callable[..., Iterable[EpisodeInput]], name: str
) -> Callable[[_Part], Iterable[EpisodeInput]]:
    def read_part(part: _Part) -> Iterable[EpisodeInput]:
        if not is_valid(part.document):
            raise _not_of(part, name)
        return read_document(part.document, part.thread, part.report)

    return read_part


def _read_whatsapp(part: _Part) -> Iterator[EpisodeInput]:
    return read_whatsapp(lines_of(part.file, part.report), part.path, part.date_order, part.report)


_read_messages = _document_reader(formats.find_messages, formats.read_messages, "list of messages")
_READ: dict[str, Callable[[_Part], Iterable[EpisodeInput]]] = {
    "jsonl": _read_lines,
    "openai": _read_messages,
    "langchain": _read_messages,
    "locomo": _document_reader(formats.samples, formats.read_locomo, "LoCoMo conversation"),
    "beam": _document_reader(formats.is_beam, formats.read_beam, "BEAM chat"),
    "json": _read_json,
    "chat": lambda part: formats.read_chat(lines_of(part.file, part.report), part.thread, part.report),
    "text": lambda part: [records.make_input(content=whole_text(part.file), kind=EpisodeKind.TEXT)],
    "whatsapp": _read_whatsapp,
    "records": _read_records,
}
FORMATS: tuple[str, ...] = (*_READ, *CHATS)
_LISTED = ", ".join(format_ for format_ in FORMATS if format_ not in ("json", "text", "records"))


def _not_of(part: _Part, what: str) -> InputError:
    return InputError(f"{part.path} contains no {what}: leave the format out to detect it automatically")
