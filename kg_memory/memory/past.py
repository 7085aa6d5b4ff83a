"""Reading memory over time: what was so of a name, in which order, what changed, and what took the place of what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as belief_cypher
from kg_memory.ingestion.revise import read_history
from kg_memory.memory.reading import counted
from kg_memory.models.graph import SOURCES, Change, Fact, TimelineEvent
from kg_memory.models.surroundings import Neighbourhood
from kg_memory.retrieval.time_window import EVER, Window
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import rivals_by
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.text.predicates import canonical_predicate, predicate_name

LONGEST_CHAIN = 64
"""How many links of an evolution are told, at most (C53)."""
MOST_STEPS = 6

Believed = int | None
"""An instant of the system's clock in microseconds; ``None`` is now."""


def facts_about(
    name: str, limit: int, window: Window | None = None, believed_at: Believed = None, *,
    predicate: str | None = None, unreviewed: bool = False,
) -> Flow[list[Fact]]:  # fmt: skip
    """Return the facts about the entity called *name*, latest first: each period of each, or those in *window*."""
    alias, limit = _alias(name), counted("limit", limit)
    relation = yield from _predicate(predicate)
    given = yield from _seen(window or EVER, believed_at, unreviewed=unreviewed)
    found = yield from read(
        belief_cypher.FACTS_ABOUT, alias=alias, limit=limit, sources=SOURCES, predicate=relation, **given
    )
    return [rows.to_fact(row) for row in found]


def timeline(name: str, limit: int, believed_at: Believed = None) -> Flow[list[TimelineEvent]]:
    """Return what began, ended and was said of the entity called *name*, earliest first."""
    facts = yield from facts_about(name, limit, None, believed_at)
    moments: list[TimelineEvent] = []
    for fact in facts:
        if fact.valid_at:
            moments.append(TimelineEvent(at=fact.valid_at, precision=fact.precision, kind="began", fact=fact))
        elif fact.known_from:
            moments.append(TimelineEvent(at=fact.known_from, kind="said", fact=fact))
        if fact.invalid_at:
            moments.append(TimelineEvent(at=fact.invalid_at, precision=fact.end_precision, kind="ended", fact=fact))
    return sorted(moments, key=lambda each: (each.at, each.kind != "ended", each.fact.sentence))


def changes(since: int, until: int | None, limit: int) -> Flow[list[Change]]:
    """Return what came to be believed, or ceased to be, in ``[since, until)`` of the system's clock, earliest first."""
    limit = counted("limit", limit)
    end = (yield from now()) + 1 if until is None else until
    # A change is made of at most two beliefs.
    found = yield from read(belief_cypher.CHANGED_FACTS, since=since, until=end, limit=2 * limit)
    told = yield from read(belief_cypher.TELL_FACTS, ids=[row["id"] for row in found], past=True, sources=SOURCES)
    beliefs: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in told:
        if row["belief"] and row["belief"]["reviewed"]:
            beliefs[row["fact"]["id"]].append(row)
    found_changes = [
        change
        for own in beliefs.values()
        for at in sorted({each["belief"][clock] for each in own for clock in ("created_at", "expired_at")})
        if since <= at < end
        for change in _at(own, at)
    ]
    ordered = sorted(found_changes, key=lambda each: (each.at, each.kind, _sentence(each)))
    return ordered[:limit]


