"""Sentences of facts with their dates, for summaries: a summary is read long after it was written."""

from __future__ import annotations

import re
from typing import TypedDict

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import OPEN_END, OPEN_START, local_time, time_text
from kg_memory.text.dates import find_dates

_STOP = re.compile(r"(?<![.。])[.。]$")
_DAY = re.compile(r"\d{4}-\d\d-\d\d$")
_DATE = re.compile(r" \((?:since|from|until|on|in|by|about|said on|planned)\b[^()]*\d{4}[^()]*\)[.。]?$")


class DatedFact(TypedDict):
    """A fact with the dates of its latest period, in microseconds; see `falkor.queries.fragments.DATED`.

    It was said last by a clock that is `offset` minutes before UTC.
    """

    sentence: str
    kind: str
    valid_at: int
    invalid_at: int
    precision: Precision
    end_precision: Precision
    said_at: int
    offset: int


def dated(fact: DatedFact) -> str:
    """Return the sentence of a fact with its dates: "Ann lives in Oslo (since 2024-05)."."""
    when, sentence = _when(fact), fact["sentence"].rstrip()
    if not when:
        return sentence
    stop = _STOP.search(sentence)
    return f"{sentence[: stop.start()]} ({when}){stop[0]}" if stop else f"{sentence} ({when})"


def dated_past(fact: DatedFact) -> str:
    """Return the sentence of a state that is over behind its dates: "Until 2024-05: Ann lives in Oslo"."""
    if fact["kind"] == "event":
        return dated(fact)
    begin, end = _ends(fact)
    until = f"{end[3:]} at the latest" if end.startswith("by ") else end
    return f"{f'From {begin} until' if begin else 'Until'} {until}: {fact['sentence']}"


def without_dates(sentence: str) -> str:
    """Return *sentence* without the dates that `dated` gave it."""
    return _DATE.sub("", sentence)


def _when(fact: DatedFact) -> str:
    """Return when a fact is so; when it was said, where only that tells what its words mean; or nothing."""
    begin, end = _ends(fact)
    lasts = fact["kind"] == "state"
    until = f"until {end}" if end else ""
    if not begin:
        said = local_time(fact["said_at"], fact["offset"])
        timeless = lasts and not find_dates(fact["sentence"], said)
        return until if timeless else ", ".join(filter(None, (f"said on {said.date()}", until)))
    if end:
        when = f"from {begin} {until}"
    elif begin.startswith("by ") or (begin.startswith("about ") and not lasts):
        when = begin
    else:
        is_day = _DAY.match(begin)
        when = f"{'since' if lasts else 'on' if is_day else 'in'} {begin}"
    return f"planned, {when}" if fact["kind"] == "plan" else when


def _ends(fact: DatedFact) -> tuple[str, str]:
    offset = fact["offset"]
    begin = "" if fact["valid_at"] <= OPEN_START else _date(fact["valid_at"], fact["precision"], offset)
    end = "" if fact["invalid_at"] >= OPEN_END else _date(fact["invalid_at"], fact["end_precision"], offset)
    return begin, end


def _date(micros: int, precision: Precision, offset: int) -> str:
    """Return a date as exactly as it is known, without the time of day: "2024-05", "the week of 2024-05-06"."""
    if precision == "week":
        return f"the week of {time_text(micros, 'day', offset)}"
    text = (time_text(micros, precision, offset) or "").split("T")[0]
    return " ".join(reversed(text.split("-"))) if precision == "season" else text
