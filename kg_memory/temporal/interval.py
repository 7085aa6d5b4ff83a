"""Periods and points of time, and functions that parse and format them in ISO 8601.

Periods include their start and exclude their end, ``[start, end)``, in UTC; None means no start or no end. The graph
stores a time as an integer, microseconds since the epoch. There, a missing start or end is `OPEN_START` or `OPEN_END`,
a time far away.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, date, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType

from kg_memory.models.graph import Precision

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# FalkorDB never uses an index for IS NULL, so an open start or end is stored as a far instant. JavaScript (states are
# edited in LangGraph Studio) represents these two numbers exactly, unlike most numbers of that size.
OPEN_START = -(10**18)
OPEN_END = 10**18
EVER = OPEN_START, OPEN_END + 1
"""The window that contains all instants."""
HOUR = 3600 * 1_000_000
SESSION_GAP = 6 * HOUR
"""The gap in microseconds that separates sessions: episodes of a thread further apart are not neighbours."""
DAY = 24 * HOUR
_HALF_DAY = timedelta(hours=12)
_SEASONS = ("winter", "spring", "summer", "autumn")
# Not the names of strftime, which depend on the machine's locale.
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
WIDTH: Mapping[Precision, int] = MappingProxyType(
    {
        "instant": 0,
        "day": DAY,
        "weekend": 2 * DAY,
        "week": 7 * DAY,
        "month": 31 * DAY,
        "season": 92 * DAY,
        "year": 366 * DAY,
        "about": 366 * DAY,
        "by": 0,
    }
)
"""The longest period in microseconds that a date of each precision may stand for: a month has up to 31 days."""
_ISO = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ]\s?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s?(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_SEASON = re.compile(r"(?P<year>\d{4})-?(?P<season>spring|summer|autumn|fall|winter)", re.ASCII | re.IGNORECASE)
SEASONS: Mapping[str, int] = MappingProxyType({"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12})
"""The first month of each season on the northern hemisphere."""
_VAGUE = re.compile(r"(?P<vague>about|around|circa|by|before)\s(?P<date>.+)", re.IGNORECASE)
_ISO_WEEK = re.compile(
    r"(?P<year>\d{4})-?W(?P<week>\d{2})(?:-(?:(?P<weekday>[1-7])|(?P<weekend>weekend)))?", re.ASCII | re.IGNORECASE
)
_MONTHS: Mapping[Precision, int] = MappingProxyType({"month": 1, "season": 3, "year": 12})


@dataclass(frozen=True, slots=True)
class Interval:
    """A period of time from `start` (included) to `end` (excluded); None means no start or no end.

    `precision`: how exact the date was from which the period was made: "month" for "in May".
    """

    start: datetime | None = None
    end: datetime | None = None
    precision: Precision = "instant"

    def holds(self, instant: datetime) -> bool:
        """Return whether the time *instant* lies in the interval."""
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)


def micros(instant: datetime | None, *, default: int) -> int:
    """Return *instant* as microseconds since the epoch, or *default* if it is None (no start, or no end)."""
    return default if instant is None else (instant - EPOCH) // timedelta(microseconds=1)


_LAST = micros(datetime.max.replace(tzinfo=UTC), default=0)


def instant(micros: int | None) -> datetime | None:
    """Convert microseconds since the epoch to a datetime in UTC; None, `OPEN_START` and `OPEN_END` give None."""
    return None if micros is None or micros in (OPEN_START, OPEN_END) else EPOCH + timedelta(microseconds=micros)


def split_local(moment: datetime) -> tuple[int, int]:
    """Return *moment* as ``(microseconds since the epoch, offset from UTC in minutes)``; a naive time counts as UTC.

    Errors: `OverflowError` if the time is outside the years 1 to 9999 in UTC.
    """
    offset = moment.utcoffset()
    aware = moment.replace(tzinfo=UTC) if offset is None else moment.astimezone(UTC)
    return micros(aware, default=0), (offset or timedelta()) // timedelta(minutes=1)


def local_time(at: int, offset: int) -> datetime:
    """Return *at*, microseconds since the epoch, as a datetime in the time zone *offset* minutes ahead of UTC."""
    moment = instant(at) or EPOCH
    try:
        return moment.astimezone(timezone(timedelta(minutes=offset))) if offset else moment
    except OverflowError:
        return moment  # on the first or last day of the calendar


def show_local(at: int | None, precision: Precision, statements: Sequence[Mapping[str, int]]) -> datetime | None:
    """Return *at*, the start or end of a fact, as a datetime in the time zone of a message that states the fact.

    *at*: microseconds since the epoch; None or an open end gives None. *statements*: the dates of these
    messages, ``{"at": microseconds, "offset": minutes from UTC}``. A date with a *precision* of a day or longer begins
    at midnight of its message's zone; so the first zone in which *at* is midnight is taken, or else UTC.
    """
    if at is None or instant(at) is None:
        return None
    if precision in ("instant", "by"):
        offsets = [one["offset"] for one in sorted(statements, key=lambda one: one["at"] != at)]
        return local_time(at, next(iter(offsets), 0))
    moments = (local_time(at, one["offset"]) for one in statements)
    return next((moment for moment in moments if moment == midnight(moment)), instant(at))


def midnight(moment: datetime) -> datetime:
    """Return the start of the day of *moment*: the same date and time zone at 00:00."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def round_to_midnight(moment: datetime) -> datetime:
    """Return the midnight nearest to *moment* in UTC: ``2024-05-13T22:00Z -> 2024-05-14T00:00Z``.

    This recovers the date of a day that began at midnight in another zone. If *moment* is midnight in its own zone, it
    is returned unchanged.
    """
    if moment == midnight(moment):
        return moment
    return midnight(min(moment.astimezone(UTC), datetime.max.replace(tzinfo=UTC) - _HALF_DAY) + _HALF_DAY)


