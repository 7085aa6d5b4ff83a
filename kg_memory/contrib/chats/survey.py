"""Count the conversations, messages and speakers of a chat file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kg_memory.cli.output import count_noun
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind

if TYPE_CHECKING:
    from kg_memory.contrib.chats.reading import Reading

_SHOWN_SPEAKERS = 10


@dataclass(frozen=True)
class Survey:
    """Figures about a chat file: its numbers of conversations and messages, its speakers, and its first and last time.

    `speakers` are sorted by their number of messages, most first.
    """

    path: str
    format: str
    conversations: int
    messages: int
    speakers: tuple[str, ...]
    first: datetime | None
    last: datetime | None

    def describe(self) -> str:
        """Return a line of text about the chat file: its format, counts, most frequent speakers and time range."""
        more = len(self.speakers) - _SHOWN_SPEAKERS
        names = [*self.speakers[:_SHOWN_SPEAKERS], *([f"{more} more"] if more > 0 else [])]
        parts = [self.format, count_noun(self.conversations, "conversation"), count_noun(self.messages, "message")]
        if names:
            parts.append(f"speakers: {', '.join(names)}")
        if self.first and self.last:
            parts.append(f"from {self.first:%Y-%m-%d %H:%M:%S%z} to {self.last:%Y-%m-%d %H:%M:%S%z}")
        return f"{self.path}: {'; '.join(parts)}"


def check_item(path: Path, item: EpisodeInput | InputError, most: int | None) -> EpisodeInput | InputError:
    """Return *item*, or an `InputError` if its content has more than *most* characters (None: no limit).

    If *item* is an error, *path* is put in front of its message: "chat.json:12: ...".
    """
    if isinstance(item, InputError):
        text = str(item)
        return InputError(f"{path}:{text.removeprefix('line ')}" if text.startswith("line ") else f"{path}: {text}")
    if most is None or len(item.content) <= most:
        return item
    return InputError(
        f"{path}: the content starting with {item.content[:40]!r} has {len(item.content)} characters, "
        f"and the limit is {most}: split it, or raise KG_MEMORY_MAX_CONTENT"
    )


def survey(reading: Reading) -> Survey:
    """Read all episodes of *reading*, and return the numbers of its messages, conversations and speakers."""
    threads: set[str] = set()
    speakers: Counter[str] = Counter()
    count = 0
    first = last = None
    for count, episode in enumerate(reading, start=1):  # noqa: B007 - it is returned
        if episode.thread and episode.kind is EpisodeKind.MESSAGE:
            threads.add(episode.thread.split("/")[0])
        if episode.speaker:
            speakers[episode.speaker] += 1
        first = min(filter(None, (first, episode.at)), default=None)
        last = max(filter(None, (last, episode.at)), default=None)
    names = tuple(name for name, _ in speakers.most_common())
    return Survey(str(reading.path), reading.format, len(threads), count, names, first, last)
