"""Dates and ids of conversations in sessions, as several data sets have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kg_memory.models.graph import EpisodeInput

TICK = timedelta(microseconds=1)
"""Messages of one session have one time in the data; they keep their order by this much."""
_WEEKDAY = re.compile(r"\s*\([^)]*\)\s*")


def moment(text: str) -> datetime:
    """Return a time such as ``2023/05/20 (Sat) 02:21``, in UTC as these data sets name no time zone.

    Raises:
        ValueError: *text* is no such time.
    """
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def messages(turns: Iterable[Mapping[str, Any]], session: str, at: datetime) -> Iterator[tuple[int, EpisodeInput]]:
    """Yield the places of the turns that say something, with the messages that they are.

    The id of a message is ``session/place``, and its speaker the turn's role.
    """
    for place, turn in enumerate(turns):
        content = turn["content"]
        if content and content.strip():
            yield (
                place,
                EpisodeInput(
                    content=content,
                    speaker=turn["role"],
                    at=at + place * TICK,
                    thread=session,
                    source_id=f"{session}/{place}",
                ),
            )


def following(at: datetime, episodes: Sequence[EpisodeInput]) -> datetime:
    """Return *at*, or right after the last of *episodes* if that is later: sessions of one time keep their order."""
    last = episodes[-1].at if episodes else None
    return at if last is None else max(at, last + TICK)


class Names:
    """Make names unique: a name that was given before gets ``~2``, ``~3`` and so on."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._given[name] = self._given.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name}~{count}")
