"""Shared parts of the chat readers: make episodes from JSON objects, date messages, find branches of message trees."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic import ValidationError

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.models.labels import read_labels
from kg_memory.text.identity import name_assistant
from kg_memory.text.message_fields import ASSISTANT, ROLES, json_type, parse_time, plain_text
from kg_memory.validation import describe_invalid

Report = Callable[[InputError], None]
"""A function that is told what is wrong with a line or a message that is left out."""
Json = Mapping[str, Any]
TICK = timedelta(microseconds=1)
_WRAPPERS = ("conversations", "chats", "data", "items")
_CONTENT = ("content", "text", "message")
_SPEAKER = ("speaker", "name", "author", "role")
_AT = ("at", "timestamp", "time", "created_at", "createdAt", "create_time", "sent_at", "datetime", "date")
_THREAD = ("thread", "thread_id", "session", "session_id", "conversation_id")
_ID = ("source_id", "id", "message_id")
_KNOWN = frozenset((*_CONTENT, *_SPEAKER, *_AT, *_THREAD, *_ID, "source", "kind", "labels"))
_TELLS_WHO = frozenset({"role", "speaker"})
_TELLS_MESSAGE = _TELLS_WHO | {"author", "kind"}
# Roles of messages between program and model: they are not remembered.
UNSAID = frozenset({"system", "developer", "tool", "function"})


def is_message(record: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a chat message; False for a business record that also has a text field."""
    return any(key in record for key in _CONTENT) and (bool(_TELLS_MESSAGE & record.keys()) or record.keys() <= _KNOWN)


def from_record(record: Any) -> EpisodeInput | None:
    """Convert a JSON object such as ``{"role": "user", "content": "Hi"}`` to a message to store.

    None for a system or tool message, or an empty assistant message. Errors: `InputError`.
    """
    if not isinstance(record, Mapping):
        raise InputError(f'expected a JSON object such as {{"content": "..."}}, got {json_type(record)}')
    role = _text(record, ("role",))
    said = is_message(record)
    if role in UNSAID and (said or record.keys() <= _KNOWN):
        return None
    if not said:
        if _TELLS_WHO & record.keys() and record.keys() <= _KNOWN:
            raise InputError('this message has no content: add it, as in {"content": "..."}')
        return make_input(content=to_json(record), kind=EpisodeKind.JSON)
    value = _first_of(record, _CONTENT)
    kind = record.get("kind", EpisodeKind.MESSAGE)
    content = to_json(value) if kind == EpisodeKind.JSON and not isinstance(value, str) else plain_text(value)
    if not content.strip() and isinstance(value, list) and any("image" in str(first(part, "type")) for part in value):
        content = "[attachment: image]"
    if not content.strip() and (role == "assistant" or isinstance(value, list)):
        return None  # a tool call or its result, without text
    when, speaker = _first_of(record, _AT), _text(record, _SPEAKER)
    return make_input(
        content=content,
        kind=kind,
        speaker=name_assistant(speaker) if speaker and ROLES.get(str(role)) == ASSISTANT else speaker,
        at=None if when is None else parse_time(when),
        thread=_text(record, _THREAD),
        source=_text(record, ("source",)),
        source_id=_text(record, _ID),
        labels=read_labels(record.get("labels")),
    )


def make_input(**fields: Any) -> EpisodeInput:
    """Return an `EpisodeInput` with *fields*. Errors: `InputError` if the content is empty or a field is invalid."""
    if not str(fields["content"]).strip():
        raise InputError("the content is empty: add a text, or remove the message")
    try:
        return EpisodeInput(**fields)
    except ValidationError as error:
        raise InputError(describe_invalid(error, "the record", EpisodeInput.model_fields)) from None


def to_json(value: Any) -> str:
    """Return *value* as JSON text with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False)


def _first_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _text(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the value of the first of *keys* that is set in *record*, as text; None if none is set.

    Errors: `InputError`.
    """
    value = _first_of(record, keys)
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    key = next(key for key in keys if record.get(key) is not None)
    raise InputError(f"{key} must be a string, got {json_type(value)}")


def complete_episodes(items: Iterable[EpisodeInput], name: str, at: datetime, report: Report) -> Iterator[EpisodeInput]:
    """Yield *items*, the messages of a file, with missing times and the ids of undated messages filled in.

    A missing time is that of the previous message of the thread plus a microsecond, or *at* for the first message. The
    id of an undated message consists of *name* (the file name) and a hash of the thread's messages up to it. A
    message with the id of a different one is left out and reported.
    """
    latest: dict[str | None, datetime] = {}
    chains: dict[str | None, str] = {}
    contents: dict[str, int] = {}
    undated = 0
    for item in items:
        changes: dict[str, object] = {}
        own = item.at or (latest[item.thread] + TICK if item.thread in latest else None)
        chains[item.thread] = digest(chains.get(item.thread, item.thread or ""), item.speaker or "", item.content)
        if own is not None:
            latest[item.thread] = own
        if own is None and item.source_id is None:
            mark = chains[item.thread] if item.kind is EpisodeKind.MESSAGE else digest(item.content)
            changes["source_id"] = f"{name}#{mark}"
        changes["at"] = own or at + undated * TICK
        undated += own is None
        placed = item.model_copy(update=changes)
        if placed.source_id and contents.setdefault(placed.source_id, hash(placed.content)) != hash(placed.content):
            problem = f"the id {placed.source_id!r} is used by two different messages: give each message its own id"
            report(InputError(problem))
        else:
            yield placed


