"""Checks whether the date of an extracted fact can be derived from the texts from which the fact was extracted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kg_memory.temporal.interval import parse_period
from kg_memory.text.dates import DateMention, chinese, english

_NOW = timedelta(days=1, hours=12)
_DAY = timedelta(days=1)
_FIGURES = re.compile(r"\d+")
_VAGUE = re.compile(r"about|around|circa|by|before", re.IGNORECASE)
_MONTH_WORD = re.compile(rf"\b(?:{'|'.join(english.SHORT_MONTHS)})[a-z]*\b", re.IGNORECASE)
_MONTH_NUMBER = re.compile(r"(?<!\d)(\d{1,2})月|(?<![\d/.])(\d{1,2})[/.](\d{1,2})(?![\d])")
_WEEKDAY_WORD = re.compile(rf"\b{english.SHORT_WEEKDAY}[a-z]*\b|(?:星期|周|礼拜)([一二三四五六日天])", re.IGNORECASE)
_FEASTS = (
    (re.compile(r"\bx-?mas|christmas|圣诞|boxing day|advent|holidays", re.IGNORECASE), (11, 12, 1)),
    (re.compile(r"\beaster|清明|lent\b|passover", re.IGNORECASE), (3, 4)),
    (re.compile(r"thanksgiving|black friday", re.IGNORECASE), (11,)),
    (re.compile(r"halloween|国庆|十一|中秋", re.IGNORECASE), (9, 10, 11)),
    (re.compile(r"五一|劳动节|may day", re.IGNORECASE), (4, 5)),
    (re.compile(r"春节|过年|元旦|除夕|new year", re.IGNORECASE), (12, 1, 2)),
    (re.compile(r"端午|ramadan|eid\b|diwali|hanukkah", re.IGNORECASE), tuple(range(1, 13))),
)
_QUARTER = re.compile(r"\bQ([1-4])\b", re.IGNORECASE)
_UNCLEAR = re.compile(
    r"\b(?:recently|lately|kid|child|childhood|teen|young|forever|ages|decades?|(?:first|second|other) weekend|soon|"
    r"school|semester|term|birthday|years?|months?|weeks?)\b|最近|小时候|从小|大学|前几年|好久|刚|学期|生日|年|周",
    re.IGNORECASE,
)
"""Words for times that only further knowledge turns into a date."""


class Times(NamedTuple):
    """A text from which the date of a fact may be derived, with the dates ("mentions") and numbers in it."""

    text: str
    mentions: Sequence[DateMention]
    numbers: Collection[str]


def is_time_told(time: str | None, at: datetime, sources: Iterable[Times]) -> bool:
    """Return whether *time*, the date of a fact (ISO 8601), can be derived from one of *sources*.

    True also for None, a date close to *at*, and an invalid date.
    """
    period = parse_period(time, at.tzinfo) if time and at.tzinfo else None
    if time is None or period is None or period.start is None:
        return True
    start, end = period.start, period.end or period.start
    if start - at <= _NOW and at - end <= _NOW:
        return True
    return any(_tells(source, time.strip(), start, end, at) for source in sources)


def _tells(source: Times, time: str, start: datetime, end: datetime, at: datetime) -> bool:
    """Return whether the date *time* can be derived from the text *source*, written at *at*."""
    is_vague = _VAGUE.match(time) is not None
    slack = max(abs(at - start) / 2, 7 * _DAY) if is_vague else _DAY
    if any(_meets(mention, start, end, slack) for mention in source.mentions):
        return True
    if is_vague and _UNCLEAR.search(source.text):
        return True
    figures = [figure.lstrip("0") for figure in _FIGURES.findall(time.rsplit(maxsplit=1)[-1].partition("T")[0])]
    local, last = _to_local(start, at), _to_local(end, at)
    if _is_named(local, last, at, source.text):
        return True
    months = set(_named_months(source.text))
    is_other_month = len(figures) > 1 and bool(months) and local.month - 1 not in months
    return not is_other_month and _is_worked_out(figures, local, at, source)


def _to_local(moment: datetime, at: datetime) -> datetime:
    try:
        return moment.astimezone(at.tzinfo)
    except OverflowError:
        return moment


def _meets(mention: DateMention, start: datetime, end: datetime, slack: timedelta) -> bool:
    first, last = mention.interval.start or mention.interval.end, mention.interval.end or mention.interval.start
    return first is not None and last is not None and first - end <= slack and start - last <= slack


def _is_worked_out(figures: list[str], local: datetime, at: datetime, source: Times) -> bool:
    """Return whether a number in *source* gives a date, as in "on the 5th" or "3 years ago"."""
    distances = {str(abs(at.year - local.year)), str(abs((at.year - local.year) * 12 + at.month - local.month))}
    has_figure = bool(figures) and len(figures) != 2 and figures[-1] in source.numbers
    return has_figure or (len(figures) < 3 and not (distances - {"0"}).isdisjoint(source.numbers))


def _is_named(start: datetime, end: datetime, at: datetime, text: str) -> bool:
    """Return whether *text*, written at the time *at*, names the period from *start* to *end*."""
    months = set(_months(start, end))
    if {month for month in range(12) if month + 1 in months} & set(_named_months(text)) and end - start > 2 * _DAY:
        return True
    if abs(start - at) <= 40 * _DAY and end - start <= 2 * _DAY and start.weekday() in _named_weekdays(text):
        return True
    if any(feast.search(text) and months & set(when) for feast, when in _FEASTS):
        return True
    return any((int(quarter[1]) * 3 - 3) < start.month <= int(quarter[1]) * 3 for quarter in _QUARTER.finditer(text))


def _months(start: datetime, end: datetime) -> Iterator[int]:
    yield start.month
    if end - start < 100 * _DAY:
        yield from range(start.month, max(end - _DAY, start).month + 1)


def _named_months(text: str) -> Iterator[int]:
    yield from (english.month_number(match[0]) - 1 for match in _MONTH_WORD.finditer(text))
    yield from (int(month) - 1 for match in _MONTH_NUMBER.finditer(text) for month in match.groups() if month)


def _named_weekdays(text: str) -> set[int]:
    return {
        chinese.weekday_number(match[1]) if match[1] else english.weekday_number(match[0])
        for match in _WEEKDAY_WORD.finditer(text)
    }
