"""One JSON object of a file, as the episode that it stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kg_memory.cli.readers.times import parse_time
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind

_CONTENT = ("content", "text", "message")
_SPEAKER = ("speaker", "name", "author", "role")
_AT = ("at", "timestamp", "time", "created_at", "date")
_THREAD = ("thread", "thread_id", "session", "session_id", "conversation_id")
_ID = ("source_id", "id", "message_id")
_KNOWN = frozenset((*_CONTENT, *_SPEAKER, *_AT, *_THREAD, *_ID, "source", "kind"))
_TELLS_MESSAGE = frozenset({"role", "speaker", "author", "kind"})
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
        raise InputError(f'this is {_json_type(record)}, not an object: write one object like {{"content": "..."}}')
    if not is_message(record):
        return build(content=to_json(record), kind=EpisodeKind.JSON)
    role = _text(record, ("role",))
    if role in UNSAID:
        return None
    value = _first(record, _CONTENT)
    kind = record.get("kind", EpisodeKind.MESSAGE)
    content = to_json(value) if kind == EpisodeKind.JSON and not isinstance(value, str) else plain_text(value)
    if not content.strip() and role == "assistant":
        return None  # a call of a tool, with no word said
    when = _first(record, _AT)
    return build(
        content=content,
        kind=kind,
        speaker=_text(record, _SPEAKER),
        at=None if when is None else parse_time(when),
        thread=_text(record, _THREAD),
        source=_text(record, ("source",)),
        source_id=_text(record, _ID),
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


def plain_text(content: Any) -> str:
    """Return the words of a message's content: a string, or a list of parts of which the texts are kept."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part if isinstance(part, str) else _part_text(part) for part in content)
        return "\n".join(text for text in texts if text)
    raise InputError(f"the content is {_json_type(content)}: make it a string or a list of parts")


def to_json(value: Any) -> str:
    """Return *value* as JSON text, in its own language."""
    return json.dumps(value, ensure_ascii=False)


def _part_text(part: Any) -> str:
    text = part.get("text") or part.get("refusal") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _first(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _text(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the first of *keys* that has a value, as text; numbers serve as ids."""
    value = _first(record, keys)
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    key = next(key for key in keys if record.get(key) is not None)
    raise InputError(f"{key} is {_json_type(value)}: make it a string")


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
