"""Calendar periods as intervals, and steps between them.

The calendar functions take and return local times in the time zone of the reference; `find_dates` converts them to UTC.
They raise ``ValueError`` or ``OverflowError`` for a date that the calendar does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import Interval, add_units, midnight

Resolve = Callable[[re.Match[str], datetime], Interval | None]
Rule = tuple[re.Pattern[str], Resolve]
"""An expression, and the function that returns the time of a match, relative to the time of writing."""

_SOON = timedelta(days=92)

_PRECISION: dict[str, Precision] = {
    "minute": "instant",
    "hour": "instant",
    "day": "day",
    "week": "week",
    "month": "month",
    "season": "season",
    "year": "year",
}


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date in a text: its period in UTC, and the characters ``text[start:end]`` that name it."""

    start: int
    end: int
    interval: Interval


def add_rule(rules: list[Rule], pattern: str) -> Callable[[Resolve], Resolve]:
    """Return a decorator that adds *pattern* and the decorated function to *rules*."""

    def add(resolve: Resolve) -> Resolve:
        rules.append((re.compile(pattern, re.IGNORECASE), resolve))
        return resolve

    return add


def day(at: datetime, offset: int = 0) -> Interval:
    """Return the calendar day of *at*, or if *offset* is given, the day that many days later."""
    start = midnight(at) + timedelta(days=offset)
    return Interval(start, start + timedelta(days=1), "day")


def calendar_day(year: int, month: int, day_: int, now: datetime) -> Interval:
    """Return the given calendar day as a period, in the time zone of *now*."""
    return day(datetime(year, month, day_, tzinfo=now.tzinfo))


def week(at: datetime, offset: int = 0) -> Interval:
    """Return the week of *at*, from Monday to Sunday, or if *offset* is given, the week that many weeks later."""
    start = midnight(at) - timedelta(days=at.weekday()) + timedelta(weeks=offset)
    return Interval(start, start + timedelta(weeks=1), "week")


def weekend(at: datetime, offset: int = 0) -> Interval:
    """Return the Saturday and Sunday of the week of *at*, or with *offset*, of the week that many weeks later."""
    start = midnight(at) - timedelta(days=at.weekday()) + timedelta(weeks=offset, days=5)
    return Interval(start, start + timedelta(days=2), "weekend")


def month(year_: int, month_: int, now: datetime) -> Interval:
    """Return a calendar month in the time zone of *now*; the month number 13 means January of the next year."""
    year_, month_ = year_ + (month_ - 1) // 12, (month_ - 1) % 12 + 1
    start = datetime(year_, month_, 1, tzinfo=now.tzinfo)
    return Interval(start, add_units(start, 1, "month"), "month")


