"""Consequences: the facts that rest on one, and when facts became doubtful, or sure again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as fact_queries
from kg_memory.falkor.queries import premises as queries
from kg_memory.falkor.queries import search as search_queries
from kg_memory.falkor.rows import Row
from kg_memory.maintenance.review.reviews import missing_fact
from kg_memory.models.graph import SOURCES, Change, Consequence, Fact, Premise
from kg_memory.retrieval.standing import (
    MOST_GROUNDS,
    Grounds,
    Sentences,
    add_standing,
    describe_doubt,
    point_of,
    read_grounds,
    read_resting,
)
from kg_memory.retrieval.time_window import Window
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Doubt, Point, find_doubts
from kg_memory.temporal.interval import EVER, OPEN_END
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import validate_count


def read_consequences(fact: str, limit: int, window: Window | None, believed_at: int | None) -> Flow[list[Consequence]]:
    """Return what rests on the fact with that id, over any number of steps: the nearest first, at most *limit*."""
    if not isinstance(fact, str) or not fact:
        raise InputError(f"fact must be the id of a fact, got {fact!r}; memory.facts.about(...) has facts with theirs")
    limit = validate_count("limit", limit)
    root = replace_unstorable(fact)
    if not (yield from read(queries.STORED, ids=[root])):
        raise missing_fact(fact)
    time = (yield from now()) if believed_at is None else believed_at
    point = point_of(window, time)
    before = yield from read_resting([root], limit)
    since, until = EVER
    params = {"since": since, "until": until, "believed_at": time, "unreviewed": False}
    stated = yield from read(search_queries.FACTS_BY_ID, ids=list(before), sources=SOURCES, **params)
    chosen: dict[str, Row] = {}
    for row in sorted(stated, key=lambda row: _nearness(row, point.as_of)):
        chosen[row["fact"]["id"]] = row
    standing = {row["fact"]["id"]: row for row in (yield from add_standing(list(chosen.values()), point))}
    sentences = {row["id"]: row["sentence"] for row in (yield from read(queries.STORED, ids=list(before)))}
    paths = {id_: _find_path(id_, before, sentences) for id_ in standing}
    found = [Consequence(fact=rows.to_fact(row), path=paths[id_]) for id_, row in standing.items()]
    return sorted(found, key=lambda one: (len(one.path), one.fact.sentence, one.fact.id))


def _nearness(row: Row, as_of: int) -> tuple[bool, bool, int]:
    """Return the key by which the period of a fact that holds then comes last, or else the one that ended last."""
    belief = row["belief"]
    begun = belief["known_from"] <= as_of
    return (begun and as_of < belief["invalid_at"], begun, belief["known_from"] if begun else -belief["known_from"])


def _find_path(id_: str, before: Mapping[str, str], sentences: Mapping[str, str]) -> tuple[Premise, ...]:
    path: list[Premise] = []
    while id_ in before:
        path.append(Premise(id=id_, sentence=sentences[id_]))
        id_ = before[id_]
    return tuple(reversed(path))


# Changes


def read_doubt_changes(changed: Sequence[str], since: int, until: int, limit: int) -> Flow[list[Change]]:
    """Return which facts became doubtful, or sure again, by what was learned in ``[since, until)``.

    *changed* are the facts whose beliefs changed then.
    """
    restated = yield from read(queries.RESTATED, since=since, until=until, limit=limit)
    premised = [row["id"] for row in restated]
    resting = yield from read_resting([*changed, *premised], MOST_GROUNDS)
    affected = {*resting, *premised}
    if not affected:
        return []
    grounds, sentences = yield from read_grounds(sorted(affected))
    turns = list(_find_turns(grounds, affected, since, until))[:limit]
    stated = yield from read(
        fact_queries.TELL_FACTS,
        ids=sorted({id_ for _, id_, *_ in turns}),
        past=True,
        sources=rows.MOST_SOURCES,
        believed_at=OPEN_END,
    )
    changes = (_to_change(turn, stated, sentences) for turn in turns)
    return [change for change in changes if change is not None]


Turn = tuple[int, str, Doubt | None, Doubt | None]
"""The instant at which the doubt about a fact changed, its id, and the doubt before and after."""


def _find_turns(grounds: Grounds, affected: Iterable[str], since: int, until: int) -> Iterator[Turn]:
    ids = sorted(affected)
    for instant in sorted(_find_instants(grounds)):
        if since <= instant < until:
            before, after = (find_doubts(grounds, Point(at, at)) for at in (instant - 1, instant))
            for id_ in ids:
                if (id_ in before) != (id_ in after):
                    yield instant, id_, before.get(id_), after.get(id_)


def _find_instants(grounds: Grounds) -> set[int]:
    """Return the instants at which anything was learned of *grounds*."""
    instants: set[int] = set()
    for fact in grounds.values():
        for held in fact.beliefs:
            instants |= {held.created_at, held.expired_at}
        instants |= {telling.saved_at for telling in (*fact.tellings, *fact.superseding, *fact.conflicting)}
        instants |= {saved_at for _, saved_at in fact.premises}
    return instants


def _to_change(turn: Turn, stated: Iterable[Row], sentences: Sentences) -> Change | None:
    """Return the change of a fact that is believed and has not ended, or ``None``."""
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
    beliefs = ((row, row["belief"]) for row in own)
    held = (row for row, belief in beliefs if belief["created_at"] <= at < min(belief["expired_at"], OPEN_END))
    return next((row for row in held if row["belief"]["invalid_at"] > at), None)


def _with_doubt(row: Row, doubt: Doubt | None, sentences: Sentences) -> Fact:
    return rows.to_fact(row if doubt is None else {**row, "doubt": describe_doubt(doubt, sentences)})
