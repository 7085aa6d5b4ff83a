"""LangChain messages as episodes."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, MessageLikeRepresentation, convert_to_messages

from kg_memory.errors import InputError
from kg_memory.model import EpisodeInput
from kg_memory.readers.record import plain_text
from kg_memory.readers.times import parse_time

SOURCE = "langchain"
USER, ASSISTANT = "user", "assistant"
_TIMES = ("timestamp", "created_at", "at", "created")


def episodes_of(
    messages: Iterable[MessageLikeRepresentation],
    *,
    thread: str | None = None,
    user: str | None = None,
    assistant: str | None = None,
) -> list[EpisodeInput]:
    """Return what was said in *messages*, in their order: by people and the assistant, not by prompts and tools.

    A message's own name says who spoke, else *user* and *assistant* do. The same message in the same thread is the
    same episode however often it is handed in; an edited one is another.
    """
    found: list[EpisodeInput] = []
    seen: Counter[str] = Counter()
    for message in convert_to_messages(list(messages)):
        if not isinstance(message, HumanMessage | AIMessage):
            continue
        content = text_of(message)
        if not content.strip():
            continue
        own = message.id or "#" + _digest(str(seen[message.type + content]))
        seen[message.type + content] += 1
        other = user or USER if isinstance(message, HumanMessage) else assistant or ASSISTANT
        found.append(
            EpisodeInput(
                content=content,
                speaker=message.name or other,
                at=_time(message),
                thread=thread,
                source=SOURCE,
                source_id=f"{thread or ''}/{own}/{_digest(message.type + content)}",
            )
        )
    return found


def text_of(message: BaseMessage) -> str:
    """Return the words of *message*, without images, reasoning and calls of tools."""
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if isinstance(part, str) or part.get("type") in ("text", "output_text")]
    try:
        return plain_text(content)
    except InputError:
        return ""


def last_question(messages: Iterable[MessageLikeRepresentation]) -> str | None:
    """Return what a person said last in *messages*, if anybody did."""
    people = (each for each in convert_to_messages(list(messages)) if isinstance(each, HumanMessage))
    said = [text_of(message) for message in people]
    return next((text for text in reversed(said) if text.strip()), None)


def _time(message: BaseMessage) -> datetime | None:
    """Return when *message* says that it was said."""
    fields: tuple[dict[str, Any], ...] = (message.additional_kwargs, message.response_metadata)
    for value in (each.get(name) for each in fields for name in _TIMES):
        if value is not None:
            with contextlib.suppress(InputError):
                return parse_time(value)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
