"""Count the conversations, messages and speakers of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind

_SHOWN_SPEAKERS = 10


class Reading(Protocol):
    """A file as episodes, as a plug-in reads it: each iteration gives the same, and the `problems` that it met."""

    path: Path
    strict: bool
    problems: list[InputError]

    @property
    def format(self) -> str:
        """The name of its format."""

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be a chat in an unknown form."""

    def __iter__(self) -> Iterator[EpisodeInput]: ...


@dataclass(frozen=True)
class Survey:
    """The contents of a file. `speakers` are sorted by the number of their messages."""

    path: str
    format: str
    conversations: int
    messages: int
    speakers: tuple[str, ...]
    first: datetime | None
    last: datetime | None

    def to_json(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        times = {"first": self.first and self.first.isoformat(), "last": self.last and self.last.isoformat()}
        return {**asdict(self), **times}

    def describe(self) -> str:
        """Return the contents in a line."""
        counts = [
            f"{count} {noun if count == 1 else noun + 's'}"
            for count, noun in ((self.conversations, "conversation"), (self.messages, "message"))
        ]
        more = len(self.speakers) - _SHOWN_SPEAKERS
        names = [*self.speakers[:_SHOWN_SPEAKERS], *([f"{more} more"] if more > 0 else [])]
        parts = [self.format, *counts]
        if names:
            parts.append(f"speakers: {', '.join(names)}")
        if self.first and self.last:
            parts.append(f"from {self.first:%Y-%m-%d %H:%M:%S%z} to {self.last:%Y-%m-%d %H:%M:%S%z}")
        return f"{self.path}: {'; '.join(parts)}"


def survey_episodes(reading: Reading, episodes: Iterable[EpisodeInput]) -> Survey:
    """Return the contents of *episodes*, which are those of *reading*."""
    threads: set[str] = set()
    speakers: Counter[str] = Counter()
    count = 0
    first = last = None
    for episode in episodes:
        count += 1
        if episode.thread and episode.kind is EpisodeKind.MESSAGE:
            threads.add(episode.thread.split("/")[0])
        if episode.speaker:
            speakers[episode.speaker] += 1
        if episode.at is not None:
            first = episode.at if first is None else min(first, episode.at)
            last = episode.at if last is None else max(last, episode.at)
    names = tuple(name for name, _ in speakers.most_common())
    return Survey(str(reading.path), reading.format, len(threads), count, names, first, last)
