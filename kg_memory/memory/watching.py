"""Watching a namespace from outside: what came, how far it is, what was learned of it; by whichever process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kg_memory.falkor.queries import usage as cypher
from kg_memory.memory.facts import read_changes
from kg_memory.models.graph import Change
from kg_memory.runtime.effects import in_step, now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import micros

UNREAD = ("saved", "waiting", "working", "failed")
"""The states that are not the last."""
SPENT = ("calls", "input_tokens", "output_tokens", "cached_tokens")
OVERLAP = 15_000_000
"""Microseconds that are looked at again: what is recorded with one time is written some time later, or by a clock that
goes after ours."""
MOST = 1000
"""How many episodes and changes are told at once, at most."""
LENGTH = 200
"""Characters of a message that are read."""
DAY = 86_400_000_000

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is new since the last look: episodes that came or went on, and changes of what is believed.

    `counts` are the numbers of all episodes and of those in each state that is not the last, and what was spent today.
    """

    counts: Mapping[str, int]
    episodes: tuple[Row, ...]
    changes: tuple[Change, ...]


@dataclass(slots=True)
class Watch:
    """One who watches a namespace from the instant *since* on; each look sees what is new since the one before."""

    since: int
    reached: int | None = None
    """Until when all was seen, as far as it was written then."""
    states: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """How far the episodes were that were told of, by their ids: the unread ones, and the latest."""
    told: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """When which changes came that were told of, the latest."""

    def look(self) -> Flow[Seen]:
        """See what is new, by seven reading queries, of which five go at once."""
        instant = yield from now()
        begin = self.since if self.reached is None else max(self.since, self.reached - OVERLAP)
        unread = [id_ for id_, (status, *_) in self.states.items() if status in UNREAD][:MOST]
        *told, new, known = yield from in_step((
            read(cypher.COUNT_EPISODES),
            read(cypher.COUNT_BY_STATUS, statuses=UNREAD),
            read(cypher.USAGE_SINCE, first=instant // DAY),
            read(cypher.NEW_EPISODES, since=begin, limit=MOST, length=LENGTH),
            read(cypher.EPISODES_WITH, ids=unread, length=LENGTH),
        ))  # fmt: skip
        found = yield from read_changes(begin, None, MOST)
        # Where there was more than is told at once, the next look begins where this one ended.
        full = [new[-1]["episode"]["created_at"]] if len(new) == MOST else []
        full += [_instant(found[-1])] if len(found) == MOST else []
        self.reached = min((instant, *(at + OVERLAP for at in full)))
        episodes = {row["episode"]["id"]: row["episode"] for row in (*known, *new)}
        forgotten = set(unread) - episodes.keys()
        self.states = {id_: state for id_, state in self.states.items() if id_ not in forgotten}
        return Seen(_counts(*told), tuple(self._moved(episodes, begin)), tuple(self._unheard(found, begin)))

    def remaining(self, limit: int) -> Flow[list[Row]]:
        """Return the latest episodes that wait, are being read or failed; they are looked after from now on."""
        found = yield from read(cypher.EPISODES_IN, statuses=UNREAD, limit=limit, length=LENGTH)
        episodes = [row["episode"] for row in found]
        self.states |= {each["id"]: _state(each) for each in episodes}
        return episodes

    def _moved(self, episodes: Mapping[str, Row], begin: int) -> list[Row]:
        """Return those of *episodes* that are new or went on, earliest first, and forget those that are over."""
        moved = [each for id_, each in episodes.items() if self.states.get(id_) != _state(each)]
        for id_, each in episodes.items():
            if each["status"] in UNREAD or each["created_at"] >= begin:
                self.states[id_] = _state(each)
            else:
                self.states.pop(id_, None)
        return sorted(moved, key=lambda each: (each["created_at"], each["id"]))

    def _unheard(self, found: list[Change], begin: int) -> list[Change]:
        """Return those of *found* that were not told yet."""
        unheard = {key: each for each in found if (key := _key(each)) not in self.told}
        times = self.told | {key: _instant(each) for key, each in unheard.items()}
        self.told = {key: at for key, at in times.items() if at >= begin}
        return list(unheard.values())


def _counts(episodes: list[Row], states: list[Row], spent: list[Row]) -> dict[str, int]:
    """Return the counts of a namespace; zeros where it has no graph."""
    in_state = {row["status"]: row["many"] for row in states}
    sums = {name: int(sum(row[name] or 0 for row in spent)) for name in SPENT}
    return {
        "episodes": sum(row["episodes"] for row in episodes),
        **{name: in_state.get(name, 0) for name in UNREAD},
        **sums,
    }


def _state(episode: Row) -> tuple[Any, ...]:
    return episode["status"], episode["step"], episode["reason"], episode["attempts"]


def _instant(change: Change) -> int:
    return micros(change.at, default=0)


def _key(change: Change) -> tuple[Any, ...]:
    told = change.after or change.before
    return change.at, change.kind, told.id if told else "", told.valid_at if told else None
