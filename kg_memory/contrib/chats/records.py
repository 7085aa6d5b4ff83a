"""Helpers of the readers of chats: episodes of JSON objects, threads, times, and branches of a tree."""

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
from kg_memory.text.message_fields import ROLES, json_type, parse_time, plain_text

Item = EpisodeInput | InputError
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
# What the program says to the model, not what anybody said: no memory of a conversation.
UNSAID = frozenset({"system", "developer", "tool", "function"})


def is_message(record: Mapping[str, Any]) -> bool:
    """Tell whether *record* is something said, rather than a business record that also has a text field."""
    if not any(key in record for key in _CONTENT):
        return False
    return bool(_TELLS_MESSAGE & record.keys()) or record.keys() <= _KNOWN


def from_record(record: Any) -> EpisodeInput | None:
    """Return the episode of *record*: a message, or a JSON record; ``None`` for what nobody said (system, tools).

    Errors: `InputError`, without the place, which the caller knows.
    """
    if not isinstance(record, Mapping):
        raise InputError(f'this is {json_type(record)}, not an object: write one object like {{"content": "..."}}')
    role = _text(record, ("role",))
    said = is_message(record)
    if role in UNSAID and (said or record.keys() <= _KNOWN):
        return None
    if not said:
        if _TELLS_WHO & record.keys() and record.keys() <= _KNOWN:
            raise InputError('this message has no content: add it, as in {"content": "..."}')
        return build(content=to_json(record), kind=EpisodeKind.JSON)
    value = _first_of(record, _CONTENT)
    kind = record.get("kind", EpisodeKind.MESSAGE)
    content = to_json(value) if kind == EpisodeKind.JSON and not isinstance(value, str) else plain_text(value)
    if not content.strip() and role == "assistant":
        return None  # a call of a tool, with no word said
    when = _first_of(record, _AT)
    return build(
        content=content,
        kind=kind,
        speaker=_text(record, _SPEAKER),
        at=None if when is None else parse_time(when),
        thread=_text(record, _THREAD),
        source=_text(record, ("source",)),
        source_id=_text(record, _ID),
        labels=read_labels(record.get("labels")),
    )


