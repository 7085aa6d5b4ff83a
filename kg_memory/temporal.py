"""Time, purely: intervals, instants as the graph stores them, and what was true when.

Intervals are half-open, ``[start, end)``, in UTC, with ``None`` for an open end. In the graph an
instant is an integer, microseconds since the epoch, and an open end is a far one.

Statements are never changed; what follows from them, the periods in which each fact holds, is
computed anew from all of them, so their order of arrival cannot matter. A belief records one
period and when it was held; it is closed, never overwritten, when the periods change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Precision = Literal["instant", "day", "week", "month", "season", "year"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# FalkorDB never uses an index for IS NULL, so an open start or end is stored as a far instant.
OPEN_START = -(2**60)
OPEN_END = 2**60


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
    def only_ends(self) -> bool:
        """Whether all that it tells is an end ("no longer")."""
        return self.valid_at == OPEN_START and self.invalid_at != OPEN_END

    @property
    def rank(self) -> tuple[int, int, str]:
        """Its place in history: when it begins (an undated one when it was said), then who spoke last."""
        return (self.said_at if self.valid_at == OPEN_START else self.valid_at, self.said_at, self.id)


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
    whichever is first. Of two that begin together the one said later holds.
    """
    own = [each for each in statements if each.fact == fact]
    against = [each for each in statements if each.fact in rivals and not each.only_ends]
    ends = [each.invalid_at for each in own if each.only_ends]
    found = [_stretch(each, ends, against) for each in own if not each.only_ends]
    joined = _join(sorted((each for each in found if each is not None), key=_begins))
    if joined or not ends:
        return tuple(joined)
    last = max(own, key=lambda each: each.rank)
    return (Period(OPEN_START, min(ends), last.said_at),)


def revise(held: Iterable[Belief], wanted: Sequence[Period]) -> tuple[list[str], list[Period]]:
    """Return the ids of the *held* beliefs to close, and the periods to record, so that *wanted* is believed."""
    believed: Mapping[tuple[int, int], str] = {(b.period.valid_at, b.period.invalid_at): b.id for b in held}
    spans = {(period.valid_at, period.invalid_at) for period in wanted}
    closed = [id_ for span, id_ in believed.items() if span not in spans]
    return closed, [period for period in wanted if (period.valid_at, period.invalid_at) not in believed]


def _stretch(each: Statement, ends: Iterable[int], against: Sequence[Statement]) -> Period | None:
    """Return how long one statement holds, or ``None`` when something else holds from its first moment."""
    begin = each.rank[0]
    later = (rival.rank[0] for rival in against if rival.rank > each.rank)
    end = min(each.invalid_at, *(end for end in ends if end > begin), *later, OPEN_END)
    if end <= begin:
        return None
    # An undated statement has an unknown start, unless a rival held before it.
    known = each.valid_at != OPEN_START or any(rival.rank < each.rank for rival in against)
    return Period(begin if known else OPEN_START, end, each.said_at)


def _begins(period: Period) -> tuple[int, bool]:
    """Order by the start, a known one before the unknown one of a statement made at that moment."""
    undated = period.valid_at == OPEN_START
    return (period.said_at if undated else period.valid_at, undated)


def _join(ordered: Sequence[Period]) -> list[Period]:
    """Join periods of one fact that overlap or touch, each under the start of its earliest statement."""
    joined: list[Period] = []
    for period in ordered:
        if joined and _begins(period)[0] <= joined[-1].invalid_at:
            last = joined[-1]
            end, said_at = max(last.invalid_at, period.invalid_at), max(last.said_at, period.said_at)
            joined[-1] = Period(last.valid_at, end, said_at)
        else:
            joined.append(period)
    return joined
