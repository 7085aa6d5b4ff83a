"""News of a namespace: what came to be believed or ceased to be, and the progress of episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as fact_queries
from kg_memory.falkor.queries import usage as queries
from kg_memory.falkor.rows import Row
from kg_memory.memory.consequences import read_doubt_changes
from kg_memory.models.graph import Change, Fact
from kg_memory.runtime.effects import in_step, now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import DAY, OPEN_END, micros
from kg_memory.validation import validate_count

UNREAD = ("saved", "waiting", "working", "failed")
"""The states of episodes that are not final."""
SPENT = ("calls", "input_tokens", "output_tokens", "cached_tokens")
OVERLAP = 15_000_000
"""Microseconds that are read again: a record is written some time after its own time, maybe by a clock that is late."""
MAX_EVENTS = 1000
"""Episodes and changes that one look returns, at most."""
EXCERPT = 200
"""Characters of a message that are read."""


def read_changes(since: int, until: int | None, limit: int, *, latest: bool = False) -> Flow[list[Change]]:
    """Return what came to be believed, or ceased to be, in ``[since, until)`` of the system's clock, earliest first.

    It is the first *limit* changes, or the *latest*.
    """
    limit = validate_count("limit", limit)
    end = (yield from now()) + 1 if until is None else until
    # A change is made of at most two beliefs.
    query = fact_queries.CHANGED_LAST if latest else fact_queries.CHANGED_FACTS
    changed = yield from read(query, since=since, until=end, limit=2 * limit)
    ids = [row["id"] for row in changed]
    changes = yield from changes_of(ids, since, end)
    changes += yield from read_doubt_changes(ids, since, end, limit)
    changes.sort(key=_order)
    return changes[-limit:] if latest else changes[:limit]


def changes_of(facts: Sequence[str], since: int, end: int) -> Flow[list[Change]]:
    """Return what changed in the beliefs about *facts*, by their ids, in ``[since, end)``, earliest first."""
    stated = yield from read(
        fact_queries.TELL_FACTS, ids=list(facts), past=True, sources=rows.MOST_SOURCES, believed_at=OPEN_END
    )
    beliefs: defaultdict[str, list[Row]] = defaultdict(list)
    for row in stated:
        if is_reviewed(row):
            beliefs[row["fact"]["id"]].append(row)
    changes: list[Change] = []
    for own in beliefs.values():
        instants = {row["belief"][clock] for row in own for clock in ("created_at", "expired_at")}
        for instant in sorted(instants):
            if since <= instant < end:
                changes += _changes_at(own, instant)
    unknown = sorted({_time_of(change) for change in changes if change.cause is None})
    read_causes = (yield from read(queries.CAUSES, instants=unknown)) if unknown else []
    causes = {row["at"]: row["cause"] for row in read_causes}
    changes = [change.model_copy(update={"cause": change.cause or causes.get(_time_of(change))}) for change in changes]
    return sorted(changes, key=_order)


def is_reviewed(row: Row) -> bool:
    """Return whether the belief of *row* was never withheld for review, or is not any more."""
    return bool(row["belief"] and row["belief"]["reviewed"])


def _changes_at(beliefs: Sequence[Row], instant: int) -> Iterable[Change]:
    """Yield what changed in the *beliefs* of one fact at that instant."""
    closed = [row for row in beliefs if row["belief"]["expired_at"] == instant]
    made = [row for row in beliefs if row["belief"]["created_at"] == instant]
    earlier = any(row["belief"]["created_at"] < instant for row in beliefs)
    at = rows.to_datetime(instant)
    for before in closed:
        after = next((row for row in made if _touches(before, row)), None)
        if after is None:
            yield Change(at=at, kind="retracted", before=_to_fact(before, instant))
            continue
        made.remove(after)
        ended = before["belief"]["invalid_at"] == OPEN_END > after["belief"]["invalid_at"]
        yield Change(
            at=at,
            kind="ended" if ended else "corrected",
            before=_to_fact(before, instant),
            after=_to_fact(after, instant),
            cause=after["belief"]["cause"],
        )
    for after in made:
        kind: Literal["restored", "learned"] = "restored" if earlier else "learned"
        yield Change(at=at, kind=kind, after=_to_fact(after, instant), cause=after["belief"]["cause"])


def _to_fact(row: Row, at: int) -> Fact:
    return rows.to_fact(rows.as_known(row, at))


def _touches(row: Row, following: Row) -> bool:
    first, second = row["belief"], following["belief"]
    return bool(first["valid_at"] <= second["invalid_at"] and second["valid_at"] <= first["invalid_at"])


def _order(change: Change) -> tuple[Any, ...]:
    fact = change.after or change.before
    return change.at, change.kind, fact.sentence if fact else ""


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
            read(queries.COUNT_EPISODES),
            read(queries.COUNT_BY_STATUS, statuses=UNREAD),
            read(queries.USAGE_SINCE, first=time // DAY),
            read(queries.NEW_EPISODES, since=begin, limit=MAX_EVENTS, length=EXCERPT),
            read(queries.EPISODES_WITH, ids=unread, length=EXCERPT),
        )
        counts, statuses, usage, new, known = yield from in_step(reads)
        changes = yield from read_changes(begin, None, MAX_EVENTS)
        self.reached = time
        # Where there is more than one look returns, the next look begins where this one ended.
        if len(new) == MAX_EVENTS:
            self.reached = min(self.reached, new[-1]["episode"]["created_at"] + OVERLAP)
        if len(changes) == MAX_EVENTS:
            self.reached = min(self.reached, _time_of(changes[-1]) + OVERLAP)
        episodes = {row["episode"]["id"]: row["episode"] for row in (*known, *new)}
        for forgotten in set(unread) - episodes.keys():
            self.states.pop(forgotten, None)
        moved, news = self._take_episodes(episodes, begin), self._take_changes(changes, begin)
        return Seen(_sum_counts(counts, statuses, usage), tuple(moved), tuple(news))

    def remaining(self, limit: int) -> Flow[list[Row]]:
        """Return the latest episodes that wait, are being read or failed; later looks return what becomes of them."""
        stored = yield from read(queries.EPISODES_IN, statuses=UNREAD, limit=limit, length=EXCERPT)
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
        times = self.changes | {key: _time_of(change) for key, change in new.items()}
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


def _time_of(change: Change) -> int:
    return micros(change.at, default=0)


def _key(change: Change) -> tuple[Any, ...]:
    fact = change.after or change.before
    return change.at, change.kind, fact.id if fact else "", fact.valid_at if fact else None
