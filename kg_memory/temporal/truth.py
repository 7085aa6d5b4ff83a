"""Time, purely: intervals, instants as the graph stores them, and what was true when.

Intervals are half-open, ``[start, end)``, in UTC, with ``None`` for an open end. In the graph an
instant is an integer, microseconds since the epoch, and an open end is a far one.

Statements are never changed; what follows from them and from the verdicts between facts, the periods
in which each fact holds, is computed anew from all of them, so their order of arrival cannot matter.
A belief records one period and when it was held; it is closed, never overwritten, when the periods change.
"""

from __future__ import annotations

from bisect import bisect
from calendar import monthrange
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Literal

from kg_memory.models.graph import Precision, Ruling
from kg_memory.temporal.statements import stated_of

Strategy = Literal["recency", "confidence", "model", "trust"]
"""Which of two facts that conflict is believed: the one said last, or first the surer, the model's choice, or the
better trusted one; the one said last where these leave it open (C54)."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# FalkorDB never uses an index for IS NULL, so an open start or end is stored as a far instant.
OPEN_START = -(2**60)
OPEN_END = 2**60
_HOUR = 3600 * 1_000_000
SITTING = 6 * _HOUR
"""Episodes of a thread that are further apart (microseconds) are no neighbours: another sitting, another subject."""
_DAY = 24 * _HOUR
WIDTH: Mapping[Precision, int] = MappingProxyType(
    {"instant": 0, "day": _DAY, "week": 7 * _DAY, "month": 31 * _DAY, "season": 92 * _DAY, "year": 366 * _DAY}
)
"""How long, in microseconds, the stretch is, at most, in which a date of that precision may lie."""
_MONTHS: Mapping[Precision, int] = MappingProxyType({"month": 1, "season": 3, "year": 12})
Rank = tuple[int, int, bool, str, str]


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time ``[start, end)``; ``None`` is an open end."""

    start: datetime | None = None
    end: datetime | None = None
    precision: Precision = "instant"

    def holds(self, instant: datetime) -> bool:
        """Tell whether *instant* lies inside."""
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)


def micros(instant: datetime | None, *, default: int) -> int:
    """Return *instant* as microseconds since the epoch, or *default* for an open end."""
    return default if instant is None else (instant - EPOCH) // timedelta(microseconds=1)


def instant(micros: int | None) -> datetime | None:
    """Return the instant that *micros* stands for; an open start or end is ``None``."""
    if micros is None or micros in (OPEN_START, OPEN_END):
        return None
    return EPOCH + timedelta(microseconds=micros)


def iso(moment: datetime) -> str:
    """Return *moment* as models are told it: ISO 8601, with seconds only where there are any, and ``Z`` for UTC."""
    is_whole = moment.second == moment.microsecond == 0
    text = moment.isoformat(timespec="minutes" if is_whole else "auto")
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


_LAST = micros(datetime.max.replace(tzinfo=UTC), default=0)


