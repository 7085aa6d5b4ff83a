"""Plain text chats: ``Ann: hello``, with or without ``[2024-05-01 10:00]`` before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kg_memory.cli.readers.records import Item, build, from_record
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.message_fields import parse_time

Line = tuple[int, str]

_STAMP = re.compile(
    r"\[(?P<boxed>[^\]]{8,40})\]\s*|(?P<bare>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?(?=[\s,-]))\s*[-,]?\s*"
)
_SPEAKER = re.compile(
    r"(?P<speaker>[^\s:：,;.!?。，！？/\[\]][^:：,;!?。，！？/\n]{0,39}?)\s*(?::\s+|：\s*)(?P<said>\S.*)"
)
_MAX_WORDS = 4
_TICK = timedelta(microseconds=1)


def is_chat(lines: Iterable[str]) -> bool:
    """Tell whether most of *lines* are said by somebody, and the same people speak again."""
    spoken = [split(line) for line in lines if line.strip()]
    speakers = [speaker for _, speaker, _ in spoken if speaker]
    stamped = sum(stamp is not None for stamp, _, _ in spoken)
    if stamped and stamped * 2 >= len(spoken):
        return True
    return len(speakers) * 2 >= len(spoken) and 0 < len(set(speakers)) <= len(speakers) / 2 + 1


def split(line: str) -> tuple[str | None, str | None, str]:
    """Return *line* as its time stamp, its speaker and what is said."""
    stamp, rest = None, line
    if (match := _STAMP.match(line)) and any(mark.isdigit() for mark in match.group()):
        stamp, rest = match["boxed"] or match["bare"], line[match.end() :]
    spoken = _SPEAKER.fullmatch(rest)
    if spoken and len(spoken["speaker"].split()) <= _MAX_WORDS:
        return stamp, spoken["speaker"], spoken["said"]
    return stamp, None, rest


def read_chat(lines: Iterable[Line | InputError], thread: str) -> Iterator[Item]:
    """Yield one message for each line that a speaker or a time opens.

    Lines without either, and indented lines, go on with the message before them. Messages of
    the same minute keep their order, a microsecond apart.
    """
    current: EpisodeInput | None = None
    stamp_before: datetime | None = None
    same = 0
    for line in lines:
        if isinstance(line, InputError):
            yield line
            continue
        number, text = line
        stamp, speaker, spoken = (None, None, text) if text[:1].isspace() else split(text)
        if stamp is None and speaker is None:
            current = _append(current, text, thread)
            continue
        if current is not None:
            yield current
            current = None
        try:
            at = None if stamp is None else parse_time(stamp)
            same = same + 1 if at is None or at == stamp_before else 0
            stamp_before = at or stamp_before
            at = None if stamp_before is None else stamp_before + same * _TICK
            if spoken.strip():
                current = build(content=spoken.strip(), speaker=speaker, at=at, thread=thread)
            else:
                same -= 1  # a stamp alone dates the messages below it
        except InputError as error:
            yield InputError(f"line {number}: {error}")
    if current is not None:
        yield current


def _append(current: EpisodeInput | None, text: str, thread: str) -> EpisodeInput | None:
    if not text.strip():
        return current
    if current is None:
        return build(content=text.strip(), thread=thread)
    return current.model_copy(update={"content": f"{current.content}\n{text.strip()}"})


_ROLES = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "ToolMessage": "tool",
    "function": "function",
    "FunctionMessage": "function",
}


def is_openai(value: Any) -> bool:
    """Tell whether *value* is a message with a role."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value)
    )


def is_langchain(value: Any) -> bool:
    """Tell whether *value* is a dumped LangChain message, in any of its three forms."""
    if not isinstance(value, Mapping):
        return False
    if value.get("lc") == 1:
        return isinstance(value.get("kwargs"), Mapping)
    return value.get("type") in (*_ROLES, "chat") and ("content" in value or isinstance(value.get("data"), Mapping))


def messages_of(document: Any) -> list[Any] | None:
    """Return the messages of *document*: a list, or an object with one under ``messages``; else ``None``."""
    messages = document.get("messages") if isinstance(document, Mapping) else document
    return messages if isinstance(messages, list) and messages else None


def read_messages(document: Any, thread: str) -> Iterator[Item]:
    """Yield what user and assistant say; the prompts, tool calls and tool results between them are left out."""
    for number, message in enumerate(messages_of(document) or [], start=1):
        try:
            episode = from_record(_plain(message))
        except InputError as error:
            yield InputError(f"message {number}: {error}")
            continue
        if episode is not None:
            yield episode if episode.thread else episode.model_copy(update={"thread": thread})


def _plain(message: Any) -> Mapping[str, Any]:
    """Return *message* with a role and a content at the top."""
    if is_langchain(message):
        fields = message.get("kwargs") or message.get("data") or message
        kind = message["id"][-1] if isinstance(message.get("id"), list) and message["id"] else message.get("type")
        role = fields.get("role") or _ROLES.get(kind) or _ROLES.get(fields.get("type"), str(kind))
        return {**fields, "role": role}
    if not is_openai(message):
        raise InputError('this is no message: write it like {"role": "user", "content": "..."}')
    return {**message, "content": message.get("content")}
