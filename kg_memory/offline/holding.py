"""Since when and until when a statement holds, by the dates of its own clause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from kg_memory.offline.clauses import dates_of
from kg_memory.offline.patterns import STATES
from kg_memory.offline.scene import LOOSE, Statement
from kg_memory.text.dates import DateMention, find_dates

_RANGE = re.compile(r"\s(?:to|until|till|through)\s|[–—~至到]|\band\b", re.IGNORECASE)
_WAS = re.compile(r"(?:used to|lived|worked|studied|was an?)\b|以前|之前|曾|原来|过去", re.IGNORECASE)
"""How the words begin that tell of a state of the past."""
_DENIED = re.compile(
    r"(?:\bnot|\brather than|\binstead of|而?不是|并非)\s?(?:in |on |at |from |since |during )?(?:the )?$",
    re.IGNORECASE,
)
_WEEK = timedelta(days=7)
_FOR = re.compile(
    r"\bfor (?P<number>the|this|a few|a couple of|a|one|two|three|four|five|six|\d{1,2}) (?:next |rest of the |whole )?"
    r"(?P<unit>days?|nights?|weeks?|weekends?|months?|spring|summer|fall|autumn|winter)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\bbefore\s(?:the\s)?$", re.IGNORECASE)
_AFTER = re.compile(r"\bafter\s(?:the\s)?$", re.IGNORECASE)
_BEFORE_CHINESE = re.compile("以前|之前")
_AFTER_CHINESE = re.compile("以后|之后")

Held = tuple[datetime | None, datetime | None]


def own_dates(
    statement: Statement, stated: Sequence[Statement], quote: str, dates: Sequence[DateMention]
) -> list[DateMention]:
    """Return those of the *dates* of its *quote* that stand in the clause of the statement's verb, and are not denied.

    "I moved in June, not in May": June.
    """
    dates = [one for one in dates if _DENIED.search(quote[max(0, one.start - 20) : one.start]) is None]
    if statement.verb is None or not dates:
        return []
    verbs = [one.verb for one in stated if one.verb is not None and one.predicate not in LOOSE]
    own, *all_ = ((start - statement.start, end - statement.start) for start, end in (statement.verb, *verbs))
    return dates_of(quote, own, all_, dates)


def held(statement: Statement, dates: Sequence[DateMention], content: str, at: datetime) -> Held:
    """Return since when and until when *statement*, said *at*, holds.

    A state without a date holds since it was said; an end without a date is when it was said; a plan
    is one since it was said, whatever its date; an event without a date has none. A state of the past
    held during its date, a passing one until the end of its own. What was never so has no date.
    """
    if statement.change in ("plans", "never"):
        return (at if statement.change == "plans" else None), None
    if statement.change == "passes":
        return _passing(dates, content[statement.start : statement.end], at)
    if not dates:
        return {"ends": (None, at), "is": (at, None)}.get(statement.change, (None, None))
    start, end = dates[0].interval.start, dates[0].interval.end
    place = (statement.start + dates[0].start, statement.start + dates[0].end)
    if start is None or (end is not None and _RANGE.search(content[slice(*place)])):
        return start, end  # "until 2019", "from 2016 to 2019"
    if start < at and statement.verb and statement.change != "happens" and _WAS.match(content, *statement.verb):
        return _past(content, place, start, end, at)
    begun = start <= at or statement.predicate in STATES
    return (None, start) if statement.change == "ends" else (start if begun else at, None)


def _passing(dates: Sequence[DateMention], words: str, at: datetime) -> Held:
    """Return since when and until when a passing state holds: for as long as *words* say, or for its dates."""
    length = _FOR.search(words)
    if length is not None:
        number, unit = length["number"].casefold(), length["unit"].casefold()
        fixed = number in ("the", "this")
        told = find_dates(f"this {unit}" if fixed else f"in {number} {unit}", at)
        until = (told[0].interval.end if fixed else told[0].interval.start) if told else None
        return at, until if until is not None and until > at else None
    for one in dates:
        start, end = one.interval.start, one.interval.end
        if end is not None and at - _WEEK < end <= at and start is None:
            end += _WEEK  # "until Friday" is the one to come
        if end is None or end > at:
            return start or at, end
    return at, None


def _past(content: str, place: tuple[int, int], start: datetime, end: datetime | None, at: datetime) -> Held:
    """Return when a past state held, whose date, at *place*, is from *start* to *end*: during it, before or after."""
    if end is None:
        return start, None  # "I've lived in Oslo since 2019"
    end = min(end, at)
    before = content[max(0, place[0] - 12) : place[0]]
    if _BEFORE.search(before) or _BEFORE_CHINESE.match(content, place[1]):
        return None, start
    if _AFTER.search(before) or _AFTER_CHINESE.match(content, place[1]):
        return (end if end < at else None), at
    return start, end
