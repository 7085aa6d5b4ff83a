"""The instants that a language model writes, and the ISO dates in texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import periods

_INSTANT = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ]\s?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s?(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_WEEK = re.compile(r"(?P<year>\d{4})-?W(?P<week>\d{2})(?:-(?P<weekday>[1-7]))?", re.ASCII | re.IGNORECASE)


def parse_instant(text: str | None) -> datetime | None:
    """Return the instant that *text* names in ISO 8601, in UTC, or ``None`` when it names none.

    Without a zone it is UTC, a date alone is its midnight, a month or a year alone its first day.
    """
    match = _INSTANT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    try:
        return instant_of(match, UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_period(text: str | None, zone: tzinfo = UTC) -> Interval | None:
    """Return the period that *text* names in ISO 8601, in UTC, as precisely as it is written, or ``None`` for no date.

    "2019", "2019-05", "2019-W12" and "2019-05-03" are a year, a month, a week and a day; with a time of day, also
    midnight, it is an instant, which lasts a microsecond. The end is open where the calendar ends. What has no zone is
    in *zone*.
    """
    stripped = text.strip() if isinstance(text, str) else ""
    try:
        if match := _WEEK.fullmatch(stripped):
            return _week(match, zone)
        match = _INSTANT.fullmatch(stripped)
        return None if match is None else _period(match, zone)
    except (ValueError, OverflowError):
        return None


def instant_period(at: datetime) -> Interval:
    """Return the microsecond that begins at *at*, which is aware; ``OverflowError`` outside the calendar."""
    start = at.astimezone(UTC)
    return Interval(start, _after(start, 1, "microsecond"), "instant")


def _period(match: re.Match[str], zone: tzinfo) -> Interval:
    start = instant_of(match, zone)
    if match["hour"]:
        return instant_period(start)
    if match["day"]:
        return _whole(start, "day")
    return _whole(start, "month" if match["month"] else "year")


def _week(match: re.Match[str], zone: tzinfo) -> Interval:
    day = datetime.fromisocalendar(int(match["year"]), int(match["week"]), int(match["weekday"] or 1))
    return _whole(day.replace(tzinfo=zone), "day" if match["weekday"] else "week")


def _whole(start: datetime, unit: Precision) -> Interval:
    end = _after(start, 1, unit)
    return Interval(start.astimezone(UTC), end.astimezone(UTC) if end else None, unit)


def _after(start: datetime, count: int, unit: str) -> datetime | None:
    """Return the instant so long after *start*, or ``None`` where the calendar ends before it."""
    try:
        return periods.step(start, count, unit)
    except (ValueError, OverflowError):
        return None


def instant_of(match: re.Match[str], zone: tzinfo) -> datetime:
    """Return the aware instant of a match that has the groups of `_INSTANT`."""
    parts = match.groupdict()
    fraction = (parts["fraction"] or "")[:6].ljust(6, "0")
    return datetime(
        int(parts["year"]),
        int(parts["month"] or 1),
        int(parts["day"] or 1),
        int(parts["hour"] or 0),
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        int(fraction),
        tzinfo=_zone(parts["zone"], zone),
    )


def _zone(written: str | None, default: tzinfo) -> tzinfo:
    if written is None:
        return default
    if written.upper() in ("Z", "UTC"):
        return UTC
    digits = written[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if written[0] == "-" else offset)
