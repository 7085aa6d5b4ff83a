"""LangChain messages as episodes."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    """Return the words of people and the assistant in *messages* as episodes, in order; prompts and tools are left out.

    A message's own name says who spoke, else *user* and *assistant* do. The same message in the same thread is the
    same episode however often it is handed in; an edited one is another. *last_turn* leaves out what came before the
    last words of people that nobody has answered yet, or answered last. Sentences of the assistant that only repeat
    what was *recalled* for the last turn, or what a tool of the memory showed in the same turn, are left out.
    Errors: `InputError` for what are no messages.
    """
    names = {USER: user or USER, ASSISTANT: assistant or ASSISTANT}
    conversation = messages_of(messages)
    last = _last_turn(conversation)
    shown = [recalled]
    episodes: list[EpisodeInput] = []
    seen: Counter[tuple[str, str]] = Counter()
    for place, message in enumerate(conversation):
        role, content = _role(message), text_of(message)
        if role == USER:
            shown = [recalled] if place >= last else []
        elif isinstance(message, ToolMessage) and message.name in RECALLING_TOOLS:
            shown.append(content)
        if role is None or not content.strip():
            continue
        nth = seen[role, content]
        seen[role, content] += 1
        if last_turn and place < last:
            continue
        words = remove_echo(content, "\n".join(shown)) if role == ASSISTANT else content
        if words.strip():
            episodes.append(
                EpisodeInput(
                    content=words,
                    speaker=message.name or names[role],
                    at=_time(message),
                    thread=thread,
                    source=SOURCE,
                    source_id=_source_id(thread, message.id, role, content, nth),
                )
            )
    return episodes


def messages_of(messages: Iterable[MessageLikeRepresentation]) -> list[BaseMessage]:
    """Return *messages*, which may be dicts and tuples too, as LangChain's.

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
    """Return the words of *message*, without images, reasoning and calls of tools."""
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if isinstance(part, str) or part.get("type") in ("text", "output_text")]
    return plain_text(content)


def last_question(messages: Iterable[MessageLikeRepresentation]) -> str | None:
    """Return the last words of a person in *messages*, or None.

    Errors: `InputError`.
    """
    texts = (text_of(message) for message in reversed(messages_of(messages)) if _role(message) == USER)
    return next((text for text in texts if text.strip()), None)


def last_asker(messages: Iterable[MessageLikeRepresentation], user: str | None = None) -> str:
    """Return the name of who said the last words of a person: that of the message, else *user*.

    Errors: `InputError`.
    """
    by_person = (message for message in reversed(messages_of(messages)) if _role(message) == USER)
    named = next((message.name for message in by_person if text_of(message).strip()), None)
    return named or user or USER


def _role(message: BaseMessage) -> str | None:
    """Return the side that said *message*; ``None`` for one that nobody said, such as a summary by LangChain."""
    if message.additional_kwargs.get("lc_source"):
        return None
    if isinstance(message, ChatMessage):
        return ROLES.get(message.role.lower())
    if isinstance(message, HumanMessage):
        return USER
    return ASSISTANT if isinstance(message, AIMessage) else None


def _last_turn(messages: Sequence[BaseMessage]) -> int:
    """Return the index at which the last turn begins: just behind the answer before a person's last words."""
    place = max((place for place, message in enumerate(messages) if _role(message) == USER), default=0)
    while place and _role(messages[place - 1]) != ASSISTANT:
        place -= 1
    return place


def _source_id(thread: str | None, own: str | None, role: str, content: str, nth: int) -> str:
    """Return an id for a message; where it has none itself, its number among equal messages stands in."""
    digest = hashlib.sha256()
    for part in (thread or "", own or f"#{nth}", role, content):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(encoded), encoded))
    return "/".join(part for part in (thread, own, digest.hexdigest()[:16]) if part)


def _time(message: BaseMessage) -> datetime | None:
    """Return the time in the metadata of *message*, if there is one."""
    fields: tuple[dict[str, Any], ...] = (message.additional_kwargs, message.response_metadata)
    for value in (mapping.get(name) for mapping in fields for name in _TIMES):
        if value is not None:
            with contextlib.suppress(InputError):
                return parse_time(value)
    return None