def evolution(fact: str) -> Flow[list[Fact]]:
    """Return what took the place of what, earliest first: the periods of the fact with that id and its rivals."""
    if not isinstance(fact, str) or not fact:
        raise InputError(f"the fact is {fact!r}: give the id of a fact, such as memory.facts_about(...)[0].id")
    history = yield from read_history([replace_unstorable(fact)])
    if fact not in history.sentences:
        raise InputError(f"there is no fact {fact!r} in this namespace: give the id of one that a search found")
    linked = sorted(_chain(history, fact))
    told = yield from read(belief_cypher.TELL_FACTS, ids=linked, past=False, sources=SOURCES)
    periods = [row for row in told if row["belief"] and row["belief"]["reviewed"]]
    periods.sort(key=lambda row: (row["belief"]["known_from"], row["belief"]["invalid_at"], row["fact"]["id"]))
    places = [place for place, row in enumerate(periods) if row["fact"]["id"] == fact]
    last = max(places, default=len(periods) - 1)
    start = max(0, min(last - LONGEST_CHAIN // 2, len(periods) - LONGEST_CHAIN))
    return [rows.to_fact(row) for row in periods[start : start + LONGEST_CHAIN]]


def around(
    name: str, steps: int, limit: int, window: Window | None = None, believed_at: Believed = None
) -> Flow[Neighbourhood]:
    """Return what lies within *steps* of the entity called *name*, breadth-first, in *window*, else now (C31)."""
    alias, limit = _alias(name), counted("limit", limit)
    if counted("steps", steps) > MOST_STEPS:
        raise InputError(f"steps is {steps}: give a number from 1 to {MOST_STEPS}")
    if window is None:
        time = yield from now()
        window = time, time + 1
    given = yield from _seen(window, believed_at)
    called = yield from read(belief_cypher.CALLED, alias=alias)
    found = {row["entity"]["id"]: row["entity"] for row in called}
    depths = dict.fromkeys(found, 0)
    facts: dict[str, Fact] = {}
    edge = sorted(found)
    for depth in range(1, steps + 1):
        if not edge or len(facts) >= limit:
            break
        told = yield from read(
            belief_cypher.FACTS_AROUND, ids=edge, known=list(facts), limit=limit - len(facts), sources=SOURCES, **given
        )
        new: dict[str, Fact] = {}
        for row in told:  # of one that has several periods, the latest is told
            new.setdefault(row["fact"]["id"], rows.to_fact(row))
        facts |= new
        ends = yield from read(belief_cypher.ENTITIES_OF_FACTS, ids=list(new))
        reached = {row["entity"]["id"]: row["entity"] for row in ends if row["entity"]["id"] not in found}
        found |= reached
        depths |= dict.fromkeys(reached, depth)
        edge = sorted(reached)
    names = {id_: entity["name"] for id_, entity in found.items()}
    return Neighbourhood(
        depths={names[id_]: depth for id_, depth in depths.items()},
        entities=tuple(rows.to_entity(each) for each in found.values()),
        facts=tuple(facts.values()),
    )


def _seen(window: Window, believed_at: Believed, *, unreviewed: bool = False) -> Flow[dict[str, Any]]:
    time = (yield from now()) if believed_at is None else believed_at
    since, until = window
    return {"since": since, "until": until, "believed_at": time, "lenient": False, "unreviewed": unreviewed}


def _alias(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InputError("the name is empty: give an entity's name or one of its aliases")
    return alias_key(replace_unstorable(name))


def _predicate(name: str | None) -> Flow[str | None]:
    """Return the canonical name of a predicate as a user writes it, by what was learned here and by the rules."""
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the predicate is {name!r}: give a relation such as LIVES_IN, or leave it out")
    written = predicate_name(name)
    stored = yield from read(belief_cypher.PREDICATES, names=[written])
    if stored:
        return str(stored[0]["predicate"]["canonical"])
    known = canonical_predicate(written)
    return known.name if known else written


def _at(own: Sequence[Mapping[str, Any]], at: int) -> Iterable[Change]:
    """Yield what changed in the beliefs of one fact at that instant."""
    closed = [each for each in own if each["belief"]["expired_at"] == at]
    made = [each for each in own if each["belief"]["created_at"] == at]
    earlier = any(each["belief"]["created_at"] < at for each in own)
    moment = rows.to_datetime(at)
    for before in closed:
        after = next((each for each in made if _touches(before, each)), None)
        if after is None:
            yield Change(at=moment, kind="retracted", before=rows.to_fact(before))
            continue
        made.remove(after)
        ended = before["belief"]["invalid_at"] == OPEN_END > after["belief"]["invalid_at"]
        kind = "ended" if ended else "corrected"
        yield Change(at=moment, kind=kind, before=rows.to_fact(before), after=rows.to_fact(after))
    for after in made:
        yield Change(at=moment, kind="restored" if earlier else "learned", after=rows.to_fact(after))


def _touches(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ours, theirs = one["belief"], other["belief"]
    return bool(ours["valid_at"] <= theirs["invalid_at"] and theirs["valid_at"] <= ours["invalid_at"])


def _sentence(change: Change) -> str:
    told = change.after or change.before
    return told.sentence if told else ""


def _chain(history: History, fact: str) -> set[str]:
    """Return the facts that superseding links to *fact*, through any number of others."""
    linked = rivals_by(history.verdicts.values(), "supersedes")
    chain, edge = {fact}, {fact}
    while edge:
        edge = {other for each in edge for other in linked[each]} - chain
        chain |= edge
    return chain
