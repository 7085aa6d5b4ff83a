"""Count the conversations, messages and speakers of a chat file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from kg_memory.cli.output import count_noun
from kg_memory.contrib.chats.reading import Reading
from kg_memory.models.graph import EpisodeKind

_SHOWN_SPEAKERS = 10


@dataclass(frozen=True)
class Survey:
    """Figures about a chat file: its numbers of conversations and messages, its speakers, and its time range."""

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


def survey(reading: Reading) -> Survey:
    """Read all episodes of *reading*, and return the numbers of its messages, conversations and speakers."""
    threads: set[str] = set()
    speakers: Counter[str] = Counter()
    count = 0
    first = last = None
    for episode in reading:
        count += 1
        if episode.thread and episode.kind is EpisodeKind.MESSAGE:
            threads.add(episode.thread.split("/")[0])
        if episode.speaker:
            speakers[episode.speaker] += 1
        first = min(filter(None, (first, episode.at)), default=None)
        last = max(filter(None, (last, episode.at)), default=None)
    names = tuple(name for name, _ in speakers.most_common())
    return Survey(str(reading.path), reading.format, len(threads), count, names, first, last)
