"""The messages that Mem0 takes: a text, a dict with a role and a content, or a list of these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.errors import InputError
from kg_memory.text.identity import name_of_speaker
from kg_memory.text.message_fields import ROLES, USER, plain_text

SYSTEM = "system"
LONGEST_NOTE = 2000
"""Characters of a text that is kept word for word as one memory."""
_BREAKS = (r"\n\s*\n", r"\n", r"(?<=[.!?])\s|(?<=[。！？])", r"\s")
"""The ends of paragraphs, lines, sentences and words."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its role, the name of who speaks if it has one, and its words."""

    role: str
    name: str | None
    text: str

    @property
    def speaker(self) -> str:
        """The name under which the graph knows who speaks."""
        return name_of_speaker(self.name) or ROLES.get(self.role, self.role)

    @property
    def labels(self) -> dict[str, str]:
        """The labels that say who spoke."""
        return {"role": self.role, **({"actor_id": self.name} if self.name else {})}


def read_messages(messages: object) -> list[Message]:
    """Return *messages* that have words, without those of the system. Errors: `InputError`."""
    listed = messages if isinstance(messages, list | tuple) else [messages]
    if not listed:
        raise InputError("messages must have at least one message, got none")
    read = [_read_message(message) for message in listed]
    return [message for message in read if message.role != SYSTEM and message.text.strip()]


def _read_message(message: Any) -> Message:
    if isinstance(message, str):
        return Message(USER, None, message)
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or "content" not in message:
        what = "a text, or a dict with a role and a content, or a list of these"
        raise InputError(f"messages must be {what}, got {message!r:.100}")
    name = message.get("name")
    if not isinstance(name, str | None):
        raise InputError(f"the name of a message must be a text, got {name!r:.100}")
    return Message(message["role"].strip().lower(), name or None, plain_text(message["content"]))


def cut(text: str) -> Iterator[str]:
    """Yield *text* in pieces of at most `LONGEST_NOTE` characters, cut at ends of paragraphs, lines or sentences."""
    rest = text.strip()
    while len(rest) > LONGEST_NOTE:
        place = _find_cut(rest)
        yield rest[:place].strip()
        rest = rest[place:].strip()
    if rest:
        yield rest


def _find_cut(text: str) -> int:
    """Return where to cut *text*, as late as it may be: behind a paragraph, a line, a sentence, or a word."""
    for pattern in _BREAKS:
        places = [match.end() for match in re.finditer(pattern, text[:LONGEST_NOTE])]
        if places and places[-1] > LONGEST_NOTE // 2:
            return places[-1]
    return LONGEST_NOTE
