"""Helpers for the systems of other libraries: messages with times, contexts within a budget, a journal of reading."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from kg_memory.contrib.evaluation.records import Conversation, Retrieved, Tools
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.identity import spoken_line
from kg_memory.text.tokenise import estimate_tokens


def model_of(tools: Tools, system: str) -> BaseChatModel:
    """Return the chat model of *tools*.

    Raises: `InputError` if none was chosen.
    """
    if tools.model is None:
        raise InputError(f"{system} reads with a chat model, and none was chosen: choose one")
    return tools.model


def key(conversation: Conversation) -> str:
    """Return an id of letters and digits for a conversation, since some libraries allow no other characters."""
    return "c" + uuid.uuid5(uuid.NAMESPACE_URL, conversation.name).hex


def dated(episode: EpisodeInput) -> str:
    """Return the text of a message with its time and speaker in front, for libraries without message times."""
    told = spoken(episode)
    return f"[{episode.at:%A, %d %B %Y, %H:%M}] {told}" if episode.at else told


def spoken(episode: EpisodeInput) -> str:
    """Return the text of a message with its speaker in front: "Ann: Hello"."""
    return spoken_line(episode.speaker, episode.content)


def role(episode: EpisodeInput) -> str:
    """Return "assistant" if a message is by the assistant, else "user"."""
    return "assistant" if episode.speaker == "assistant" else "user"


def fill(lines: Iterable[tuple[str, Iterable[str]]], max_tokens: int) -> Retrieved:
    """Return the context of the first *lines* (text, source ids) that fit into *max_tokens*.

    Its sources are those of all lines.
    """
    kept: list[str] = []
    sources: dict[str, None] = {}
    tokens, full = 0, False
    for line, told in lines:
        sources |= dict.fromkeys(told)
        size = estimate_tokens(line + "\n")
        full = full or tokens + size > max_tokens
        if not full:
            tokens += size
            kept.append(line)
    return Retrieved("\n".join(kept), tuple(sources), tokens)


class Journal:
    """A file with the source ids of messages that were read, so that an interrupted run does not read them again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "read"
        self._folder.mkdir(parents=True, exist_ok=True)

    def unread(self, conversation: Conversation) -> Iterator[EpisodeInput]:
        """Yield the episodes that were not read before; each is recorded when the next one is requested."""
        path = self._folder / key(conversation)
        read = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
        with path.open("a", encoding="utf-8") as file:
            for episode in conversation.episodes:
                if episode.source_id not in read:
                    yield episode
                    file.write(f"{episode.source_id}\n")
                    file.flush()
