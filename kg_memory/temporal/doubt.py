"""Doubt: find the facts that depend on another fact, their premise, which has ended or turned out to be wrong.

A fact does not end with its premise, because nobody stated its end: it becomes doubtful until it is stated again. Doubt
is never stored. It is computed from statements and beliefs, for a time at which facts hold and a time at which the
memory believed them. So the result does not depend on the order in which messages arrived, and doubt ends if the
premise holds again. All functions are pure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH


@dataclass(frozen=True, slots=True)
class BelievedPeriod:
    """A stored belief: a period in which a fact is true, and when the memory believed this.

    - *valid_at* to *invalid_at*: the period. *created_at* to *expired_at*: when the memory believed it.
    - *known_from*: the first time at which the fact surely holds. *said_at*: when it was last stated.
    - *proposed*: whether a person must accept the belief first.

    Times are microseconds since the epoch.
    """

    valid_at: int
    invalid_at: int
    known_from: int
    said_at: int
    created_at: int
    expired_at: int = OPEN_END
    end_precision: Precision = "instant"
    proposed: bool = False


@dataclass(frozen=True, slots=True)
class TimedStatement:
    """A statement in a message that a fact holds from *valid_at* to *invalid_at*.

    *stated_at*: when it was said. *saved_at*: when it was stored. *reasons*: ids of the facts that it gives as reasons.
    Times are microseconds since the epoch.
    """

    stated_at: int
    saved_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Grounded:
    """A fact with the data that decides whether it is doubtful, that is, whether a fact it depends on has ended.

    - *beliefs*: the periods in which it is true. *statements*: the statements of the fact.
    - *superseding*: statements of facts that end it. *conflicting*: statements of facts that prove it wrong.
    - *premises*: the facts on which it depends, as pairs ``(fact id, time when the dependency was saved)``.
    """

    id: str
    kind: str = "state"
    beliefs: tuple[BelievedPeriod, ...] = ()
    statements: tuple[TimedStatement, ...] = ()
    superseding: tuple[TimedStatement, ...] = ()
    conflicting: tuple[TimedStatement, ...] = ()
    premises: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a fact on which other facts depend.

    A dependent fact is doubtful unless it was stated again at *known_at* or later. *since*: when the fact ended, or was
    *refuted* (found to be wrong). *known_at*: when the memory learned of it. *by_saved_at*: the time of a statement is
    when it was saved, not the time of its message. Times are microseconds since the epoch.
    """

    since: int
    known_at: int
    precision: Precision = "instant"
    refuted: bool = False
    by_saved_at: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a fact is doubtful: a fact on which it depends ended at *since* or, if *refuted*, was found to be wrong.

    *since*: microseconds since the epoch. *path*: the ids of the facts that lead from the doubtful fact to the ended
    fact.
    """

    since: int
    precision: Precision
    refuted: bool
    path: tuple[str, ...]

    @property
    def sort_key(self) -> tuple[int, int, tuple[str, ...]]:
        """The key that puts earlier doubts first, and of equal times the one with the shorter `path`."""
        return (self.since, len(self.path), self.path)


@dataclass(frozen=True, slots=True)
class Point:
    """The two times of a query: facts true at *as_of*, as the memory believed at *believed_at* (microseconds)."""

    as_of: int
    believed_at: int


Doubts = dict[str, Doubt]


def find_doubts(facts: Mapping[str, Grounded], point: Point) -> Doubts:
    """Return the facts that are doubtful because a fact on which they depend has ended: ``{fact id: Doubt(...)}``.

    *facts*: by id, with all facts on which they depend, directly or not. *point*: the time asked about.
    """
    endings = {id_: ending for id_, fact in facts.items() if (ending := find_ending(fact, point)) is not None}
    dependents = _find_dependents(facts.values(), point)
    doubts: Doubts = {}
    for root in sorted(endings.keys() & dependents.keys(), key=lambda id_: (endings[id_].since, id_)):
        for id_, doubt in _spread(root, endings, dependents, _CertaintyCheck(facts, point)):
            if id_ not in doubts or doubt.sort_key < doubts[id_].sort_key:
                doubts[id_] = doubt
    return doubts


def find_ending(fact: Grounded, point: Point) -> Ending | None:
    """Return when *fact* ended or was found to be wrong; None if it holds at *point*, or has not begun yet.

    *point*: the time asked about. Events and dated plans do not end; they can only be found to be wrong.
    """
    statements = _saved_by(fact.statements, point)
    current = [one for one in fact.beliefs if one.created_at <= point.believed_at < one.expired_at]
    periods = [one for one in current if not one.proposed]
    if not periods:
        return None if current or not statements else _find_refutation(fact, statements, point)
    if fact.kind == "event" or (fact.kind == "plan" and any(one.valid_at > OPEN_START for one in periods)):
        return None
    if any(one.valid_at <= point.as_of < one.invalid_at for one in periods):
        return None
    past = [one for one in periods if one.invalid_at <= point.as_of]
    if not past:
        return None
    last = max(past, key=lambda one: (one.invalid_at, -WIDTH[one.end_precision]))
    known_at = [_find_known_at(fact, statements, last, point)]
    # An episode that still states the fact does not know its end.
    if all(one.invalid_at <= last.invalid_at for one in periods):
        known_at += [statement.stated_at + 1 for statement in statements if statement.invalid_at > last.invalid_at]
    return Ending(last.invalid_at, max(known_at), last.end_precision)


def _find_known_at(fact: Grounded, statements: Iterable[TimedStatement], last: BelievedPeriod, point: Point) -> int:
    """Return when the memory learned that *fact* has ended, in microseconds since the epoch.

    It is the time of the first message that gives the end, but not before the end itself. *statements*: those of
    *fact*. *last*: its last period. *point*: the time asked about.
    """
    end = last.invalid_at
    stated = [statement.stated_at for statement in statements if statement.invalid_at == end]
    stated += [
        rival.stated_at
        for rival in _saved_by(fact.superseding, point)
        if rival.valid_at == end or (rival.valid_at == OPEN_START and rival.stated_at == end)
    ]
    return max(end, min([end + WIDTH[last.end_precision], *stated]))


def _find_refutation(fact: Grounded, statements: list[TimedStatement], point: Point) -> Ending:
    """Return an `Ending`: since when *fact* counts as wrong, and when a message first said so.

    *statements*: the statements of *fact*. *point*: the time asked about.
    """
    expired = [one.expired_at for one in fact.beliefs if one.expired_at <= point.believed_at and not one.proposed]
    since = max(expired, default=min(statement.saved_at for statement in statements))
    rivals = [rival.stated_at for rival in _saved_by(fact.conflicting, point)]
    if not rivals:
        return Ending(since, since, refuted=True, by_saved_at=True)
    # It is known since the first conflicting statement after the last statement of the fact, or since the latter.
    last = max(statement.stated_at for statement in statements)
    refuting = min([at for at in rivals if at > last], default=min(rivals))
    return Ending(since, max(refuting, last + 1), refuted=True)


def _saved_by(statements: Iterable[TimedStatement], point: Point) -> list[TimedStatement]:
    return [statement for statement in statements if statement.saved_at <= point.believed_at]


def _find_dependents(facts: Iterable[Grounded], point: Point) -> dict[str, list[str]]:
    dependents: defaultdict[str, list[str]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.id):
        for premise, saved_at in fact.premises:
            if saved_at <= point.believed_at:
                dependents[premise].append(fact.id)
    return dict(dependents)


@dataclass(frozen=True, slots=True)
class _CertaintyCheck:
    """Decides whether a fact stays certain after a fact on which it depends has ended.

    *facts*: all facts by id. *point*: the time asked about.
    """

    facts: Mapping[str, Grounded]
    point: Point

    def stays_certain(self, id_: str, premise: str, ending: Ending) -> bool:
        """Return whether the fact *id_* stays certain although *premise*, a fact on which it depends, has ended.

        A fact stays certain if it was stated again after the end was known, or needed *premise* only before the end.
        *ending*: the end of *premise*.
        """
        fact = self.facts[id_]
        if not ending.refuted and ending.since > self._needed_until(fact):
            return True
        after = OPEN_START if ending.refuted else ending.since
        return any(
            (one.saved_at if ending.by_saved_at else one.stated_at) >= ending.known_at and one.invalid_at > after
            for one in _saved_by(fact.statements, self.point)
            if premise not in one.reasons  # its author did not know of the end
        )

    def _needed_until(self, fact: Grounded) -> int:
        """Return the time up to which *fact* needs the facts on which it depends, in microseconds since the epoch.

        For an event or a dated plan, that is its own date: "Ann flew to Rome in May" stays certain if such a fact ends
        in June. For others, it is ``point.as_of``, the time asked about.
        """
        if fact.kind == "state":
            return self.point.as_of
        periods = [one for one in fact.beliefs if one.created_at <= self.point.believed_at < one.expired_at]
        starts = [one.known_from if one.known_from > OPEN_START else one.said_at for one in periods]
        is_dated = fact.kind == "event" or any(one.valid_at > OPEN_START for one in periods)
        return min(self.point.as_of, *starts) if is_dated and starts else self.point.as_of


def _spread(
    root: str, endings: Mapping[str, Ending], dependents: Mapping[str, list[str]], check: _CertaintyCheck
) -> Iterator[tuple[str, Doubt]]:
    """Yield ``(fact id, doubt)`` for each fact that is doubtful because *root* has ended, nearest to *root* first.

    These facts depend on *root*, directly or not. *endings*: all ended facts by id. *dependents*: the ids of the facts
    that depend on a fact, by its id. *check*: finds the facts that stay certain.
    """
    ending = endings[root]
    reached = {root}
    paths = deque[tuple[str, tuple[str, ...]]]([(root, (root,))])
    while paths:
        premise, path = paths.popleft()
        for id_ in dependents.get(premise, ()):
            if id_ in reached or id_ in endings or check.stays_certain(id_, premise, ending):
                continue
            reached.add(id_)
            yield id_, Doubt(ending.since, ending.precision, ending.refuted, path)
            paths.append((id_, (id_, *path)))
