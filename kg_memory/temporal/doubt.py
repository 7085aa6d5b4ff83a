"""Doubt: which facts rest on one that has ended or is refuted, and since when; pure.

A fact that rests on another is not ended with it, as nobody said so. It is doubtful until it is stated again. Doubt is
never stored: it is computed for one point of both clocks from statements and beliefs, so it is the same in whatever
order they arrived, and a premise that holds again removes it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH


@dataclass(frozen=True, slots=True)
class Held:
    """A belief in a period of a fact, or one that is *proposed* for review."""

    valid_at: int
    invalid_at: int
    known_from: int
    said_at: int
    created_at: int
    expired_at: int = OPEN_END
    end_precision: Precision = "instant"
    proposed: bool = False


@dataclass(frozen=True, slots=True)
class Telling:
    """A statement of a fact, by an episode of *stated_at* that was saved at *saved_at*, for *reasons*: its premises."""

    stated_at: int
    saved_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Grounded:
    """A fact with what is believed of it and who states it, and with the facts that it rests on.

    *premises* are ids with the time when it was saved that the fact rests on them. *superseding* and *conflicting* are
    the statements of facts that end or refute it.
    """

    id: str
    kind: str = "state"
    beliefs: tuple[Held, ...] = ()
    tellings: tuple[Telling, ...] = ()
    superseding: tuple[Telling, ...] = ()
    conflicting: tuple[Telling, ...] = ()
    premises: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a fact, or its refutation; a fact that is stated from *settled* on is stated in spite of it.

    *settled* is the time of a statement, or where nobody states what refutes it the time when one was *saved*.
    """

    since: int
    settled: int
    precision: Precision = "instant"
    refuted: bool = False
    saved: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """Since when a fact is doubtful, and the *path* from its premise to the one that ended."""

    since: int
    precision: Precision
    refuted: bool
    path: tuple[str, ...]

    @property
    def order(self) -> tuple[int, int, tuple[str, ...]]:
        """The key by which the doubt that began first is selected, and of those the nearest."""
        return (self.since, len(self.path), self.path)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of both clocks: what is believed at one instant of another."""

    as_of: int
    believed_at: int


Doubts = dict[str, Doubt]


def find_doubts(facts: Mapping[str, Grounded], point: Point) -> Doubts:
    """Return the doubtful ones of *facts*, which have all that they rest on among them."""
    endings = {id_: ending for id_, fact in facts.items() if (ending := find_ending(fact, point)) is not None}
    resting = _find_resting(facts.values(), point)
    doubts: Doubts = {}
    for root in sorted(endings.keys() & resting.keys(), key=lambda id_: (endings[id_].since, id_)):
        for id_, doubt in _spread(root, endings, resting, _Reader(facts, point)):
            if id_ not in doubts or doubt.order < doubts[id_].order:
                doubts[id_] = doubt
    return doubts


def find_ending(fact: Grounded, point: Point) -> Ending | None:
    """Return the end of *fact* that is over then, or its refutation; ``None`` where it holds or has not begun.

    What happened does not end: an event, or a plan for a time, is only refuted.
    """
    tellings = _saved(fact.tellings, point)
    current = [held for held in fact.beliefs if held.created_at <= point.believed_at < held.expired_at]
    periods = [held for held in current if not held.proposed]
    if not periods:
        return None if current or not tellings else _find_refutation(fact, tellings, point)
    if fact.kind == "event" or (fact.kind == "plan" and any(held.valid_at > OPEN_START for held in periods)):
        return None
    if any(held.valid_at <= point.as_of < held.invalid_at for held in periods):
        return None
    past = [held for held in periods if held.invalid_at <= point.as_of]
    if not past:
        return None
    last = max(past, key=lambda held: (held.invalid_at, -WIDTH[held.end_precision]))
    settled = [_find_settled(fact, tellings, last, point)]
    if all(held.invalid_at <= last.invalid_at for held in periods):  # who states it still does not know of its end
        settled += [telling.stated_at + 1 for telling in tellings if telling.invalid_at > last.invalid_at]
    return Ending(last.invalid_at, max(settled), last.end_precision)


def _find_settled(fact: Grounded, tellings: Iterable[Telling], last: Held, point: Point) -> int:
    """Return when the end of *fact* is surely past, or was told if that is before."""
    end = last.invalid_at
    told = [telling.stated_at for telling in tellings if telling.invalid_at == end]
    told += [
        rival.stated_at
        for rival in _saved(fact.superseding, point)
        if rival.valid_at == end or (rival.valid_at == OPEN_START and rival.stated_at == end)
    ]
    return max(end, min([end + WIDTH[last.end_precision], *told]))


def _find_refutation(fact: Grounded, tellings: list[Telling], point: Point) -> Ending:
    expired = [held.expired_at for held in fact.beliefs if held.expired_at <= point.believed_at and not held.proposed]
    since = max(expired, default=min(telling.saved_at for telling in tellings))
    rivals = [rival.stated_at for rival in _saved(fact.conflicting, point)]
    if not rivals:
        return Ending(since, since, refuted=True, saved=True)
    last = max(telling.stated_at for telling in tellings)
    refuting = min([at for at in rivals if at > last], default=min(rivals))
    return Ending(since, max(refuting, last + 1), refuted=True)


def _saved(tellings: Iterable[Telling], point: Point) -> list[Telling]:
    return [telling for telling in tellings if telling.saved_at <= point.believed_at]


def _find_resting(facts: Iterable[Grounded], point: Point) -> dict[str, list[str]]:
    """Return the facts that rest on each, in the order of their ids."""
    resting: defaultdict[str, list[str]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.id):
        for premise, saved_at in fact.premises:
            if saved_at <= point.believed_at:
                resting[premise].append(fact.id)
    return dict(resting)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Tells whether facts stand in spite of an ending."""

    facts: Mapping[str, Grounded]
    point: Point
    due: dict[str, int] = field(default_factory=dict)

    def stands(self, id_: str, premise: str, ending: Ending) -> bool:
        """Return whether the fact was stated again after *ending*, or came about before it.

        Who states it because of *premise* does not know that this has ended.
        """
        fact = self.facts[id_]
        if not ending.refuted and ending.since > self._due(fact):
            return True
        after = OPEN_START if ending.refuted else ending.since
        return any(
            (telling.saved_at if ending.saved else telling.stated_at) >= ending.settled and telling.invalid_at > after
            for telling in _saved(fact.tellings, self.point)
            if premise not in telling.reasons
        )

    def _due(self, fact: Grounded) -> int:
        """Return when a premise is last needed: of what happens when it does, else at the time that is asked about."""
        if fact.kind == "state":
            return self.point.as_of
        if fact.id not in self.due:
            periods = [held for held in fact.beliefs if held.created_at <= self.point.believed_at < held.expired_at]
            starts = [held.known_from if held.known_from > OPEN_START else held.said_at for held in periods]
            dated = fact.kind == "event" or any(held.valid_at > OPEN_START for held in periods)
            self.due[fact.id] = min(self.point.as_of, *starts) if dated and starts else self.point.as_of
        return self.due[fact.id]


def _spread(
    root: str, endings: Mapping[str, Ending], resting: Mapping[str, list[str]], reader: _Reader
) -> Iterator[tuple[str, Doubt]]:
    """Yield the facts that the ending of *root* makes doubtful, the nearest first; cycles end where they began."""
    ending = endings[root]
    reached = {root}
    paths = deque[tuple[str, tuple[str, ...]]]([(root, (root,))])
    while paths:
        premise, path = paths.popleft()
        for id_ in resting.get(premise, ()):
            if id_ in reached or id_ in endings or reader.stands(id_, premise, ending):
                continue
            reached.add(id_)
            yield id_, Doubt(ending.since, ending.precision, ending.refuted, path)
            paths.append((id_, (id_, *path)))