@dataclass(frozen=True, slots=True)
class Statement:
    """That a fact was said to hold in ``[valid_at, invalid_at)``, by the episode *id* at *said_at*.

    *precision* is that of `valid_at`, *end_precision* that of `invalid_at`. One that *corrects* takes the place of
    what was said before of the same stay, as far as it gives a start or an end.
    """

    fact: str
    id: str
    said_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    precision: Precision = "instant"
    confidence: float = 1.0
    trust: float = 1.0
    corrects: bool = False
    end_precision: Precision = "instant"

    @property
    def undated(self) -> bool:
        """Whether it does not tell since when."""
        return self.valid_at == OPEN_START

    @property
    def ends(self) -> bool:
        """Whether it tells an end."""
        return self.invalid_at != OPEN_END

    @property
    def width(self) -> int:
        """How long, at most, the stretch is in which it may have begun."""
        return WIDTH[self.precision]

    @property
    def end_width(self) -> int:
        """How long, at most, the stretch is in which it may have ended."""
        return WIDTH[self.end_precision]

    @property
    def only_ends(self) -> bool:
        """Whether all that it tells is an end in the past ("no longer")."""
        return self.undated and self.invalid_at <= self.said_at

    @property
    def begin(self) -> int:
        """When it begins; an undated one when it was said, as it was so then, unless it was over."""
        return self.said_at if self.undated and not self.only_ends else self.valid_at

    @property
    def latest(self) -> int:
        """The last instant at which it may have begun."""
        return self.begin + max(_length(self.begin, self.precision) - 1, 0)

    @property
    def rank(self) -> Rank:
        """Its place in history: when it begins, then who spoke last; the rest makes the order total."""
        return (self.begin, self.said_at, not self.undated, self.id, self.fact)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and perhaps decided, about two facts; *holds* is the one that the model believes.

    *refused* is the fact that a person did not accept. *kind* is what it would do where it waits.
    """

    new: str
    known: str
    ruling: Ruling
    holds: str | None = None
    refused: str | None = None
    kind: Literal["supersedes", "conflicts"] = "supersedes"


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch ``[valid_at, invalid_at)`` in which a fact holds; *said_at* is when it was last stated.

    *known_from* is since when it is known to have held: later than `valid_at` where the start is not known.
    """

    valid_at: int
    invalid_at: int
    said_at: int
    known_from: int
    precision: Precision = "instant"
    end_precision: Precision = "instant"