def iso(moment: datetime) -> str:
    """Return *moment* as ISO 8601 text: "2024-05-14T09:30Z". Seconds are included only if they are not zero."""
    text = moment.isoformat(timespec="minutes" if moment.second == moment.microsecond == 0 else "auto")
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


def weekday_name(at: str) -> str | None:
    """Return the day of the week of *at*, a time in ISO 8601: ``"2024-05-14" -> "Tuesday"``; None if *at* is empty."""
    return WEEKDAYS[datetime.fromisoformat(at).weekday()] if at else None


def time_text(micros: int | None, precision: Precision = "instant", offset: int = 0) -> str | None:
    """Return a time as text, as exact as its *precision*: "2024-05", "about 2024", "by 2024-05-14".

    *micros*: microseconds since the epoch; an open start or end gives None. *offset*: the time zone, in minutes from
    UTC.
    """
    if micros is None or instant(micros) is None:
        return None
    moment = local_time(micros, offset)
    if precision == "instant":
        return iso(moment)
    if precision == "by":  # the time of day is often that of a message
        return f"by {moment.date()}"
    first = round_to_midnight(moment).date()
    match precision:
        case "week" | "weekend":
            year, week, _ = first.isocalendar()
            return f"{year:04}-W{week:02}{'-weekend' if precision == 'weekend' else ''}"
        case "season":
            return f"{first.year:04}-{_SEASONS[first.month % 12 // 3]}"
        case "about":
            exact = str(first) if first.day > 1 else str(first)[:7] if first.month > 1 else str(first)[:4]
            return f"about {exact}"
    return str(first)[: {"day": 10, "month": 7, "year": 4}[precision]]


def iso_or_text(at: object) -> object:
    """Return *at* as ISO 8601 text if it is a date or datetime; return any other value unchanged."""
    return at.isoformat() if isinstance(at, date) else at