def easter(year_: int) -> tuple[int, int]:
    """Return the month and the day of Easter Sunday in the Gregorian calendar."""
    century, golden = year_ // 100, year_ % 19
    moon = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    moon -= moon // 28 * (1 - 29 // (moon + 1) * ((21 - golden) // 11))
    sunday = moon - (year_ + year_ // 4 + moon + 2 - century + century // 4) % 7
    month_ = 3 + (sunday + 40) // 44
    return month_, sunday + 28 - 31 * (month_ // 4)


def season(year_: int, first_month: int, now: datetime) -> Interval:
    """Return the three months that begin with *first_month* of *year_*, in the time zone of *now*."""
    start = datetime(year_, first_month, 1, tzinfo=now.tzinfo)
    return Interval(start, add_units(start, 3, "month"), "season")


def year(year_: int, now: datetime, length: int = 1) -> Interval:
    """Return the period of *length* calendar years that begins with *year_*, in the time zone of *now*."""
    start = datetime(year_, 1, 1, tzinfo=now.tzinfo)
    return Interval(start, add_units(start, length, "year"), "year")


def steps_away(now: datetime, count: float, unit: str, *, vague: bool = False) -> Interval:
    """Return a period that begins *count* units after *now* and lasts one *unit* ("minute" to "year")."""
    start = add_units(now if unit in ("minute", "hour") else midnight(now), count, unit)
    if vague and unit in ("month", "year"):
        start = start.replace(month=1, day=1) if unit == "year" else start.replace(day=1)
    return Interval(start, add_units(start, 1, unit), "about" if vague else _PRECISION[unit])


def last_weekday(now: datetime, weekday: int, *, today_counts: bool = False) -> Interval:
    """Return the last day before today that is *weekday* (0 is Monday); with *today_counts* it may be today."""
    back = (now.weekday() - weekday) % 7
    return day(now, -(back or (0 if today_counts else 7)))


def next_weekday(now: datetime, weekday: int) -> Interval:
    """Return the next day that is the given *weekday* (0 is Monday); it may be today."""
    return day(now, (weekday - now.weekday()) % 7)


def weekday_of_week(now: datetime, weekday: int, offset: int) -> Interval:
    """Return the given *weekday* (0 is Monday) in the week of *now*, or in the week *offset* weeks later."""
    return day(now, weekday - now.weekday() + 7 * offset)


def season_near(now: datetime, first_month: int, offset: int) -> Interval:
    """Return the last, current or next (*offset*: -1, 0, 1) season that begins in *first_month* (6 for summer)."""
    seasons = [season(now.year + shift, first_month, now) for shift in (-2, -1, 0, 1, 2)]
    ended = [period for period in seasons if period.end is not None and period.end <= now]
    if offset < 0:
        return ended[offset]
    running = [period for period in seasons if period.holds(now)]
    coming = [period for period in seasons if period.start is not None and period.start > now]
    return coming[offset - 1] if offset else (running or coming)[0]


def yearly(now: datetime, make: Callable[[int], Interval], tense: int) -> Interval:
    """Return the last (*tense* -1), nearest (0) or next (1) occurrence of a yearly date, such as May."""
    occurrences = []
    for year_ in range(max(1, now.year - 8), min(9998, now.year + 8) + 1):
        try:
            occurrences.append(make(year_))
        except ValueError:
            continue  # 29 February
    begun = [period for period in occurrences if period.start is not None and period.start <= now]
    to_come = [period for period in occurrences if period.end is not None and period.end > now]
    if tense > 0 and to_come:
        return to_come[0]
    if tense < 0 and begun:
        return begun[-1]
    return min(occurrences, key=lambda period: abs((period.start or now) - now))  # no occurrence raises ValueError


def started(now: datetime, make: Callable[[int], Interval]) -> Interval:
    """Return the last occurrence of a yearly date, or the next one if it begins within 92 days of *now*."""
    coming = yearly(now, make, 1)
    return coming if coming.start is not None and coming.start - now < _SOON else yearly(now, make, -1)


def third(whole: Interval, which: int) -> Interval:
    """Return a third of the period *whole*: the first (0), the middle (1) or the last (2), as for "late May"."""
    if whole.start is None or whole.end is None:
        return whole
    days = (whole.end - whole.start).days
    if days < 3:
        return whole
    start = whole.start + timedelta(days=days * which // 3)
    end = whole.end if which == 2 else whole.start + timedelta(days=days * (which + 1) // 3)
    return Interval(start, end, whole.precision)


# The words around an English date that decide whether its last or its next occurrence is meant.

AHEAD = re.compile(
    r"\b(?:will|'ll|won't|going to|gonna|plan(?:s|ning|ned)?|next|coming|upcoming|soon|hop(?:e|es|ing)|"
    r"want(?:s)? to|looking forward|"
    r"can't wait|deadline|due|scheduled|start(?:s|ing)|begins|leaves|opens|expect(?:s|ing)?|shall|let's|intend|"
    r"(?:is|are|it's|that's) (?:on|in|at|for)|by)\b|"
    r"(?:'m|'re|\bam|\bare|\bis) (?:going|coming|leaving|flying|meeting|visiting|having|getting|moving|travell?ing)\b",
    re.IGNORECASE,
)
BACK = re.compile(
    r"\b(?:\w{2,}ed|was|were|did|went|had|took|made|got|lost|won|met|saw|bought|began|came|left|read|ran|wrote|spent|"
    r"gave|found|told|said|became|built|sold|been|gone|done|seen|had)\b",
    re.IGNORECASE,
)
PERFECT = re.compile(r"(?:\b(?:have|has|been|am|is|are|now)|'(?:ve|s|m|re))\b", re.IGNORECASE)
DEADLINE = re.compile(r"\b(?:by|due|until|till) (?:the |on )?$|\b(?:deadline|targets?)\b[^.!?\n]{0,30}$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;\n]")
_CORRECTS = re.compile(
    r"\b(?:I meant|it was)\b|"
    r"\bnot (?:in |on )?(?:the )?(?:\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b)",
    re.IGNORECASE,
)
"""Words of a correction, which is about the past unless its words say otherwise: "in April, not March"."""
_SINCE = re.compile(r"\b(?P<word>since|from) (?:the |about |around |early |late |mid[- ])*$", re.IGNORECASE)
_RANGE = re.compile(r"\s?(?:to\b|until|till|through|[-–—~])", re.IGNORECASE)


def sentence_around(match: re.Match[str]) -> str:
    """Return the words of the sentence before and after *match*: at most 80 characters before it and 40 after it."""
    text, start, end = match.string, match.start(), match.end()
    before = _SENTENCE_END.split(text[max(0, start - 80) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + 40], maxsplit=1)[0]
    return f"{before} {after}"


def tense_of(match: re.Match[str]) -> int:
    """Return -1 if the sentence around *match*, a date, is about the past, 1 if about the future, else 0."""
    if DEADLINE.search(match.string[max(0, match.start() - 40) : match.start()]):
        return 0  # a deadline is the nearest date: "we finished the plan, and the first version is due by May 3"
    sentence = sentence_around(match).replace("’", "'")
    if BACK.search(sentence):
        return -1
    if AHEAD.search(sentence):
        return 1
    return -1 if _CORRECTS.search(f"{sentence} {match[0]}") else 0


def yearly_by_words(match: re.Match[str], now: datetime, make: Callable[[int], Interval]) -> Interval:
    """Return the date named by *match*, such as "May", in the year that fits the tense of its sentence."""
    start = match.start("span" if "span" in match.re.groupindex else 0)
    found = _SINCE.search(match.string[max(0, start - 40) : start])
    word, which = found["word"].casefold() if found else "", tense_of(match)
    if word == "since":
        which = -1  # even if the sentence has a plan: "I work there since May, and will move"
    elif word == "from" and which == 0 and not _RANGE.match(match.string, match.end()):
        return started(now, make)
    return yearly(now, make, which)
