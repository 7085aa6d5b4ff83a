"""Doubt: find the facts that depend on another fact, their premise, which has ended or turned out to be wrong.

A fact does not end with its premise, because nobody stated its end: it becomes doubtful until it is stated again. Doubt
is never stored. It is computed from statements and beliefs, for a time at which facts hold and a time at which the
memory believed them. So the result does not depend on the order in which messages arrived, and doubt ends if the
premise holds again. All functions are pure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH


@dataclass(frozen=True, slots=True)
class BelievedPeriod:
    """A stored belief: the memory considered a fact true from *valid_at* to *invalid_at*.

    It believed this from *created_at* to *expired_at*. *known_from* is the first time at which the fact surely holds,
    *said_at* is when it was last stated. If *proposed*, a person must accept the belief first. All times are
    microseconds since the epoch.
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
class Telling:
    """A statement: a message said at *stated_at* that a fact holds from *valid_at* to *invalid_at*.

    *saved_at* is when the message was stored. Times are microseconds since the epoch. *reasons* are the ids of the
    facts that the message gives as reasons.
    """

    stated_at: int
    saved_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Grounded:
    """A fact with everything that decides whether it is doubtful: its beliefs, its statements and its premises.

    A premise is a fact on which it depends, as a pair ``(fact id, time when the dependency was saved)``. *tellings* are
    the statements of the fact itself. *superseding* are statements of facts that end it, *conflicting* statements of
    facts that prove it wrong.
    """

    id: str
    kind: str = "state"
    beliefs: tuple[BelievedPeriod, ...] = ()
    tellings: tuple[Telling, ...] = ()
    superseding: tuple[Telling, ...] = ()
    conflicting: tuple[Telling, ...] = ()
    premises: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a fact at the time *since*; if *refuted*, it did not end, but was found to be wrong at that time.

    Facts that depend on this fact become doubtful, unless they are stated again after the end is known. The end is
    known from the time *settled* on. If *saved*, the time at which the new statement was saved must be *settled* or
    later; else the time at which it was made. Times are microseconds since the epoch.
    """

    since: int
    settled: int
    precision: Precision = "instant"
    refuted: bool = False
    saved: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a fact is doubtful: a fact on which it depends has ended or, if *refuted*, was found to be wrong.

    *since* is when that happened, in microseconds since the epoch. *path* has fact ids, from the premise of the
    doubtful fact to the fact that ended.
    """

    since: int
    precision: Precision
    refuted: bool
    path: tuple[str, ...]

    @property
    def order(self) -> tuple[int, int, tuple[str, ...]]:
        """A sort key for several reasons to doubt one fact: the earliest is first, of equal times the shortest `path`.

        The path has the facts through which the doubtful fact depends on the fact that ended.
        """
        return (self.since, len(self.path), self.path)


@dataclass(frozen=True, slots=True)
class Point:
    """The time that a question is about: what was true at *as_of*, as the memory believed at *believed_at*.

    Both are microseconds since the epoch.
    """

    as_of: int
    believed_at: int


Doubts = dict[str, Doubt]


def find_doubts(facts: Mapping[str, Grounded], point: Point) -> Doubts:
    """Return the facts that are doubtful because a fact on which they depend has ended: ``{fact id: doubt}``.

    *facts* are by id. They must include the premises of each fact, and the premises of these, and so on. *point* is the
    time asked about.
    """
    endings = {id_: ending for id_, fact in facts.items() if (ending := find_ending(fact, point)) is not None}
    resting = _find_resting(facts.values(), point)
    doubts: Doubts = {}
    for root in sorted(endings.keys() & resting.keys(), key=lambda id_: (endings[id_].since, id_)):
        for id_, doubt in _spread(root, endings, resting, _Reader(facts, point)):
            if id_ not in doubts or doubt.order < doubts[id_].order:
                doubts[id_] = doubt
    return doubts


def find_ending(fact: Grounded, point: Point) -> Ending | None:
    """Return when *fact* ended or was found to be wrong; None if it holds at the time *point*, or has not begun yet.

    Events and dated plans do not end; they can only be found to be wrong.
    """
    tellings = _saved(fact.tellings, point)
    current = [one for one in fact.beliefs if one.created_at <= point.believed_at < one.expired_at]
    periods = [one for one in current if not one.proposed]
    if not periods:
        return None if current or not tellings else _find_refutation(fact, tellings, point)
    if fact.kind == "event" or (fact.kind == "plan" and any(one.valid_at > OPEN_START for one in periods)):
        return None
    if any(one.valid_at <= point.as_of < one.invalid_at for one in periods):
        return None
    past = [one for one in periods if one.invalid_at <= point.as_of]
    if not past:
        return None
    last = max(past, key=lambda one: (one.invalid_at, -WIDTH[one.end_precision]))
    settled = [_find_settled(fact, tellings, last, point)]
    # An episode that still states the fact does not know its end.
    if all(one.invalid_at <= last.invalid_at for one in periods):
        settled += [telling.stated_at + 1 for telling in tellings if telling.invalid_at > last.invalid_at]
    return Ending(last.invalid_at, max(settled), last.end_precision)


