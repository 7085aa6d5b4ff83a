"""Write periods in words ("since May 2023") and in figures ("2023-05 - now"), and facts as sentences with their dates.

Summaries contain dated sentences, as they are read long after they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypedDict

from kg_memory.models.graph import Fact, FactKind, PlanOutcome, Precision
from kg_memory.temporal.interval import MONTHS, OPEN_END, OPEN_START, local_time, midnight, round_to_midnight
from kg_memory.text.dates import find_dates
from kg_memory.text.predicates import half_life

Writer = Callable[[datetime, Precision], str]
"""Writes a date only as exactly as its precision says."""
_SEASONS = ("winter", "spring", "summer", "autumn")
_DAY = timedelta(days=1)
SHORT = 500
"""The half-life of states, in days, up to which a summary says when a state was stated."""


class Dated(Protocol):
    """Protocol of an object with a period, such as a `models.graph.Fact`, so that the period can be put in words."""

    @property
    def kind(self) -> FactKind: ...
    @property
    def outcome(self) -> PlanOutcome | None: ...
    @property
    def valid_at(self) -> datetime | None: ...
    @property
    def invalid_at(self) -> datetime | None: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def end_precision(self) -> Precision: ...
    @property
    def known_from(self) -> datetime | None: ...
    @property
    def mark(self) -> str: ...


# Periods in words


def period_in_words(fact: Dated, now: datetime | None = None, write: Writer | None = None) -> str:
    """Return when *fact* is true: "since May 2023", "from 2021 to 7 May 2023", or "on 7 May 2023" for an event."""
    is_over = fact.invalid_at is not None and now is not None and fact.invalid_at <= now
    write = write or date_in_words
    when = _within_a_day(fact, write) or _phrase(fact, write, is_over=is_over and fact.kind == "state")
    if fact.outcome and fact.valid_at and fact.invalid_at:
        outcome = outcome_in_words(fact.outcome, fact.invalid_at, fact.end_precision, write)
        when = f"planned on {write(midnight(fact.valid_at), 'day')}, {outcome}"
    elif fact.kind == "plan":
        is_exact = fact.valid_at and not fact.invalid_at and fact.precision not in ("about", "by")
        when = f"planned for {when.split(' ', 1)[1]}" if is_exact else f"planned, {when}"
    return f"{when}, {fact.mark}" if fact.mark else when


def outcome_in_words(outcome: PlanOutcome, at: datetime, precision: Precision, write: Writer) -> str:
    """Return the outcome of a plan with the date *at*: "done on 7 May 2023", "dropped by 7 May"."""
    words = {"fulfilled": "done", "dropped": "dropped", "replaced": "changed"}
    if precision in ("instant", "day", "by"):
        return f"{words[outcome]} {'by' if precision == 'by' else 'on'} {write(midnight(at), 'day')}"
    return f"{words[outcome]} {'' if precision == 'about' else 'in '}{write(at, precision)}"


def _phrase(fact: Dated, write: Writer, *, is_over: bool) -> str:
    """Return the period of *fact* in words: "since May 2023", or "said on 7 May 2023" without dates."""
    start, end = _bounds(fact, write)
    mark = "no longer so: " if is_over else ""
    if start and end:
        return f"{mark}from {start} to {end}"
    if start and fact.kind == "state":
        return start if start.startswith("by ") else f"since {start}"
    if start:
        is_vague, is_day = fact.precision in ("about", "by"), fact.precision in ("instant", "day", "weekend")
        return start if is_vague else f"{'on' if is_day else 'in'} {start}"
    if end and fact.kind == "state":
        return f"{mark}{'ended' if is_over else 'until'} {end}"
    return f"said on {write(midnight(fact.known_from), 'day')}" if fact.known_from else "date unknown"


def bounds_in_words(fact: Fact) -> tuple[str, str]:
    """Return the start and the end of the period in which *fact* is true, in words: ``("May 2023", "present")``."""
    begin, end = _bounds(fact, date_in_words)
    return begin or _latest_start(fact, date_in_words), end or "present"


def _latest_start(fact: Fact, write: Callable[[datetime], str]) -> str:
    first_said = min((source.at for source in fact.sources), default=fact.known_from)
    # The end of another fact, before the first statement of this one, is no latest start.
    if fact.known_from is None or first_said is None or fact.known_from < first_said:
        return "date unknown"
    return f"by {write(fact.known_from)}"


def _bounds(fact: Dated, write: Writer) -> tuple[str, str]:
    begin = write(fact.valid_at, fact.precision) if fact.valid_at else ""
    return begin, write(fact.invalid_at, fact.end_precision) if fact.invalid_at else ""


def date_in_words(moment: datetime, precision: Precision = "instant") -> str:
    """Return *moment* in words, as exact as *precision* says: "7 May 2023", "May 2023", "about 2023"."""
    moment = _round(moment, precision)
    match precision:
        case "season":
            return _season(moment)
        case "week" | "weekend":
            return f"the {precision} of {_date(moment)}"
        case "about":
            return f"about {_date(moment, _guess_precision(moment))}"
        case "by":
            return f"{_date(moment, _guess_precision(moment))} at the latest"
        case "instant":
            return _date(moment) if moment == midnight(moment) else f"{_date(moment)}{_time_of_day(moment)}"
    return _date(moment, precision)


def _date(moment: datetime, precision: Precision = "day") -> str:
    if precision == "year":
        return str(moment.year)
    month = f"{MONTHS[moment.month - 1]} {moment.year}"
    return month if precision == "month" else f"{moment.day} {month}"


def _guess_precision(moment: datetime) -> Precision:
    if moment.day > 1 or moment != midnight(moment):
        return "day"
    return "month" if moment.month > 1 else "year"


def _within_a_day(fact: Dated, write: Writer) -> str:
    """Return the period of *fact* if it lies within one day, else "": "on 7 May 2023 from 10:00 to 12:00"."""
    start, end = fact.valid_at, fact.invalid_at
    if not start or not end or not {fact.precision, fact.end_precision} <= {"instant", "day"} or end - start > _DAY:
        return ""
    if _is_day(start, end):
        return f"on {write(start, 'day')}"
    end = end.astimezone(start.tzinfo)
    within = start.date() == end.date()
    return f"on {write(midnight(start), 'day')} from {start:%H:%M} to{_time_of_day(end)}" if within else ""


# Periods in figures


def period_in_figures(fact: Fact) -> str:
    """Return when *fact* is true, with dates as numbers: "2023-05 - now", or "2023-05-07" for one whole day."""
    start, end = fact.valid_at, fact.invalid_at
    if start and end and {fact.precision, fact.end_precision} <= {"instant", "day"} and _is_day(start, end):
        return day_in_figures(start)
    begin, until = _bounds(fact, date_in_figures)
    begin = begin or _latest_start(fact, day_in_figures)
    return f"{begin} - {until or 'now'}" + (f", {fact.mark}" if fact.mark else "")


def date_in_figures(moment: datetime, precision: Precision) -> str:
    """Return *moment* as numbers, as exact as *precision* says: "2023-05-07", "2023-05", "about 2023"."""
    moment = _round(moment, precision)
    match precision:
        case "instant" | "day":
            return day_in_figures(moment)
        case "week" | "weekend":
            return f"{precision} of {day_in_figures(moment)}"
        case "season":
            return _season(moment)
        case "about" | "by":
            return f"{precision} {date_in_figures(midnight(moment), _guess_precision(moment))}"
    return f"{moment:%Y-%m}" if precision == "month" else f"{moment:%Y}"


def age_in_words(said: datetime, now: datetime) -> str:
    """Return how long before *now* something was *said*: "14 months ago", "3 years ago"; "1 day ago" at the least."""
    days = max((now - said) // _DAY, 1)
    unit, length = ("years", 365) if days >= 730 else ("months", 30) if days >= 60 else ("days", 1)
    return f"{days // length} {unit} ago" if days > 1 else "1 day ago"


def day_in_figures(moment: datetime) -> str:
    """Return *moment* as "2023-05-07", or as "2023-05-07 14:30" if it is not midnight."""
    return f"{moment:%Y-%m-%d}" if moment == midnight(moment) else time_in_figures(moment)


def time_in_figures(moment: datetime) -> str:
    """Return *moment* as "2023-05-07 14:30" in its own time zone; a time in UTC ends with "UTC"."""
    return f"{moment:%Y-%m-%d}{_time_of_day(moment)}"


def _round(moment: datetime, precision: Precision) -> datetime:
    return moment if precision in ("instant", "by") else round_to_midnight(moment)  # "by": often a message's time


def _is_day(start: datetime, end: datetime) -> bool:
    return start == midnight(start) and end - start == _DAY


def _season(moment: datetime) -> str:
    return f"{_SEASONS[(moment.month % 12) // 3]} {moment.year}"


def _time_of_day(moment: datetime) -> str:
    return f" {moment:%H:%M}{'' if moment.utcoffset() else ' UTC'}"


# Dated sentences

_STOP = re.compile(r"(?<![.。])[.。]$")
_DATE = re.compile(r" \((?:since|from|until|on|in|by|about|said on|planned)\b[^()]*\d{4}[^()]*\)[.。]?$")


class DatedFact(TypedDict):
    """A database row of a fact with the dates of its latest period, in microseconds since the epoch.

    `said_at` is when the fact was last stated, and `offset` the UTC offset of its speaker in minutes.
    """

    sentence: str
    predicate: str
    kind: FactKind
    valid_at: int
    invalid_at: int
    precision: Precision
    end_precision: Precision
    said_at: int
    offset: int


class _Period(NamedTuple):
    """The dates of a `DatedFact` as datetimes in the time zone of its speaker; a date that is not known is None."""

    kind: FactKind
    valid_at: datetime | None
    invalid_at: datetime | None
    precision: Precision
    end_precision: Precision
    known_from: datetime | None
    mark: str = ""
    outcome: PlanOutcome | None = None


def dated(fact: DatedFact) -> str:
    """Return the sentence of *fact* with its dates: "Ann lives in Oslo" -> "Ann lives in Oslo (since 2024-05)"."""
    period, sentence = _period_of(fact), fact["sentence"].rstrip()
    is_timeless = fact["kind"] == "state" and not period.valid_at and not period.invalid_at
    lasts = half_life(fact["predicate"]) > SHORT
    if is_timeless and lasts and period.known_from and not find_dates(sentence, period.known_from):
        return sentence
    when, stop = period_in_words(period, write=date_without_time), _STOP.search(sentence)
    return f"{sentence[: stop.start()]} ({when}){stop[0]}" if stop else f"{sentence} ({when})"


def dated_past(fact: DatedFact) -> str:
    """Return the sentence of an ended fact after its dates: "Until 2024-05: Ann lives in Oslo"."""
    if fact["kind"] == "event":
        return dated(fact)
    begin, end = _bounds(_period_of(fact), date_without_time)
    until = f"{end[3:]} at the latest" if end.startswith("by ") else end
    return f"{f'From {begin} until' if begin else 'Until'} {until}: {fact['sentence']}"


def without_dates(sentence: str) -> str:
    """Return *sentence* without the dates that `dated` added: "Ann is here (since 2024-05)." -> "Ann is here"."""
    return _DATE.sub("", sentence)


def _period_of(fact: DatedFact) -> _Period:
    offset = fact["offset"]
    return _Period(
        fact["kind"],
        local_time(fact["valid_at"], offset) if fact["valid_at"] > OPEN_START else None,
        local_time(fact["invalid_at"], offset) if fact["invalid_at"] < OPEN_END else None,
        fact["precision"],
        fact["end_precision"],
        local_time(fact["said_at"], offset),
    )


def date_without_time(moment: datetime, precision: Precision) -> str:
    """Return the date of *moment* as numbers, without the time of day: "2023-05", "by 2023-05-07".

    *precision* says how exact the date is.
    """
    if precision == "by" and moment != midnight(moment):
        return f"by {midnight(moment):%Y-%m-%d}"  # the day of a message; a midnight may stand for a month or a year
    written = date_in_figures(midnight(moment) if precision == "instant" else moment, precision)
    return f"the {written}" if precision in ("week", "weekend") else written
