"""The times that questions ask about: a time given by itself, and the times inside a question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import windows
from kg_memory.text.dates.events import AskedEvent, find_events
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.instants import instant_period, parse_period
from kg_memory.text.dates.questions import asked_part

_LONGEST_TIME = 100
_LONGEST_QUESTION = 1000
"""In characters. A longer one is a pasted text, and which of its times it asks about is not clear."""

_NOW = re.compile(
    r"(?:right\s)?now|currently|at\s(?:the\smoment|present)|present|the\spresent|these\sdays|nowadays|"
    r"现在|此刻|目前|当前|如今|眼下",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(r"(?:the\s)?[A-Za-z]+\.?")
_SMALL = re.compile(
    r"(?:\s|[,.:;!?()，。、]|\b(?:in|on|at|as|of|since|from|the|by|during|for|around|about|between|back|over|"
    r"within|time|year|month|week|day|morning|afternoon|evening|night)\b|在|于|自从|从|自|到|截至|截止|的时候|时候|的|时|那时|期间|左右|早上|上午|下午|晚上|里|中|份|那天|那年)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TimeWords:
    """The characters ``question[start:end]``, which are *words*, and the time that they ask about.

    It is a window of valid time, ``[interval.start, interval.end)`` with ``None`` for an open side, or an event in the
    graph that gives such a window; the other of the two is ``None``.
    """

    words: str
    start: int
    end: int
    interval: Interval | None = None
    event: AskedEvent | None = None


def parse_when(given: datetime | str, now: datetime) -> Interval:
    """Return the period that *given* names: an instant, ISO 8601 text, or words in English or Chinese ("last March").

    Words are relative to *now*; "since 2016" and "until 2019" have an open side. A time without a zone is in UTC.
    Raises `ValueError` for what names no time, with a sentence for people.
    """
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    if isinstance(given, datetime):
        return _instant(given)
    text = _checked(given)
    if _NOW.fullmatch(text):
        return _instant(here)
    if (written := parse_period(text)) is not None:
        return written
    # A name of a month, a season or a weekday alone is a date only where nothing else is said.
    for lead in ("", "in ", "in the ") if _ONE_WORD.fullmatch(text) else ("",):
        period = _only_date(lead + text, here)
        if period is not None:
            return period
    raise ValueError(_not_understood(text))


def _instant(at: datetime) -> Interval:
    try:
        return instant_period(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError(f"{at.isoformat()} lies outside the calendar of UTC: give a time inside it.") from None


def _checked(given: object) -> str:
    text = str(given).strip()
    if not text:
        raise ValueError('The time is empty: give a date such as "2019-05-03", or words such as "last March".')
    if len(text) > _LONGEST_TIME:
        raise ValueError(f"The time has {len(text)} characters, and {_LONGEST_TIME} are the most: give only the time.")
    if any(unicodedata.category(character).startswith("C") for character in text):
        raise ValueError("The time has control characters in it: give plain text.")
    return " ".join(text.split())


def _only_date(text: str, now: datetime) -> Interval | None:
    """Return the date that is all of *text* but small words."""
    found = find_dates(text, now)
    if len(found) != 1:
        return None
    around = text[: found[0].start] + " " + text[found[0].end :]
    return found[0].interval if _SMALL.fullmatch(around) else None


def _not_understood(text: str) -> str:
    shown = text if len(text) <= 40 else text[:39] + "…"
    return (
        f'"{shown}" is no time that is understood: give a date such as "2019-05-03", or words such as "last March" '
        'or "上个月".'
    )


def asked_times(question: str, now: datetime) -> list[TimeWords]:
    """Return the times that *question* asks about, in order, as far as they are clear; relative ones count from *now*.

    Nothing is found where the words may mean something else, for a wrong window hides the right answer: in questions
    for a time ("when did ..."), about what was said, about now, and where several times compete. Never raises.
    """
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    part = asked_part(question) if len(question) <= _LONGEST_QUESTION else None
    if part is None:
        return []
    offset, text = part
    return [
        TimeWords(question[offset + start : offset + end], offset + start, offset + end, interval, event)
        for start, end, interval, event in sorted(_times(text, here), key=lambda one: one[:2])
    ]


def _times(text: str, now: datetime) -> Iterator[tuple[int, int, Interval | None, AskedEvent | None]]:
    events = find_events(text)
    for mention in events:
        yield mention.start, mention.end, None, mention.event
    for window in windows.find_windows(text, now, [(one.start, one.end) for one in events]):
        yield window.start, window.end, window.interval, None
