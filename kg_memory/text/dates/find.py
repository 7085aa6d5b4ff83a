"""Find the dates in a text and resolve them relative to the time of writing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from kg_memory.temporal.interval import Interval, add_units
from kg_memory.text.dates import chinese, english, periods
from kg_memory.text.dates.periods import DateMention, Rule
from kg_memory.text.tokenise import find_all

_MAYBE_ENGLISH = re.compile(
    r"\d|day|night|week|month|year|spring|summer|fall|autumn|winter|january|february|march|april|may|june|july|august|"
    r"september|october|november|december|tomorrow|this (?:morning|afternoon|evening)|ago\b|christmas|xmas|easter|"
    r"halloween",
    re.IGNORECASE,
)
# The characters before a date that are searched for words that change it ("two weeks before").
_BEFORE = 60

_THIRD = re.compile(
    r"\b(?:in\s|at\s)?(?P<which>early|mid|late|(?:the\s)?(?:beginning|start|middle|end) of)[\s-](?:in\s)?(?:the\s)?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|circa|sometime in)\s(?:the\s)?|大概|大约|差不多|大致|约)(?:在|是)?$",
    re.IGNORECASE,
)
_BEGINS_ABOUT = re.compile(r"(?:(?:for|since)\s)?(?:about|around)\b|大概|大约", re.IGNORECASE)
_NEARLY = re.compile("左右|前后|上下")
_SINCE = re.compile(r"(?:\b(?:ever\s)?since\s(?:the\s)?|自从?|从)$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|til|up to)\s(?:the\s)?$", re.IGNORECASE)
_ONWARDS = re.compile(r"(?:以来|开始|起|至今|到现在)")
_YEAR = re.compile(r"\d{4}")
_EVER_SINCE = re.compile("以来|至今")
_BETWEEN = re.compile(r"\s{0,2}(?:to|until|till|through|and|[-–—~]|至|到)\s{0,2}(?:the\s)?", re.IGNORECASE)
_FROM = re.compile(r"(?:\b(?:from|between)\s(?:the\s)?|从|自)$", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"\b(?:(?P<n>{english.NUMBER})\s)?(?:the\s)?(?P<unit>{english.UNIT}|weekend|night|"
    rf"{english.WEEKDAY})s?\s(?P<side>before|after)\s(?:the\s)?$",
    re.IGNORECASE,
)
_WEEKDAYS = re.compile(english.WEEKDAY)
_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}


def find_dates(text: str, reference: datetime) -> list[DateMention]:
    """Return the dates in *text*, each with its period in UTC: "last week" is the week before *reference*."""
    now = reference if reference.tzinfo else reference.replace(tzinfo=UTC)
    rules: list[Rule] = []
    if any(find_all(_MAYBE_ENGLISH, text)):
        rules += english.RULES
    if any(find_all(chinese.HAN, text)):
        rules += chinese.RULES
    mentions = _without_overlaps(_match_rules(text, now, rules))
    with suppress(ValueError, OverflowError):  # the joined period leaves the calendar
        mentions = _join_ranges(_without_overlaps([_modify(text, mention) for mention in mentions]), text)
    return [mention for mention in map(_in_utc, mentions) if mention is not None]


def _match_rules(text: str, now: datetime, rules: Iterable[Rule]) -> list[DateMention]:
    mentions = []
    for pattern, resolve in rules:
        for match in find_all(pattern, text):
            try:
                interval = resolve(match, now)
            except (ValueError, OverflowError, IndexError):
                continue  # the calendar has no such day, or no such year
            if interval is not None:
                start, end = match.span("span") if "span" in pattern.groupindex else match.span()
                mentions.append(DateMention(start, end, interval))
    return mentions


def _without_overlaps(mentions: list[DateMention]) -> list[DateMention]:
    """Return *mentions* in the order of the text; of two that overlap, only the longer (of equal length, the first)."""
    kept: list[DateMention] = []
    taken: set[int] = set()
    for mention in sorted(mentions, key=lambda mention: mention.start - mention.end):
        if taken.isdisjoint(range(mention.start, mention.end)):
            taken.update(range(mention.start, mention.end))
            kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


def _modify(text: str, mention: DateMention) -> DateMention:
    try:
        return _apply_modifiers(text, mention)
    except (ValueError, OverflowError):
        return mention


def _apply_modifiers(text: str, mention: DateMention) -> DateMention:
    """Return *mention* as changed by words beside it: "early May", "since May", "a week before May".

    Errors: `ValueError` or `OverflowError` if the calendar does not have the changed date.
    """
    interval, start = mention.interval, mention.start
    before = text[max(0, start - _BEFORE) : start]
    if match := _THIRD.search(before):
        which = match["which"].casefold().removeprefix("the ").split()[0]
        interval, before = periods.third(interval, _THIRDS[which]), before[: match.start()]
    if match := _RELATIVE.search(before):
        interval, before = _shift(match, interval), before[: match.start()]
    end = mention.end
    if match := _ABOUT.search(before):
        interval, before = replace(interval, precision="about"), before[: match.start()]
    elif tail := _NEARLY.match(text, end):
        interval, end = replace(interval, precision="about"), tail.end()
    elif _BEGINS_ABOUT.match(text, mention.start):
        interval = replace(interval, precision="about")
    if match := _SINCE.search(before):
        tail = _ONWARDS.match(text, end)
        if match[0] not in ("从", "自") or tail:
            interval = Interval(interval.start, None, interval.precision)
            before, end = before[: match.start()], tail.end() if tail else end
    elif match := _UNTIL.search(before):
        interval = Interval(None, interval.start, interval.precision)
        before = before[: match.start()]
    elif (tail := _EVER_SINCE.match(text, end)) is not None:
        interval, end = Interval(interval.start, None, interval.precision), tail.end()
    return DateMention(max(0, start - _BEFORE) + len(before), end, interval)


def _shift(match: re.Match[str], of: Interval) -> Interval:
    """Return the period that *match*, such as "two weeks before", means together with the date *of*, such as Easter."""
    if of.start is None or of.end is None:
        return of
    ahead = match["side"].casefold() == "after"
    name = match["unit"].casefold().replace("night", "day")
    if _WEEKDAYS.fullmatch(name):
        weekday = english.weekday_number(name)
        return periods.next_weekday(of.end, weekday) if ahead else periods.last_weekday(of.start, weekday)
    if name == "weekend":
        return periods.weekend(of.end, 0) if ahead else periods.weekend(of.start, 0 if of.start.weekday() == 6 else -1)
    count, vague = english.number(match["n"]) if match["n"] else (1.0, False)
    name, count = english.unit(name, count)
    if not ahead:
        return periods.steps_away(of.start, -count, name, vague=vague)
    return periods.steps_away(of.start if match["n"] else of.end, count if match["n"] else 0, name, vague=vague)


def _join_ranges(mentions: list[DateMention], text: str) -> list[DateMention]:
    """Return *mentions*, the dates in *text*, with two that are one period joined: "from May to July", "May - July"."""
    joined: list[DateMention] = []
    for mention in mentions:
        first = joined[-1] if joined else None
        whole = _range(first, mention, text) if first is not None and _is_range(first, mention, text) else None
        if first is None or whole is None:
            joined.append(mention)
        else:
            joined[-1] = DateMention(first.start, mention.end, whole)
    return joined


def _is_range(first: DateMention, second: DateMention, text: str) -> bool:
    """Return whether the words around the dates *first* and *second* make them one period: "from May to July"."""
    gap = text[first.end : second.start]
    is_until = second.interval.start is None and not gap.strip()  # "until 2025" is one date
    if len(gap) > 14 or not (is_until or _BETWEEN.fullmatch(gap)):
        return False
    opened = _FROM.search(text[max(0, first.start - 12) : first.start]) is not None
    return opened or gap.strip().casefold() not in ("and", "to", "")


def _range(first: DateMention, second: DateMention, text: str) -> Interval | None:
    start, end = first.interval.start, second.interval.end
    if start is None or end is None:
        return None
    if not _YEAR.search(text, first.start, first.end) and _YEAR.search(text, second.start, second.end):
        # "between May and July 2022": the year belongs to both.
        start = add_units(start, end.year - start.year, "year")
        start = start if start < end else add_units(start, -1, "year")
    return Interval(start, end, second.interval.precision) if start < end else None


def _in_utc(mention: DateMention) -> DateMention | None:
    interval = mention.interval
    try:
        start = interval.start.astimezone(UTC) if interval.start else None
        end = interval.end.astimezone(UTC) if interval.end else None
    except (ValueError, OverflowError):
        return None
    if start is not None and end is not None and not start < end:
        return None
    return replace(mention, interval=Interval(start, end, interval.precision))