@dataclass(frozen=True, slots=True)
class Truth:
    """When a fact holds, earliest first; one that *waits* for review would hold then, but is not believed yet."""

    periods: tuple[Period, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Belief:
    """A period that is believed now, or proposed for review, under the id by which it can be closed."""

    id: str
    period: Period
    proposed: bool = False


def truths(
    statements: Iterable[Statement], verdicts: Collection[Verdict] = (), strategy: Strategy = "recency"
) -> dict[str, Truth]:
    """Return when each fact holds, by all *statements* about it and about those that *verdicts* link it to.

    A fact that waits for review, or was refused, or lost a conflict, bears on no other. A statement that counts
    less by the *strategy* takes nothing from one that counts more: it holds where that leaves room.
    """
    said: defaultdict[str, list[Statement]] = defaultdict(list)
    for each in statements:
        said[each.fact].append(each)
    verdicts = [each for each in verdicts if each.new in said and each.known in said and each.new != each.known]
    refused = {each.refused for each in verdicts if each.ruling == "refused"}
    unsure = waiting(verdicts, said)
    believed = _standing(said.keys() - refused - unsure, said, verdicts, strategy)
    stated = {fact: stated_of(own, partial(_counts, strategy=strategy)) for fact, own in said.items()}
    held = _held(believed, stated, _linked(verdicts, "supersedes"), strategy)
    found = {fact: Truth(tuple(held.get(fact, ()))) for fact in said}
    # Accepted, one that conflicts would win, or not hold at all; only one that supersedes would be cut.
    against = _linked([each for each in verdicts if each.kind == "supersedes"], "waiting")
    for fact, others in _linked(verdicts, "supersedes").items():
        against[fact] |= others
    for fact in unsure:
        rivals = {fact: against[fact] & believed}
        rivals |= {rival: {fact} for rival in rivals[fact]}
        proposed = _held(rivals.keys(), stated, rivals, strategy)
        found[fact] = Truth(tuple(proposed[fact]), waits=True)
    return found


def revise(held: Iterable[Belief], truth: Truth) -> tuple[list[str], list[Period]]:
    """Return the ids of the *held* beliefs to close, and the periods to record, so that *truth* is believed."""
    missing = {_told(period): period for period in truth.periods}
    # One that is held twice, by two writers at once, is closed once.
    closed = [b.id for b in held if b.proposed != truth.waits or missing.pop(_told(b.period), None) is None]
    return closed, list(missing.values())


def said_later(verdict: Verdict, said: Mapping[str, Sequence[Statement]]) -> str:
    """Return the one of the two facts that was first said later."""
    return max(verdict.new, verdict.known, key=lambda fact: _first_said(fact, said))


def waiting(verdicts: Collection[Verdict], said: Mapping[str, Sequence[Statement]]) -> set[str]:
    """Return the facts that wait for review.

    Those that an unsure verdict links to one that was first said earlier, and neither waits itself nor was refused.
    """
    aside = {each.refused for each in verdicts if each.ruling == "refused"}
    unsure = _linked([each for each in verdicts if each.new in said and each.known in said], "waiting")
    waits, settled = set[str](), set[str]()
    for fact in sorted(unsure.keys() - aside, key=lambda fact: _first_said(fact, said)):
        (waits if unsure[fact] & settled else settled).add(fact)
    return waits


def _first_said(fact: str, said: Mapping[str, Sequence[Statement]]) -> tuple[int, str, str]:
    return min((each.said_at, each.id, fact) for each in said[fact])


def _told(period: Period) -> Period:
    return replace(period, said_at=0)


def _length(begin: int, precision: Precision) -> int:
    """Return how long the stretch of that *precision* is that begins at *begin*, in microseconds."""
    if precision not in _MONTHS:
        return WIDTH[precision]
    # A month that begins in another time zone begins at most 14 hours before, or 12 after, it does in UTC.
    first = EPOCH + timedelta(microseconds=min(begin + 14 * _HOUR, _LAST))
    months = range(first.month - 1, first.month - 1 + _MONTHS[precision])
    return _DAY * sum(monthrange(min(first.year + each // 12, MAXYEAR), each % 12 + 1)[1] for each in months)


def _counts(each: Statement, strategy: Strategy) -> float:
    return {"confidence": each.confidence, "trust": each.trust}.get(strategy, 0.0)


def _linked(verdicts: Iterable[Verdict], *rulings: Ruling) -> defaultdict[str, set[str]]:
    linked: defaultdict[str, set[str]] = defaultdict(set)
    for each in verdicts:
        if each.ruling in rulings:
            linked[each.new].add(each.known)
            linked[each.known].add(each.new)
    return linked


def _standing(
    facts: Collection[str], said: Mapping[str, Sequence[Statement]], verdicts: Sequence[Verdict], strategy: Strategy
) -> set[str]:
    """Return those of *facts* that no conflict is lost by, to one that stands itself."""
    against = _linked(verdicts, "conflicts")
    chosen = {(each.new, each.known, each.holds) for each in verdicts if strategy == "model"}
    last = {fact: max((each.said_at, each.id, fact) for each in said[fact]) for fact in facts}
    claims = {fact: (max(_counts(each, strategy) for each in said[fact]), last[fact]) for fact in facts}

    def beats(one: str, other: str) -> bool:
        ours, theirs = ({(one, other, fact), (other, one, fact)} & chosen for fact in (one, other))
        return claims[one] > claims[other] if bool(ours) == bool(theirs) else bool(ours)

    left, standing = set(facts), set[str]()
    while left:
        unbeaten = {fact for fact in left if not any(beats(other, fact) for other in against[fact] & left)}
        unbeaten = unbeaten or {max(left, key=lambda fact: claims[fact])}  # the model's choices go round in a circle
        standing |= unbeaten
        left -= unbeaten.union(*(against[fact] for fact in unbeaten))
    return standing


def _held(
    facts: Collection[str],
    stated: Mapping[str, Sequence[Statement]],
    rivals: Mapping[str, Collection[str]],
    strategy: Strategy,
) -> dict[str, list[Period]]:
    """Return the periods of *facts*: what counts more first, and what counts less where that leaves room."""
    near = {fact: [rival for rival in rivals.get(fact, ()) if rival in facts] for fact in facts}
    around = {fact: [each for rival in near[fact] for each in stated[rival]] for fact in facts}
    placed = {fact: [_placed(each, stated[fact], around[fact], strategy) for each in stated[fact]] for fact in facts}
    first = {fact: min(each.rank for one in (fact, *near[fact]) for each in placed[one]) for fact in facts}
    held: dict[str, list[Period]] = {fact: [] for fact in facts}
    for count in sorted({_counts(each, strategy) for own in placed.values() for each in own}, reverse=True):
        alike = {fact: [each for each in own if _counts(each, strategy) == count] for fact, own in placed.items()}
        found = {}
        for fact, own in alike.items():
            periods = _periods(own, [each for rival in near[fact] for each in alike[rival]], first[fact])
            taken = [period for rival in near[fact] for period in held[rival]]
            found[fact] = [left for each in periods if (left := _beside(each, taken)) is not None]
        held = {fact: _join([*periods, *found[fact]]) for fact, periods in held.items()}
    return held


def _placed(each: Statement, own: Iterable[Statement], against: Iterable[Statement], strategy: Strategy) -> Statement:
    """Return *each*, a coarse start moved behind the finer ones of rivals that were said before it.

    "I moved to Oslo in 2019", said in December, after "I moved to Paris in March": it was later in 2019.
    """
    if each.undated or not each.width:
        return each
    dated = (each.valid_at, each.precision)
    said = min((same.said_at, same.id) for same in own if (same.valid_at, same.precision) == dated)
    limit = min(each.latest, each.said_at, each.invalid_at)
    behind = [
        other.invalid_at if other.invalid_at < limit else other.latest + 1
        for other in against
        if not other.only_ends
        and (other.said_at, other.id) < said
        and other.width < each.width
        and each.valid_at <= other.begin
        and other.latest + 1 < limit
        and _counts(other, strategy) >= _counts(each, strategy)
    ]
    return replace(each, valid_at=max(behind, default=each.valid_at))


def _periods(own: Iterable[Statement], against: Sequence[Statement], first: Rank) -> Iterator[Period]:
    """Yield when a fact holds by its *own* statements and those *against* it, that count alike.

    A statement holds until its end or until a rival begins, whichever is first. Of two that begin together the one
    said later holds. An undated one has an unknown start where nothing came before it, else it begins when it was
    said; one that tells only an end held before all others.
    """
    lasting = sorted((each.rank, each.width, each.precision) for each in against if not each.only_ends)
    former = [(each.invalid_at, each.fact, -each.end_width, each.end_precision) for each in against if each.only_ends]
    for each in own:
        place = bisect(lasting, each.rank, key=itemgetter(0))
        ends = [(each.invalid_at, each.end_width, each.end_precision)]
        ends += [(rank[0], width, finest) for rank, width, finest in lasting[place : place + 1]]
        end, _, end_precision = min(ends)
        since, begin, precision = each.begin, each.begin, each.precision
        if each.only_ends:
            earlier = [told for told in former if told[:2] < (each.invalid_at, each.fact)]
            begin, *_, precision = max([(begin, "", 0, precision), *earlier])
            since = begin
        elif each.undated and each.rank == first:
            since = OPEN_START
        if since < end:
            yield Period(since, end, each.said_at, begin, precision, end_precision)


def _beside(period: Period, taken: Iterable[Period]) -> Period | None:
    """Return what *taken*, which counts more, leaves of *period*: it begins after it, and ends where it begins."""
    left = period
    for other in sorted(taken, key=lambda each: each.known_from):
        begin = left.known_from
        if other.known_from <= begin < other.invalid_at:
            until = other.invalid_at
            left = replace(left, valid_at=until, known_from=until, precision=other.end_precision)
        elif begin < other.known_from < left.invalid_at:
            left = replace(left, invalid_at=other.known_from, end_precision=other.precision)
    return left if left.valid_at < left.invalid_at else None


def _join(periods: Iterable[Period]) -> list[Period]:
    """Join periods of one fact that overlap or touch, and sort them."""
    joined: list[Period] = []
    for period in sorted(periods, key=lambda each: (each.valid_at, each.known_from, WIDTH[each.precision])):
        if joined and period.valid_at <= joined[-1].invalid_at:
            last = joined[-1]
            end = max(last, period, key=lambda each: (each.invalid_at, -WIDTH[each.end_precision]))
            joined[-1] = replace(
                last, invalid_at=end.invalid_at, end_precision=end.end_precision,
                said_at=max(last.said_at, period.said_at), known_from=min(last.known_from, period.known_from),
            )  # fmt: skip
        else:
            joined.append(period)
    return joined
