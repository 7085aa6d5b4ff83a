"""Calendar periods as intervals, and how to step from one to another.

All functions here take and give local times (in the zone of the reference); `find_dates` turns
them into UTC. They raise ``ValueError`` or ``OverflowError`` for what the calendar does not have.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import Interval

Rule = tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Interval | None]]

SPRING, SUMMER, AUTUMN, WINTER = 3, 6, 9, 12
"""The first month of each season of the northern hemisphere."""

_PRECISION: dict[str, Precision] = {
    "minute": "instant",
    "hour": "instant",
    "day": "day",
    "week": "week",
    "month": "month",
    "season": "season",
    "year": "year",
}
_COARSER: dict[Precision, Precision] = {"day": "week", "week": "month", "month": "season", "season": "year"}


@dataclass(frozen=True, slots=True)
class DateMention:
    """The characters ``text[start:end]`` and the time that they name, in UTC."""

    start: int
    end: int
    interval: Interval


def midnight(at: datetime) -> datetime:
    """Return the start of the day of *at*."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def day(at: datetime, offset: int = 0) -> Interval:
    """Return the day that lies *offset* days after that of *at*."""
    start = midnight(at) + timedelta(days=offset)
    return Interval(start, start + timedelta(days=1), "day")


def date(year: int, month: int, day_: int, now: datetime) -> Interval:
    """Return one day of the calendar, in the zone of *now*."""
    return day(datetime(year, month, day_, tzinfo=now.tzinfo))


def week(at: datetime, offset: int = 0) -> Interval:
    """Return the week, Monday to Sunday, *offset* weeks after that of *at*."""
    start = midnight(at) - timedelta(days=at.weekday()) + timedelta(weeks=offset)
    return Interval(start, start + timedelta(weeks=1), "week")


def weekend(at: datetime, offset: int = 0) -> Interval:
    """Return Saturday and Sunday of the week *offset* weeks after that of *at*."""
    start = midnight(at) - timedelta(days=at.weekday()) + timedelta(weeks=offset, days=5)
    return Interval(start, start + timedelta(days=2), "day")


def month(year_: int, month_: int, now: datetime) -> Interval:
    """Return a month of the calendar; *month_* may lie outside 1..12 and carries into the year."""
    year_, month_ = year_ + (month_ - 1) // 12, (month_ - 1) % 12 + 1
    start = datetime(year_, month_, 1, tzinfo=now.tzinfo)
    return Interval(start, step(start, 1, "month"), "month")


def season(year_: int, first_month: int, now: datetime) -> Interval:
    """Return the season of three months that begins in *first_month* of *year_*."""
    start = datetime(year_, first_month, 1, tzinfo=now.tzinfo)
    return Interval(start, step(start, 3, "month"), "season")


def year(year_: int, now: datetime, length: int = 1) -> Interval:
    """Return *length* years of the calendar."""
    start = datetime(year_, 1, 1, tzinfo=now.tzinfo)
    return Interval(start, step(start, length, "year"), "year")


def step(at: datetime, count: float, unit: str) -> datetime:
    """Return *at* moved by *count* units; the day is clipped to the month's length."""
    if unit == "season":
        count, unit = count * 3, "month"
    if unit == "year":
        count, unit = count * 12, "month"
    if unit != "month":
        return at + count * timedelta(**{f"{unit}s": 1})
    months = at.year * 12 + at.month - 1 + round(count)
    target_year, target_month = divmod(months, 12)
    last = monthrange(target_year, target_month + 1)[1]
    return at.replace(year=target_year, month=target_month + 1, day=min(at.day, last))


def steps_away(now: datetime, count: float, unit: str, *, vague: bool = False) -> Interval:
    """Return the unit-long stretch that starts *count* units from *now*; *vague* coarsens the precision."""
    start = step(now if unit in ("minute", "hour") else midnight(now), count, unit)
    precision = _PRECISION[unit]
    return Interval(start, step(start, 1, unit), _COARSER.get(precision, precision) if vague else precision)


def last_weekday(now: datetime, weekday: int, *, today_counts: bool = False) -> Interval:
    """Return the last such day of the week before today (or today, when that counts)."""
    back = (now.weekday() - weekday) % 7
    return day(now, -(back or (0 if today_counts else 7)))


def coming_weekday(now: datetime, weekday: int) -> Interval:
    """Return the next such day of the week, today included."""
    return day(now, (weekday - now.weekday()) % 7)


def weekday_of_week(now: datetime, weekday: int, offset: int) -> Interval:
    """Return a day of the week that lies *offset* calendar weeks away."""
    return day(now, weekday - now.weekday() + 7 * offset)


def season_near(now: datetime, first_month: int, offset: int) -> Interval:
    """Return the season around *now* (0: running, else the coming one), the last that ended (-1) or the next (+1)."""
    seasons = [season(now.year + shift, first_month, now) for shift in (-2, -1, 0, 1, 2)]
    ended = [one for one in seasons if one.end is not None and one.end <= now]
    if offset < 0:
        return ended[offset]
    running = [one for one in seasons if one.holds(now)]
    coming = [one for one in seasons if one.start is not None and one.start > now]
    return coming[offset - 1] if offset else (running or coming)[0]


def yearly(now: datetime, make: Callable[[int], Interval], tense: int) -> Interval:
    """Return the occurrence of a yearly period that is meant.

    By *tense*: the last begun (-1), the next that is not over (1), or the nearest (0).
    """
    occurrences = []
    for year_ in range(max(1, now.year - 8), min(9998, now.year + 8) + 1):
        try:
            occurrences.append(make(year_))
        except ValueError:
            continue  # 29 February
    begun = [one for one in occurrences if one.start is not None and one.start <= now]
    to_come = [one for one in occurrences if one.end is not None and one.end > now]
    if tense > 0 and to_come:
        return to_come[0]
    if tense < 0 and begun:
        return begun[-1]
    return min(occurrences, key=lambda one: abs((one.start or now) - now))  # no occurrence raises ValueError


def third(whole: Interval, which: int) -> Interval:
    """Return the first (0), middle (1) or last (2) third of *whole*, in whole days."""
    if whole.start is None or whole.end is None:
        return whole
    days = (whole.end - whole.start).days
    if days < 3:
        return whole
    start = whole.start + timedelta(days=days * which // 3)
    end = whole.end if which == 2 else whole.start + timedelta(days=days * (which + 1) // 3)
    return Interval(start, end, whole.precision)
