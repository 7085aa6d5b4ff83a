"""Lists of messages as OpenAI and LangChain write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kg_memory.cli.readers.place import Item
from kg_memory.cli.readers.record import from_record
from kg_memory.errors import InputError

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


def listed(document: Any) -> list[Any] | None:
    """Return the messages of *document*: a list, or an object with one under ``messages``; else ``None``."""
    found = document.get("messages") if isinstance(document, Mapping) else document
    return found if isinstance(found, list) and found else None


def read_messages(document: Any, thread: str) -> Iterator[Item]:
    """Yield what user and assistant say; the prompts, tool calls and tool results between them are left out."""
    for number, message in enumerate(listed(document) or [], start=1):
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
