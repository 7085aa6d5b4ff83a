"""Dates as exactly as they are known, purely: in words for a prompt, and in figures for a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kg_memory.models.graph import Fact, Precision

_LAST_NOON = datetime(9999, 12, 31, 12, tzinfo=UTC)
_SEASONS = ("winter", "spring", "summer", "autumn")
# Not strftime's, which speak the machine's language.
_MONTHS = ("January February March April May June July August September October November December").split()
_DAY = timedelta(days=1)


# In words


def in_words(fact: Fact, now: datetime | None = None) -> str:
    """Return when a fact was so: "since May 2023", "from 2021 to 7 May 2023", "on 7 May 2023", "known by 4 March 2023".

    What has ended by *now* is marked as no longer so, but not what takes no longer than a day: that is an event.
    """
    when = _event(fact) or _period(
        fact, over=fact.invalid_at is not None and now is not None and fact.invalid_at <= now
    )
    return when if fact.reviewed else f"{when}, not reviewed"


def bounds(fact: Fact) -> tuple[str, str]:
    """Return the two ends of when a fact was so: "May 2023" and "present"."""
    known = f"by {date(fact.known_from)}" if fact.known_from else "date unknown"
    return (
        date(fact.valid_at, fact.precision) if fact.valid_at else known,
        date(fact.invalid_at, fact.end_precision) if fact.invalid_at else "present",
    )


def date(moment: datetime, precision: Precision = "instant") -> str:
    """Return a date in words, as exactly as it is known, with the time of day where it has one."""
    moment = _settled(moment, precision)
    if precision == "season":
        return _season(moment)
    if precision == "year":
        return str(moment.year)
    month = f"{_MONTHS[moment.month - 1]} {moment.year}"
    if precision == "month":
        return month
    return f"the week of {moment.day} {month}" if precision == "week" else f"{moment.day} {month}{_hour(moment)}"


def _event(fact: Fact) -> str:
    """Return when it takes place, if it is within a day; else ""."""
    start, end = fact.valid_at, fact.invalid_at
    if not start or not end or not {fact.precision, fact.end_precision} <= {"instant", "day"} or end - start > _DAY:
        return ""
    if _is_day(start, end):
        return f"on {date(start)}"
    within = start.date() == end.date()
    return f"on {date(midnight(start))} from {start:%H:%M} to {end:%H:%M}" if within else ""


def _period(fact: Fact, *, over: bool) -> str:
    """Return from when to when it was so, as far as that is known."""
    start, end = bounds(fact)
    mark = "no longer so: " if over else ""
    if fact.valid_at:
        return f"{mark}from {start} to {end}" if fact.invalid_at else f"since {start}"
    known = f"known {start}" if fact.known_from else ""
    until = (f"ended {end}" if over else f"until {end}") if fact.invalid_at else ""
    return f"{mark}{', '.join(filter(None, (known, until))) or start}"


# In figures


def held(fact: Fact) -> str:
    """Return when a fact was so, in figures: "2023-05 - now"; a whole day is that day."""
    start, end = fact.valid_at, fact.invalid_at
    if start and end and {fact.precision, fact.end_precision} <= {"instant", "day"} and _is_day(start, end):
        return day(start)
    known = f"by {day(fact.known_from)}" if fact.known_from else "date unknown"
    begin = coarse(start, fact.precision) if start else known
    until = coarse(end, fact.end_precision) if end else "now"
    return f"{begin} - {until}" + ("" if fact.reviewed else ", not reviewed")


def coarse(moment: datetime, precision: Precision) -> str:
    """Return a date in figures, only as exactly as it is known."""
    moment = _settled(moment, precision)
    if precision in ("instant", "day", "week"):
        return f"week of {day(moment)}" if precision == "week" else day(moment)
    if precision == "season":
        return _season(moment)
    return f"{moment:%Y-%m}" if precision == "month" else f"{moment:%Y}"


def day(moment: datetime) -> str:
    """Return a date in figures, with the time of day where it has one."""
    return f"{moment:%Y-%m-%d}" if moment == midnight(moment) else f"{moment:%Y-%m-%d %H:%M}"


def midnight(moment: datetime) -> datetime:
    """Return when the day of *moment* began."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _settled(moment: datetime, precision: Precision) -> datetime:
    """Return the midnight that is meant: a year, say, may have begun in another time zone."""
    if precision == "instant" or moment >= _LAST_NOON:
        return moment
    return midnight(moment + timedelta(hours=12))


def _is_day(start: datetime, end: datetime) -> bool:
    return start == midnight(start) and end - start == _DAY


def _season(moment: datetime) -> str:
    return f"{_SEASONS[(moment.month % 12) // 3]} {moment.year}"


def _hour(moment: datetime) -> str:
    return "" if moment == midnight(moment) else f" {moment:%H:%M}"
