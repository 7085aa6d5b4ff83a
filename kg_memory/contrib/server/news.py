"""The news of a namespace: new and changed episodes, changes of beliefs, and counts, by queries of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kg_memory.contrib.changes import read_changes, time_of
from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import WITHHELD, Change
from kg_memory.runtime.effects import in_step, now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import DAY

UNREAD = ("saved", "waiting", "working", "failed")
"""The states of episodes that are not final."""
SPENT = ("calls", "input_tokens", "output_tokens", "cached_tokens")
OVERLAP = 15_000_000
"""Microseconds that are read again: a record is written some time after its own time, maybe by a clock that is late."""
MAX_EVENTS = 1000
"""Episodes and changes that one look returns, at most."""
EXCERPT = 200
"""Characters of a message that are read."""

_WATCHED_EPISODE = f"""e {{.id, .speaker, .thread, .source_id, .at, .created_at, .status, .reason, .step, .plan,
  offset: coalesce(e.offset, 0), attempts: coalesce(e.attempts, 0), .took, content:
  CASE WHEN size(coalesce(e.flags, [])) > 0 AND e.status <> 'done' THEN '{WITHHELD}'
  ELSE {part.truncate("e.content")} END}}"""

COUNT_EPISODES = """
MATCH (e:Episode)
RETURN count(e) AS episodes
"""
"""The number of episodes, which the database knows without reading them."""

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
    """News since the last look: new or changed episodes, and changes of what is believed.

    `counts` are the numbers of all episodes and of those in each state that is not final, and today's usage.
    """

    counts: Mapping[str, int]
    episodes: tuple[Row, ...]
    changes: tuple[Change, ...]


@dataclass(slots=True)
class Watch:
    """Looks at a namespace from the instant *since* on; each look returns the news since the one before."""

    since: int
    reached: int | None = None
    """Until when everything was seen, as far as it was written then."""
    states: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The states of the episodes that were returned, by their ids: the unread ones, and the latest."""
    changes: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """The times of the latest changes that were returned."""

    def look(self) -> Flow[Seen]:
        """Return the news, by seven reading queries, of which five go at once."""
        time = yield from now()
        begin = self.since if self.reached is None else max(self.since, self.reached - OVERLAP)
        unread = [id_ for id_, (status, *_) in self.states.items() if status in UNREAD][:MAX_EVENTS]
        reads = (
            read(COUNT_EPISODES),
            read(COUNT_BY_STATUS, statuses=UNREAD),
            read(USAGE_SINCE, first=time // DAY),
            read(NEW_EPISODES, since=begin, limit=MAX_EVENTS, length=EXCERPT),
            read(EPISODES_WITH, ids=unread, length=EXCERPT),
        )
        counts, statuses, usage, new, known = yield from in_step(reads)
        changes = yield from read_changes(begin, None, MAX_EVENTS)
        self.reached = time
        # Where there is more than one look returns, the next look begins where this one ended.
        if len(new) == MAX_EVENTS:
            self.reached = min(self.reached, new[-1]["episode"]["created_at"] + OVERLAP)
        if len(changes) == MAX_EVENTS:
            self.reached = min(self.reached, time_of(changes[-1]) + OVERLAP)
        episodes = {row["episode"]["id"]: row["episode"] for row in (*known, *new)}
        for forgotten in set(unread) - episodes.keys():
            self.states.pop(forgotten, None)
        moved, news = self._take_episodes(episodes, begin), self._take_changes(changes, begin)
        return Seen(_sum_counts(counts, statuses, usage), tuple(moved), tuple(news))

    def remaining(self, limit: int) -> Flow[list[Row]]:
        """Return the latest episodes that wait, are being read or failed; later looks return what becomes of them."""
        stored = yield from read(EPISODES_IN, statuses=UNREAD, limit=limit, length=EXCERPT)
        episodes = [row["episode"] for row in stored]
        self.states |= {episode["id"]: _state(episode) for episode in episodes}
        return episodes

    def _take_episodes(self, episodes: Mapping[str, Row], begin: int) -> list[Row]:
        """Return those of *episodes* that are new or changed, earliest first, and drop those that are final."""
        changed = [episode for id_, episode in episodes.items() if self.states.get(id_) != _state(episode)]
        for id_, episode in episodes.items():
            if episode["status"] in UNREAD or episode["created_at"] >= begin:
                self.states[id_] = _state(episode)
            else:
                self.states.pop(id_, None)
        return sorted(changed, key=lambda episode: (episode["created_at"], episode["id"]))

    def _take_changes(self, changes: list[Change], begin: int) -> list[Change]:
        """Return those of *changes* that no look returned yet."""
        new = {key: change for change in changes if (key := _key(change)) not in self.changes}
        times = self.changes | {key: time_of(change) for key, change in new.items()}
        self.changes = {key: time for key, time in times.items() if time >= begin}
        return list(new.values())


def _sum_counts(counts: list[Row], statuses: list[Row], usage: list[Row]) -> dict[str, int]:
    """Return the counts of a namespace; zeros where it has no graph."""
    by_status = {row["status"]: row["many"] for row in statuses}
    sums = {name: int(sum(row[name] or 0 for row in usage)) for name in SPENT}
    episodes = sum(row["episodes"] for row in counts)
    return {"episodes": episodes, **{name: by_status.get(name, 0) for name in UNREAD}, **sums}


def _state(episode: Row) -> tuple[Any, ...]:
    return episode["status"], episode["step"], episode["reason"], episode["attempts"]


def _key(change: Change) -> tuple[Any, ...]:
    fact = change.after or change.before
    return change.at, change.kind, fact.id if fact else "", fact.valid_at if fact else None
