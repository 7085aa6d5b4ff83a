"""Find what changed in a namespace since the last read: episodes, facts, and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kg_memory.contrib.changes import read_changes, time_of
from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import WITHHELD, Change
from kg_memory.runtime.effects import fetch, in_step, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import DAY

UNREAD = ("saved", "waiting", "working", "failed")
"""The statuses of episodes that can still change."""
SPENT = ("calls", "input_tokens", "output_tokens", "cached_tokens")
OVERLAP = 15_000_000
"""Microseconds that are read again each time: records are written after their own time, some with a late clock."""
MAX_EVENTS = 1000
"""The most episodes, and the most changes, that one read returns."""
EXCERPT = 200
"""Characters of an episode's text that are returned."""

_WATCHED_EPISODE = f"""e {{.id, .speaker, .thread, .source_id, .at, .created_at, .status, .reason, .step, .plan,
  offset: coalesce(e.offset, 0), attempts: coalesce(e.attempts, 0), .took, content:
  CASE WHEN size(coalesce(e.flags, [])) > 0 AND e.status <> 'done' THEN '{WITHHELD}'
  ELSE {part.truncate("e.content")} END}}"""

COUNT_EPISODES = """
MATCH (e:Episode)
RETURN count(e) AS episodes
"""
"""The number of episodes. The database keeps this count, so no episode is read."""

COUNT_BY_STATUS = """
MATCH (e:Episode)
WHERE e.status IN $statuses
RETURN e.status AS status, count(e) AS many
"""

USAGE_SINCE = """
MATCH (s:Spent)
WHERE s.day >= $first
RETURN sum(s.calls) AS calls, sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens,
  sum(s.cached_tokens) AS cached_tokens
"""

NEW_EPISODES = f"""
MATCH (e:Episode)
WHERE e.created_at >= $since
WITH e ORDER BY e.created_at LIMIT $limit
RETURN {_WATCHED_EPISODE} AS episode
"""

EPISODES_IN = f"""
MATCH (e:Episode)
WHERE e.status IN $statuses
WITH e ORDER BY e.created_at DESC LIMIT $limit
RETURN {_WATCHED_EPISODE} AS episode
"""

EPISODES_WITH = f"""
UNWIND $ids AS id
MATCH (e:Episode {{id: id}})
RETURN {_WATCHED_EPISODE} AS episode
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """The changes that one call of `Watch.look` found: new or changed messages and facts, and current counts."""

    counts: Mapping[str, int]
    episodes: tuple[Row, ...]
    changes: tuple[Change, ...]


@dataclass(slots=True)
class Watch:
    """Finds changes in a namespace: each call of `look` returns those since the previous call."""

    since: int
    reached: int | None = None
    """The time up to which all changes have been returned, as far as they were written by then."""
    states: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Status, step, reason and attempts of returned episodes by id: of all unread ones, and of the latest."""
    changes: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """The times of the latest returned changes, by key, so that the overlap does not return them again."""

    def look(self) -> Flow[Seen]:
        """Return the messages and facts that changed since the last call, and the current counts."""
        time = yield from now()
        begin = self.since if self.reached is None else max(self.since, self.reached - OVERLAP)
        unread = [id_ for id_, (status, *_) in self.states.items() if status in UNREAD][:MAX_EVENTS]
        reads = (
            fetch(COUNT_EPISODES),
            fetch(COUNT_BY_STATUS, statuses=UNREAD),
            fetch(USAGE_SINCE, first=time // DAY),
            fetch(NEW_EPISODES, since=begin, limit=MAX_EVENTS, length=EXCERPT),
            fetch(EPISODES_WITH, ids=unread, length=EXCERPT),
        )
        counts, statuses, usage, new, known = yield from in_step(reads)
        changes = yield from read_changes(begin, None, MAX_EVENTS)
        self.reached = time
        # If there were more than MAX_EVENTS, the next look begins after the last returned one.
        if len(new) == MAX_EVENTS:
            self.reached = min(self.reached, new[-1]["episode"]["created_at"] + OVERLAP)
        if len(changes) == MAX_EVENTS:
            self.reached = min(self.reached, time_of(changes[-1]) + OVERLAP)
        episodes = {row["episode"]["id"]: row["episode"] for row in (*known, *new)}
        for forgotten in set(unread) - episodes.keys():
            self.states.pop(forgotten, None)
        moved, news = self._take_episodes(episodes, begin), self._take_changes(changes, begin)
        return Seen(_sum_counts(counts, statuses, usage), tuple(moved), tuple(news))

    def list_unread(self, limit: int) -> Flow[list[Row]]:
        """Return the latest *limit* episodes whose facts are not extracted, as rows; `look` reports their changes."""
        stored = yield from fetch(EPISODES_IN, statuses=UNREAD, limit=limit, length=EXCERPT)
        episodes = [row["episode"] for row in stored]
        self.states |= {episode["id"]: _reading_state(episode) for episode in episodes}
        return episodes

    def _take_episodes(self, episodes: Mapping[str, Row], begin: int) -> list[Row]:
        """Return the messages that are new or whose status has changed, earliest first; remember their status."""
        changed = [episode for id_, episode in episodes.items() if self.states.get(id_) != _reading_state(episode)]
        for id_, episode in episodes.items():
            if episode["status"] in UNREAD or episode["created_at"] >= begin:
                self.states[id_] = _reading_state(episode)
            else:
                self.states.pop(id_, None)
        return sorted(changed, key=lambda episode: (episode["created_at"], episode["id"]))

    def _take_changes(self, changes: list[Change], begin: int) -> list[Change]:
        """Return the elements of *changes* that were not returned before, and remember them."""
        new = {key: change for change in changes if (key := _change_key(change)) not in self.changes}
        times = self.changes | {key: time_of(change) for key, change in new.items()}
        self.changes = {key: time for key, time in times.items() if time >= begin}
        return list(new.values())


def _sum_counts(counts: list[Row], statuses: list[Row], usage: list[Row]) -> dict[str, int]:
    """Combine the rows of three queries into numbers by name: ``{"episodes": 120, "waiting": 3, "calls": 40, ...}``."""
    by_status = {row["status"]: row["many"] for row in statuses}
    sums = {name: int(sum(row[name] or 0 for row in usage)) for name in SPENT}
    episodes = sum(row["episodes"] for row in counts)
    return {"episodes": episodes, **{name: by_status.get(name, 0) for name in UNREAD}, **sums}


def _reading_state(episode: Row) -> tuple[Any, ...]:
    return episode["status"], episode["step"], episode["reason"], episode["attempts"]


def _change_key(change: Change) -> tuple[Any, ...]:
    return change.at, change.kind, change.fact.id, change.fact.valid_at
