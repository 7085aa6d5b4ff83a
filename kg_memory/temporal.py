"""Time, purely: intervals, instants as the graph stores them, and what was true when.

Intervals are half-open, ``[start, end)``, in UTC, with ``None`` for an open end. In the graph an
instant is an integer, microseconds since the epoch, and an open end is a far one.

Statements are never changed; what follows from them, the periods in which each fact holds, is
computed anew from all of them, so their order of arrival cannot matter. A belief records one
period and when it was held; it is closed, never overwritten, when the periods change.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Precision = Literal["instant", "day", "week", "month", "season", "year"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# FalkorDB never uses an index for IS NULL, so an open start or end is stored as a far instant.
OPEN_START = -(2**60)
OPEN_END = 2**60
SITTING = 6 * 3600 * 1_000_000
"""Episodes of a thread that are further apart (microseconds) are no neighbours: another sitting, another subject."""


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
    if instant is None:
        return default
    return (instant - EPOCH) // timedelta(microseconds=1)


def instant(micros: int | None) -> datetime | None:
    """Return the instant that *micros* stands for; an open start or end is ``None``."""
    if micros is None or micros in (OPEN_START, OPEN_END):
        return None
    return EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Statement:
    """That a fact was said to hold in ``[valid_at, invalid_at)``, by the episode *id* at *said_at*."""

    fact: str
    id: str
    said_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END

    @property
    def undated(self) -> bool:
        """Whether it does not tell since when."""
        return self.valid_at == OPEN_START

    @property
    def only_ends(self) -> bool:
        """Whether all that it tells is an end in the past ("no longer")."""
        return self.undated and self.invalid_at <= self.said_at

    @property
    def begin(self) -> int:
        """When it begins; an undated one when it was said, as it was so then."""
        return self.said_at if self.undated else self.valid_at

    @property
    def rank(self) -> tuple[int, int, bool, str, str]:
        """Its place in history: when it begins, then who spoke last; the rest makes the order total."""
        return (self.begin, self.said_at, not self.undated, self.id, self.fact)


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch ``[valid_at, invalid_at)`` in which a fact holds; *said_at* is when it was last stated."""

    valid_at: int
    invalid_at: int
    said_at: int


@dataclass(frozen=True, slots=True)
class Belief:
    """A period that is believed now, under the id by which it can be closed."""

    id: str
    period: Period


def periods(fact: str, statements: Collection[Statement], rivals: Collection[str]) -> tuple[Period, ...]:
    """Return when *fact* holds, earliest first, by all *statements* about it and about its *rivals*.

    A statement holds until its own end, until *fact* is said to end, or until a rival begins,
    whichever is first. Of two that begin together the one said later holds. An undated one has an
    unknown start where nothing came before it, else it begins when it was said.
    """
    own = [each for each in statements if each.fact == fact]
    against = [each for each in statements if each.fact != fact and each.fact in rivals]
    lasting = sorted(each.rank for each in against if not each.only_ends)
    ending = [each for each in own if each.invalid_at != OPEN_END]
    first = min([*lasting, *(each.rank for each in own if not each.only_ends)], default=None)
    found = [_former(fact, own, against)]
    for each in own:
        if not each.only_ends:
            place = bisect(lasting, each.rank)
            later = lasting[place : place + 1]
            ends = (other.invalid_at for other in ending if _ends(other, each))
            unknown = each.undated and each.rank == first and not _former_ends((*own, *against))
            begin = OPEN_START if unknown else each.begin
            found.append(
                _period(begin, min(each.invalid_at, *(rank[0] for rank in later), *ends, OPEN_END), each.said_at)
            )
    return tuple(_join(sorted((each for each in found if each is not None), key=lambda each: each.valid_at)))


def revise(held: Iterable[Belief], wanted: Sequence[Period]) -> tuple[list[str], list[Period]]:
    """Return the ids of the *held* beliefs to close, and the periods to record, so that *wanted* is believed."""
    missing = {(period.valid_at, period.invalid_at): period for period in wanted}
    # One that is held twice, by two writers at once, is closed once.
    closed = [b.id for b in held if missing.pop((b.period.valid_at, b.period.invalid_at), None) is None]
    return closed, list(missing.values())


def _period(begin: int, end: int, said_at: int) -> Period | None:
    """Return the period, or ``None`` when something else holds from its first moment."""
    return Period(begin, end, said_at) if begin < end else None


def _ends(other: Statement, each: Statement) -> bool:
    """Tell whether *other*, about the same fact, ends what *each* states."""
    if other == each or other.invalid_at == OPEN_END:
        return False
    if each.invalid_at != OPEN_END and other.valid_at not in (OPEN_START, each.valid_at):
        return False  # two stays, each with dates of its own
    if other.invalid_at <= each.said_at and other.said_at < each.said_at:
        return False  # said to hold when that end was known and past
    return other.invalid_at > each.begin or (each.undated and other.only_ends)


def _former(fact: str, own: Sequence[Statement], against: Sequence[Statement]) -> Period | None:
    """Return when *fact* held before all that is told of it but its end: until then, and before any rival."""
    end = _former_ends(own).get(fact)
    if end is None:
        return None
    earlier = [until for rival, until in _former_ends(against).items() if (until, rival) < (end, fact)]
    begin = max(earlier, default=OPEN_START)
    end = min([end, *(rival.begin for rival in against if not rival.only_ends)])
    return _period(begin, end, max(each.said_at for each in own if each.only_ends))


def _former_ends(statements: Iterable[Statement]) -> dict[str, int]:
    """Return the first end of each fact that is said to have ended before it is first said to hold."""
    ends: dict[str, int] = {}
    begins: dict[str, int] = {}
    for each in statements:
        known, moment = (ends, each.invalid_at) if each.only_ends else (begins, each.begin)
        known[each.fact] = min(moment, known.get(each.fact, OPEN_END))
    return {fact: end for fact, end in ends.items() if end < begins.get(fact, OPEN_END)}


def _join(ordered: Sequence[Period]) -> list[Period]:
    """Join periods of one fact that overlap or touch."""
    joined: list[Period] = []
    for period in ordered:
        if joined and period.valid_at <= joined[-1].invalid_at:
            last = joined[-1]
            end, said_at = max(last.invalid_at, period.invalid_at), max(last.said_at, period.said_at)
            joined[-1] = Period(last.valid_at, end, said_at)
        else:
            joined.append(period)
    return joined