def _find_settled(fact: Grounded, tellings: Iterable[Telling], last: BelievedPeriod, point: Point) -> int:
    """Return from which time on it is known that *fact* has ended, in microseconds since the epoch.

    This is when the end was stated, or when it is surely past, whichever comes first; but never before the end itself.
    *tellings* are the statements of *fact*, *last* is its last believed period. Only statements saved by the time
    `believed_at` of *point* count.
    """
    end = last.invalid_at
    stated = [telling.stated_at for telling in tellings if telling.invalid_at == end]
    stated += [
        rival.stated_at
        for rival in _saved(fact.superseding, point)
        if rival.valid_at == end or (rival.valid_at == OPEN_START and rival.stated_at == end)
    ]
    return max(end, min([end + WIDTH[last.end_precision], *stated]))


def _find_refutation(fact: Grounded, tellings: list[Telling], point: Point) -> Ending:
    """Return the `Ending` of *fact*, which was found to be wrong: since when, and from which time on this was known.

    It is wrong since the memory stopped believing it. This was known when a conflicting fact was stated after the last
    statement of *fact*; if none was, directly after this last statement. If *fact* has no conflicting fact at all, it
    was known since the memory stopped believing *fact*. *tellings* are the statements of *fact*. *point* is the time
    asked about.
    """
    expired = [one.expired_at for one in fact.beliefs if one.expired_at <= point.believed_at and not one.proposed]
    since = max(expired, default=min(telling.saved_at for telling in tellings))
    rivals = [rival.stated_at for rival in _saved(fact.conflicting, point)]
    if not rivals:
        return Ending(since, since, refuted=True, saved=True)
    last = max(telling.stated_at for telling in tellings)
    refuting = min([at for at in rivals if at > last], default=min(rivals))
    return Ending(since, max(refuting, last + 1), refuted=True)


def _saved(tellings: Iterable[Telling], point: Point) -> list[Telling]:
    """Return the statements in *tellings* that were already saved at the time `believed_at` of *point*."""
    return [telling for telling in tellings if telling.saved_at <= point.believed_at]


def _find_resting(facts: Iterable[Grounded], point: Point) -> dict[str, list[str]]:
    """Return, by the id of each premise, the facts that depend on it: ``{premise id: [fact id, ...]}``.

    Only dependencies saved by the time `believed_at` of *point* count.
    """
    resting: defaultdict[str, list[str]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.id):
        for premise, saved_at in fact.premises:
            if saved_at <= point.believed_at:
                resting[premise].append(fact.id)
    return dict(resting)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Decides whether a fact stays certain although its premise, a fact on which it depends, has ended: see `stands`.

    *facts* are all facts by id. *point* is the time asked about. *due* is a cache by fact id: until when, in
    microseconds since the epoch, the premises of a fact must hold so that it is certain.
    """

    facts: Mapping[str, Grounded]
    point: Point
    due: dict[str, int] = field(default_factory=dict)

    def stands(self, id_: str, premise: str, ending: Ending) -> bool:
        """Return whether the fact *id_* stays certain although its *premise* (a fact id) has ended.

        It does if it was stated again after the end was known, or if it needed the premise only before the end. A
        statement that gives *premise* as its reason does not count: its author did not know of the end. *ending* is the
        premise's end.
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
        """Return until when the premises of *fact*, on which it depends, must hold so that *fact* is certain.

        The result is in microseconds since the epoch. For an event or a dated plan, it is the time of the event or
        plan: "Ann flew to Rome in May" needs them until May. For any other fact it is `point.as_of`, the time asked
        about.
        """
        if fact.kind == "state":
            return self.point.as_of
        if fact.id not in self.due:
            periods = [one for one in fact.beliefs if one.created_at <= self.point.believed_at < one.expired_at]
            starts = [one.known_from if one.known_from > OPEN_START else one.said_at for one in periods]
            dated = fact.kind == "event" or any(one.valid_at > OPEN_START for one in periods)
            self.due[fact.id] = min(self.point.as_of, *starts) if dated and starts else self.point.as_of
        return self.due[fact.id]


def _spread(
    root: str, endings: Mapping[str, Ending], resting: Mapping[str, list[str]], reader: _Reader
) -> Iterator[tuple[str, Doubt]]:
    """Yield ``(fact id, doubt)`` for each fact that depends on the ended fact *root*, directly or through other facts.

    Facts nearer to *root* come first. *endings* has the ends of all ended facts by id. *resting* has the ids of the
    facts that depend on each fact, by its id.
    """
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
