"""`GraphMemory.facts.changes`: when facts were learned, ended, corrected, retracted or restored, or became doubtful."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as fact_queries
from kg_memory.falkor.queries import premises as premise_queries
from kg_memory.falkor.queries import usage as queries
from kg_memory.falkor.rows import Row
from kg_memory.memory.listing import is_reviewed
from kg_memory.models.graph import Change, Fact
from kg_memory.retrieval.clocks import MOST_GROUNDS, Grounds, Sentences, describe_doubt, read_grounds, read_resting
from kg_memory.runtime.effects import fetch, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Doubt, Point, find_doubts
from kg_memory.temporal.interval import OPEN_END, micros
from kg_memory.validation import validate_count


def read_changes(since: int, until: int | None, limit: int, *, latest: bool = False) -> Flow[list[Change]]:
    """Return at most *limit* changes of facts recorded from *since* to before *until*, earliest first.

    Times are microseconds; *until* None is now. *latest* keeps the latest of too many changes, not the earliest.
    """
    limit = validate_count("limit", limit)
    end = (yield from now()) + 1 if until is None else until
    # A change consists of at most two beliefs, so 2 * limit are enough.
    query = fact_queries.CHANGED_LAST if latest else fact_queries.CHANGED_FACTS
    ids = [row["id"] for row in (yield from fetch(query, since=since, until=end, limit=2 * limit))]
    changes = yield from changes_of(ids, since, end)
    changes += yield from read_doubt_changes(ids, since, end, limit)
    changes.sort(key=_sort_key)
    return changes[-limit:] if latest else changes[:limit]


def changes_of(facts: Sequence[str], since: int, end: int) -> Flow[list[Change]]:
    """Return the changes of *facts* (ids) recorded from *since* to before *end* (microseconds), earliest first."""
    stated = yield from fetch(
        fact_queries.TELL_FACTS, ids=list(facts), past=True, sources=rows.MOST_SOURCES, believed_at=OPEN_END
    )
    beliefs: defaultdict[str, list[Row]] = defaultdict(list)
    for row in stated:
        if is_reviewed(row):
            beliefs[row["fact"]["id"]].append(row)
    changes: list[Change] = []
    for own in beliefs.values():
        for instant in sorted({row["belief"][clock] for row in own for clock in ("created_at", "expired_at")}):
            if since <= instant < end:
                changes += _changes_at(own, instant)
    unknown = sorted({time_of(change) for change in changes if change.cause is None})
    read_causes = (yield from fetch(queries.CAUSES, instants=unknown)) if unknown else []
    causes = {row["at"]: row["cause"] for row in read_causes}
    changes = [change.model_copy(update={"cause": change.cause or causes.get(time_of(change))}) for change in changes]
    return sorted(changes, key=_sort_key)


def _changes_at(beliefs: Sequence[Row], instant: int) -> Iterable[Change]:
    """Yield the changes of one fact, such as "learned" or "ended", recorded exactly at *instant* (microseconds)."""
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


def _sort_key(change: Change) -> tuple[Any, ...]:
    return change.at, change.kind, change.fact.sentence


# Doubt


def read_doubt_changes(changed: Sequence[str], since: int, until: int, limit: int) -> Flow[list[Change]]:
    """Return at most *limit* changes by which facts became doubtful or certain again, earliest first."""
    restated = yield from fetch(premise_queries.RESTATED, since=since, until=until, limit=limit)
    premised = [row["id"] for row in restated]
    affected = {*(yield from read_resting([*changed, *premised], MOST_GROUNDS)), *premised}
    if not affected:
        return []
    facts_by_id, sentences = yield from read_grounds(sorted(affected))
    turns = list(_find_turns(facts_by_id, affected, since, until))[:limit]
    stated = yield from fetch(
        fact_queries.TELL_FACTS,
        ids=sorted({id_ for _, id_, *_ in turns}),
        past=True,
        sources=rows.MOST_SOURCES,
        believed_at=OPEN_END,
    )
    return [change for change in (_to_change(turn, stated, sentences) for turn in turns) if change is not None]


Turn = tuple[int, str, Doubt | None, Doubt | None]
"""The time at which the doubt about a fact changed, the fact's id, and the doubt before and after."""


def _find_turns(facts_by_id: Grounds, affected: Iterable[str], since: int, until: int) -> Iterator[Turn]:
    """Yield (time, fact id, doubt before, doubt after) whenever a fact became doubtful or certain again."""
    ids = sorted(affected)
    for instant in sorted(_find_instants(facts_by_id)):
        if since <= instant < until:
            before, after = (find_doubts(facts_by_id, Point(at, at)) for at in (instant - 1, instant))
            for id_ in ids:
                if (id_ in before) != (id_ in after):
                    yield instant, id_, before.get(id_), after.get(id_)


def _find_instants(facts_by_id: Grounds) -> set[int]:
    """Return all times, in microseconds, at which a fact may have become doubtful or certain again."""
    instants: set[int] = set()
    for fact in facts_by_id.values():
        for held in fact.beliefs:
            instants |= {held.created_at, held.expired_at}
        instants |= {one.saved_at for one in (*fact.statements, *fact.superseding, *fact.conflicting)}
        instants |= {saved_at for _, saved_at in fact.premises}
    return instants


def _to_change(turn: Turn, stated: Iterable[Row], sentences: Sentences) -> Change | None:
    """Convert *turn* (time, fact id, doubt before, doubt after) to a `Change`; None if the fact was not true then.

    *stated*: database rows of facts. *sentences*: fact sentences by id, to describe a doubt.
    """
    instant, id_, before, after = turn
    own = [row for row in stated if row["fact"]["id"] == id_ and row["belief"] and row["belief"]["reviewed"]]
    then, at_last = (_find_current(own, at) for at in (instant - 1, instant))
    if at_last is None:
        return None
    return Change(
        at=rows.to_datetime(instant),
        kind="doubtful" if after else "sure",
        before=then and _with_doubt(rows.as_known(then, instant - 1), before, sentences),
        after=_with_doubt(rows.as_known(at_last, instant), after, sentences),
    )


def _find_current(own: Iterable[Row], at: int) -> Row | None:
    """Return the first period of *own* that was recorded, not withdrawn and not ended at the time *at*, or None."""
    beliefs = ((row, row["belief"]) for row in own)
    held = (row for row, belief in beliefs if belief["created_at"] <= at < min(belief["expired_at"], OPEN_END))
    return next((row for row in held if row["belief"]["invalid_at"] > at), None)


def _with_doubt(row: Row, doubt: Doubt | None, sentences: Sentences) -> Fact:
    return rows.to_fact(row if doubt is None else {**row, "doubt": describe_doubt(doubt, sentences)})


def time_of(change: Change) -> int:
    """Return the time at which *change* was recorded, in microseconds since the epoch."""
    return micros(change.at, default=0)