def digest(*texts: str) -> str:
    """Return a short hash of *texts*: 20 hexadecimal digits. Characters that UTF-8 cannot encode are allowed."""
    state = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()[:20]


@dataclass
class Thread:
    """One conversation of a chat export; its method `say` converts each message to an episode."""

    source: str
    name: str
    scope: str
    report: Report
    start: datetime | None = None
    names: Mapping[str, Json] | None = None
    before: datetime | None = None
    same: int = 0

    def say(
        self, id_: object, speaker: str | None, text: str, at: object = None, files: Iterable[object] = ()
    ) -> Iterator[EpisodeInput]:
        """Yield one message as an episode; nothing if it has no text and no files, or is invalid, which is reported.

        *id_* is the message's id in the export, and *at* its time, as text or Unix time. The names in *files* are
        appended to the text: "[attachment: photo.jpg]".
        """
        names = (re.split(r"[/\\]", str(file))[-1] for file in files if file)
        content = "\n".join((*filter(None, (text.strip(),)), *(f"[attachment: {name}]" for name in names)))
        if not content:
            return
        time = read_moment(at) or self.start
        self.start = None
        self.same = self.same + 1 if time == self.before else 0
        self.before = time
        time = time and time + self.same * TICK
        source_id = None if id_ is None else f"{self.source}/{self.scope}/{id_}"
        try:
            yield make_input(
                content=content, speaker=speaker, at=time, thread=self.name, source=self.source, source_id=source_id
            )
        except InputError as error:
            self.report(InputError(f"{self.name}, message {id_}: {error}"))


class Chat(NamedTuple):
    """A format of JSON chat exports, with the functions that parse it."""

    name: str
    unfold: Callable[[Any], list[Json]]
    read: Callable[[Json, Thread], Iterator[EpisodeInput]]
    named: bool = False


def find_chats(test: Callable[[Json], bool]) -> Callable[[Any], list[Json]]:
    """Return a function that finds the conversations in a JSON document: the objects for which *test* is true."""

    def unfold(document: Any) -> list[Json]:
        """Return the conversations in *document*, a parsed JSON file; an empty list if there are none."""
        if isinstance(document, Mapping):
            if test(document):
                return [document]
            document = next((document[key] for key in _WRAPPERS if isinstance(document.get(key), list)), None)
        return [each for each in objects(document) if test(each)]

    return unfold


def first(record: Any, *keys: str) -> Any:
    """Return the value of the first of *keys* that is set in *record*, or None.

    ``first({"name": "", "id": 7}, "name", "id") -> 7``
    """
    fields = record if isinstance(record, Mapping) else {}
    return next((fields[key] for key in keys if fields.get(key) not in (None, "")), None)


def names_in(record: Any, field: str, *keys: str) -> list[Any]:
    """Return, for each object in the list ``record[field]``, the value of the first of *keys* that is set."""
    return [first(each, *keys) for each in objects(first(record, field))]


def content_text(content: Any) -> str:
    """Return the text of a message's *content*: a string, or a list of strings and of parts like {"text": "Hi"}."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else first(part, "text", "refusal") for part in parts]
    texts = [first(text, "value") if isinstance(text, Mapping) else text for text in texts]
    return "\n".join(text for text in texts if text and isinstance(text, str))


def objects(value: Any) -> list[Json]:
    """Return the JSON objects in the list *value*; an empty list if *value* is not a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def name_role(role: object) -> str | None:
    """Return the speaker for the role of a message: "human" -> "user", "gpt" -> "assistant".

    None for the roles system and tool, and for unknown roles.
    """
    return {**ROLES, "gpt": "assistant", "chatgpt": "assistant", "model": "assistant"}.get(str(role).lower())


def read_moment(value: Any) -> datetime | None:
    """Convert a time in any usual form (ISO text, Unix time) to a datetime with UTC offset; None if it is no time."""
    try:
        return None if value in (None, "", 0) else parse_time(value)
    except InputError:
        return None


def branch(nodes: Json, leaf: object, parent: str) -> list[Json]:
    """Return the messages from the root of a message tree to the message with the id *leaf*.

    If *leaf* is unknown, the last leaf is used.
    """
    if not isinstance(leaf, str) or leaf not in nodes:
        parents = {str(node.get(parent)) for node in nodes.values() if isinstance(node, Mapping)}
        latest = list(nodes)[::-1]
        leaf = next((key for key in latest if key not in parents), next(iter(latest), None))
    path: dict[object, Json] = {}
    while isinstance(leaf, str) and leaf not in path and isinstance(nodes.get(leaf), Mapping):
        path[leaf] = nodes[leaf]
        leaf = nodes[leaf].get(parent)
    return list(path.values())[::-1]


def date_beginning(items: Iterator[EpisodeInput]) -> Iterator[EpisodeInput]:
    """Set the times of undated messages at the start of a conversation, and yield all messages."""
    undated: list[EpisodeInput] = []
    for item in items:
        if item.at is None:
            undated.append(item)
        else:
            for before, episode in enumerate(undated):
                yield episode.model_copy(update={"at": item.at - (len(undated) - before) * TICK})
            yield item
            yield from items
            return
    yield from undated