def build(**fields: Any) -> EpisodeInput:
    """Return the episode with *fields*; refuse an empty content.

    Errors: `InputError`.
    """
    if not str(fields["content"]).strip():
        raise InputError("the content is empty: give it a text, or take it out")
    try:
        return EpisodeInput(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "the record"
        raise InputError(f"{name} cannot be used ({first['msg'].lower()}): correct it") from None


def to_json(value: Any) -> str:
    """Return *value* as JSON text, in its own language."""
    return json.dumps(value, ensure_ascii=False)


def _first_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _text(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the first of *keys* that has a value, as text; numbers serve as ids."""
    value = _first_of(record, keys)
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    key = next(key for key in keys if record.get(key) is not None)
    raise InputError(f"{key} is {json_type(value)}: make it a string")


def place(items: Iterable[Item], name: str, at: datetime) -> Iterator[Item]:
    """Give each of *items* a time and, where its time is not its own, an id that a second reading gives again.

    A message without a time follows the one before it in its thread by a microsecond; *at* is
    the time of what comes before any time. A message that nothing dates is known by *name* and
    by all that was said before it, so that a file may grow; a text or a record by its content.
    An id that is used twice for different contents is an `InputError` in its place.
    """
    latest: dict[str | None, datetime] = {}
    chains: dict[str | None, str] = {}
    contents: dict[str, int] = {}
    undated = 0
    for item in items:
        if isinstance(item, InputError):
            yield item
            continue
        changes: dict[str, object] = {}
        own = item.at or (latest[item.thread] + TICK if item.thread in latest else None)
        chains[item.thread] = digest(chains.get(item.thread, ""), item.speaker or "", item.content)
        if own is not None:
            latest[item.thread] = own
        if own is None and item.source_id is None:
            mark = chains[item.thread] if item.kind is EpisodeKind.MESSAGE else digest(item.content)
            changes["source_id"] = f"{name}#{mark}"
        changes["at"] = own or at + undated * TICK
        undated += own is None
        placed = item.model_copy(update=changes)
        if placed.source_id and contents.setdefault(placed.source_id, hash(placed.content)) != hash(placed.content):
            yield InputError(f"the id {placed.source_id!r} belongs to another message too: give each its own id")
        else:
            yield placed


def digest(*texts: str) -> str:
    """Return a short digest of *texts*; strange characters in them do no harm."""
    state = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()[:20]


@dataclass
class Thread:
    """A conversation of an export.

    `scope` comes before the ids of its messages. `start` dates a message without a time that nothing comes before.
    `names` are the users of a workspace by their ids. The `same` messages at one time, that of the message
    `before`, keep their order by a microsecond each.
    """

    source: str
    name: str
    scope: str
    start: datetime | None = None
    names: Mapping[str, Json] | None = None
    before: datetime | None = None
    same: int = 0

    def say(
        self, id_: object, speaker: str | None, text: str, at: object = None, files: Iterable[object] = ()
    ) -> Iterator[Item]:
        """Yield the message, or nothing where it has neither text nor files."""
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
            yield build(
                content=content, speaker=speaker, at=time, thread=self.name, source=self.source, source_id=source_id
            )
        except InputError as error:
            yield InputError(f"{self.name}, message {id_}: {error}")


class Chat(NamedTuple):
    """A format of JSON exports; `unfold` returns the conversations of a document, none where it has another format.

    Threads are called by the names of conversations where `named`, by their ids otherwise.
    """

    name: str
    unfold: Callable[[Any], list[Json]]
    read: Callable[[Json, Thread], Iterator[Item]]
    named: bool = False


def select(test: Callable[[Json], bool]) -> Callable[[Any], list[Json]]:
    """Return an `unfold` for objects that pass *test*: alone, in a list, or in a list that an object wraps."""

    def unfold(document: Any) -> list[Json]:
        if isinstance(document, Mapping):
            if test(document):
                return [document]
            document = next((document[key] for key in _WRAPPERS if isinstance(document.get(key), list)), None)
        return (
            [each for each in document if isinstance(each, Mapping) and test(each)]
            if isinstance(document, list)
            else []
        )

    return unfold


def first(record: Any, *keys: str) -> Any:
    """Return the value of the first of *keys* that has one, None if *record* is no object."""
    return (
        next((record[key] for key in keys if record.get(key) not in (None, "")), None)
        if isinstance(record, Mapping)
        else None
    )


def names_in(record: Any, field: str, *keys: str) -> list[Any]:
    """Return the value of the first of *keys* of each object in the list *field* of *record*."""
    return [first(each, *keys) for each in objects(first(record, field))]


def words_of(content: Any) -> str:
    """Return the texts of *content*: a string, or a list of strings and of parts with a text, in any known form."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else first(part, "text", "refusal") for part in parts]
    texts = [first(text, "value") if isinstance(text, Mapping) else text for text in texts]
    return "\n".join(text for text in texts if text and isinstance(text, str))


def objects(value: Any) -> list[Json]:
    """Return the objects of a list, none if *value* is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def name_role(role: object) -> str | None:
    """Return the speaker of *role*: user, assistant, or None for prompts, tools and unknown roles."""
    return {**ROLES, "gpt": "assistant", "chatgpt": "assistant", "model": "assistant"}.get(str(role).lower())


def read_moment(value: Any) -> datetime | None:
    """Return *value* as a time with its offset, None where it is no time."""
    try:
        return None if value in (None, "", 0) else parse_time(value)
    except InputError:
        return None


def branch(nodes: Json, leaf: object, parent: str) -> list[Json]:
    """Return the nodes from the root to *leaf*, by default to the last node without children."""
    if not isinstance(leaf, str) or leaf not in nodes:
        parents = {str(node.get(parent)) for node in nodes.values() if isinstance(node, Mapping)}
        latest = list(nodes)[::-1]
        leaf = next((key for key in latest if key not in parents), next(iter(latest), None))
    path: dict[object, Json] = {}
    while isinstance(leaf, str) and leaf not in path and isinstance(nodes.get(leaf), Mapping):
        path[leaf] = nodes[leaf]
        leaf = nodes[leaf].get(parent)
    return list(path.values())[::-1]


def date_beginning(items: Iterator[Item]) -> Iterator[Item]:
    """Date messages without a time at the beginning of a conversation by the first that has one."""
    undated: list[EpisodeInput] = []
    for item in items:
        if isinstance(item, InputError):
            yield item
        elif item.at is None:
            undated.append(item)
        else:
            for before, episode in enumerate(undated):
                yield episode.model_copy(update={"at": item.at - (len(undated) - before) * TICK})
            yield item
            yield from items
            return
    yield from undated
