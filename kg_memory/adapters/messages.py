"""Convert LangChain messages to episodes, the messages that the memory stores."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    MessageLikeRepresentation,
    ToolMessage,
    convert_to_messages,
)

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.context_markers import remove_echo
from kg_memory.text.identity import name_assistant
from kg_memory.text.message_fields import ASSISTANT, ROLES, USER, parse_time, plain_text

SOURCE = "langchain"
RECALLING_TOOLS = frozenset({"search_memory", "memory_history", "archival_memory_search", "conversation_search"})
_TIMES = ("timestamp", "created_at", "at", "created")


def episodes_of(
    messages: Iterable[MessageLikeRepresentation],
    *,
    thread: str | None = None,
    user: str | None = None,
    assistant: str | None = None,
    last_turn: bool = False,
    recalled: str = "",
) -> list[EpisodeInput]:
    """Convert the human and AI messages of a conversation to `EpisodeInput` objects, to be added to the memory.

    *thread*: the conversation id. *user*, *assistant*: the speakers of messages without a ``name``; an assistant's name
    gets "(assistant)" behind it, since an assistant cannot overrule what people say. *last_turn*: convert only the
    latest human messages and all messages after them. *recalled*: memory text that the model was shown; the assistant's
    sentences that only repeat it are removed. Errors: `InputError` if *messages* are not messages.
    """
    names = {USER: user or USER, ASSISTANT: assistant or ASSISTANT}
    conversation = messages_of(messages)
    last = _last_turn(conversation)
    shown = [recalled]
    episodes: list[EpisodeInput] = []
    for place, (message, role, content, nth) in enumerate(_number(conversation)):
        if role == USER:
            shown = [recalled] if place >= last else []
        elif isinstance(message, ToolMessage) and message.name in RECALLING_TOOLS:
            shown.append(content)
        if role is None or not content.strip() or (last_turn and place < last):
            continue
        words, speaker = content, message.name or names[role]
        if role == ASSISTANT:
            words, speaker = remove_echo(content, "\n".join(shown)), name_assistant(speaker)
        if words.strip():
            episodes.append(
                EpisodeInput(
                    content=words,
                    speaker=speaker,
                    at=_time(message),
                    thread=thread,
                    source=SOURCE,
                    source_id=_source_id(thread, message.id, role, content, nth),
                )
            )
    return episodes


def source_ids(messages: Iterable[MessageLikeRepresentation], thread: str | None) -> frozenset[str | None]:
    """Return the `source_id` values with which the memory stores *messages* of the conversation *thread*."""
    return frozenset(
        _source_id(thread, message.id, role, content, nth)
        for message, role, content, nth in _number(messages_of(messages))
        if role is not None and content.strip()
    )


def _number(messages: Iterable[BaseMessage]) -> Iterator[tuple[BaseMessage, str | None, str, int]]:
    """Yield ``(message, role, text, n)`` for each message: *n* earlier messages have the same role and text."""
    seen: Counter[tuple[str | None, str]] = Counter()
    for message in messages:
        role, content = _role(message), text_of(message)
        yield message, role, content, seen[role, content]
        seen[role, content] += 1


def messages_of(messages: Iterable[MessageLikeRepresentation]) -> list[BaseMessage]:
    """Convert messages, which may be dicts or ``(role, text)`` tuples, to LangChain message objects.

    Errors: `InputError`.
    """
    if isinstance(messages, str | bytes | Mapping | BaseMessage) or not isinstance(messages, Iterable):
        raise InputError(f"messages must be a list of messages, got {type(messages).__name__}")
    try:
        return convert_to_messages(messages)
    except (ValueError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"messages must be LangChain messages or role-content dicts ({reason})") from error


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, without images, reasoning and tool calls."""
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if isinstance(part, str) or part.get("type") in ("text", "output_text")]
    return plain_text(content)


def until_question(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return *messages* up to and including the last user message; an empty list if there is none."""
    index = index_of_question(messages)
    return [] if index is None else list(messages[: index + 1])


def index_of_question(messages: Sequence[BaseMessage]) -> int | None:
    """Return the index of the last user message in *messages*, or None if there is none."""
    return max((place for place, message in enumerate(messages) if _role(message) == USER), default=None)


def last_question(messages: Iterable[MessageLikeRepresentation]) -> str | None:
    """Return the text of the last human message that has text, or None if there is none.

    Errors: `InputError` if *messages* are not messages.
    """
    asked = _last_asked(messages)
    return text_of(asked) if asked else None


def last_asker(messages: Iterable[MessageLikeRepresentation], user: str | None = None) -> str:
    """Return the author of the last human message with text: its ``name``, else *user*, else ``"user"``.

    Errors: `InputError`.
    """
    asked = _last_asked(messages)
    return (asked and asked.name) or user or USER


def _last_asked(messages: Iterable[MessageLikeRepresentation]) -> BaseMessage | None:
    by_person = (message for message in reversed(messages_of(messages)) if _role(message) == USER)
    return next((message for message in by_person if text_of(message).strip()), None)


def _role(message: BaseMessage) -> str | None:
    """Return ``"user"`` for a human message, ``"assistant"`` for an AI message, and None for all others."""
    if message.additional_kwargs.get("lc_source"):
        return None
    if isinstance(message, ChatMessage):
        return ROLES.get(message.role.lower())
    if isinstance(message, HumanMessage):
        return USER
    return ASSISTANT if isinstance(message, AIMessage) else None


def _last_turn(messages: Sequence[BaseMessage]) -> int:
    """Return the index of the message where the last turn of a conversation begins."""
    place = index_of_question(messages) or 0
    while place and _role(messages[place - 1]) != ASSISTANT:
        place -= 1
    return place


def _source_id(thread: str | None, own: str | None, role: str, content: str, nth: int) -> str:
    """Return a stable id for a message, so that the memory stores it once."""
    digest = hashlib.sha256()
    for part in (thread or "", own or f"#{nth}", role, content):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(encoded), encoded))
    return "/".join(part for part in (thread, own, digest.hexdigest()[:16]) if part)


def _time(message: BaseMessage) -> datetime | None:
    fields: tuple[dict[str, Any], ...] = (message.additional_kwargs, message.response_metadata)
    for value in (mapping.get(name) for mapping in fields for name in _TIMES):
        if value is not None:
            with contextlib.suppress(InputError):
                return parse_time(value)
    return None