def stretch_length(begin: int, precision: Precision) -> int:
    """Return the length, in microseconds, of the day, month or other unit (*precision*) that begins at *begin*.

    *begin* is in microseconds since the epoch. Months have their real length: 28 days for February 2023.
    """
    if precision not in _MONTHS:
        return WIDTH[precision]
    # A month that begins in another time zone begins at most 14 hours before, or 12 after, it does in UTC.
    first = EPOCH + timedelta(microseconds=min(begin + 14 * HOUR, _LAST))
    months = range(first.month - 1, first.month - 1 + _MONTHS[precision])
    return DAY * sum(monthrange(min(first.year + month // 12, MAXYEAR), month % 12 + 1)[1] for month in months)


def last_instant(begin: int, precision: Precision) -> int:
    """Return the last microsecond of the day, month or other unit (*precision*) that begins at *begin*.

    For "instant" the result is *begin*. Both times are microseconds since the epoch.
    """
    return begin + max(stretch_length(begin, precision) - 1, 0)


def add_units(at: datetime, count: float, unit: str) -> datetime:
    """Return *at* moved forward by *count* units (back if negative), such as "day", "month" or "season".

    If the new month lacks the day, its last day is used: 31 January plus a month is 28 or 29 February.
    """
    if unit == "weekend":
        count, unit = count * 2, "day"
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


# Texts in ISO 8601


def parse_instant(text: str | None) -> datetime | None:
    """Parse *text* in ISO 8601 as a datetime; return None for any other text. Without a time zone it is in UTC.

    A date alone gives its midnight, a month or year its first day: ``"2024-05" -> 2024-05-01T00:00Z``.
    """
    match = _ISO.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    try:
        moment = instant_of(match, UTC)
        return moment if moment.astimezone(UTC) else None  # an error outside of UTC's calendar
    except (ValueError, OverflowError):
        return None


def parse_period(text: str | None, zone: tzinfo = UTC) -> Interval | None:
    """Parse *text* as a period in UTC: "2019", "2019-05-03", "2019-W12", "2019-summer". None if it is not a date.

    A time of day gives one microsecond. "about 2019" and "by 2019-05" set the precision. *zone*: the time zone of a
    text that names none.
    """
    stripped = text.strip() if isinstance(text, str) else ""
    if match := _VAGUE.fullmatch(stripped):
        period = parse_period(match["date"], zone)
        if match["vague"].casefold() not in ("by", "before"):
            return period and replace(period, precision="about")
        if period is not None and period.precision != "instant":
            period = parse_period(match["date"], UTC)  # in another zone it could be shown as the day before
        return period and replace(period, precision="by")
    try:
        if match := _ISO_WEEK.fullmatch(stripped):
            return _parse_iso_week(match, zone)
        if match := _ISO_SEASON.fullmatch(stripped):
            return _unit_at(datetime(int(match["year"]), SEASONS[match["season"].casefold()], 1, tzinfo=zone), "season")
        match = _ISO.fullmatch(stripped)
        return None if match is None else _parse_iso(match, zone)
    except (ValueError, OverflowError):
        return None


def instant_period(at: datetime) -> Interval:
    """Return the interval of one microsecond that begins at *at*, an aware datetime.

    Errors: `OverflowError` if *at* is outside the years 1 to 9999 in UTC.
    """
    start = at.astimezone(UTC)
    return Interval(start, _step_or_none(start, 1, "microsecond"), "instant")


def _parse_iso(match: re.Match[str], zone: tzinfo) -> Interval:
    start = instant_of(match, zone)
    if match["hour"]:
        return instant_period(start)
    if match["day"]:
        return _unit_at(start, "day")
    return _unit_at(start, "month" if match["month"] else "year")


def _parse_iso_week(match: re.Match[str], zone: tzinfo) -> Interval:
    """Return the period in *match*: "2019-W12" is a week, "2019-W12-weekend" a weekend, "2019-W12-3" a Wednesday."""
    weekday = 6 if match["weekend"] else int(match["weekday"] or 1)
    day = datetime.fromisocalendar(int(match["year"]), int(match["week"]), weekday)
    return _unit_at(day.replace(tzinfo=zone), "day" if match["weekday"] else "weekend" if match["weekend"] else "week")


def _unit_at(start: datetime, unit: Precision) -> Interval:
    end = _step_or_none(start, 1, unit)
    return Interval(start.astimezone(UTC), end.astimezone(UTC) if end else None, unit)


def _step_or_none(start: datetime, count: int, unit: str) -> datetime | None:
    try:
        return add_units(start, count, unit)
    except (ValueError, OverflowError):  # after the year 9999
        return None


def instant_of(match: re.Match[str], zone: tzinfo) -> datetime:
    """Return the datetime in *match*, a match of the pattern `_ISO` with the groups `year`, `month` and so on.

    A missing month or day is 1, a missing time is midnight: "2019-05" gives 1 May 2019 at 00:00. *zone* is the time
    zone if the text names none.
    """
    parts = {name: text or "" for name, text in match.groupdict().items()}
    day = "-".join((parts["year"], (parts["month"] or "1").zfill(2), (parts["day"] or "1").zfill(2)))
    time = ":".join(((parts["hour"] or "0").zfill(2), parts["minute"] or "00", parts["second"] or "00"))
    written = f"{day}T{time}.{parts['fraction'] or '0'}{parts['zone'].upper().replace('UTC', 'Z')}"
    moment = datetime.fromisoformat(written)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
