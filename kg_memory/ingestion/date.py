"""Step 6, date: set the start and end of each fact, from the model's dates checked against the words of the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kg_memory.ingestion.records import EpisodeRecord, StatedFact
from kg_memory.ingestion.state import Draft, Update
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH, Interval, instant, local_time, micros, parse_period
from kg_memory.text.dates import DateMention, find_dates
from kg_memory.text.predicates import is_past_state

_GOES_ON = re.compile(
    r"\bsince\b|\b(?:has|have|'ve|'s) (?:been|lived|worked|studied|resided)\b|以来|至今", re.IGNORECASE
)
"""Words for a state that began in the past and still holds, whatever the tense of its predicate."""
# Words before a date that make the date a start and leave the end open.
_SINCE = re.compile(r"\b(?:since|from)\b|自|从", re.IGNORECASE)
_NOW = re.compile(
    r"(?P<now>\btoday\b|\bjust now\b|\bright now\b|\bthis (?:morning|afternoon|evening)\b|刚才|刚刚|今天)"
    r"|(?<!\d)(\d{1,2})[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ](?:\d{4}|\d\d)(?!\d)|[A-Za-z]{3,9}[-/. ](\d{1,2})(?!\d)"
    r"|\d{4}[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)",
    re.IGNORECASE,
)
"""Words and figures that may name the day on which a message was sent."""
_BEGINS = re.compile(
    r"\b(?:moved|joined|start(?:ed)?|began|became|become|born|married|bought|got|founded|hired|adopted|switched|opened|"
    r"signed)\b|搬|加入|开始|出生|结婚|入职|买了",
    re.IGNORECASE,
)
"""Words beside a date that make the date the start of a state."""


def date(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 6 of ingestion: return ``{"facts": ...}``, the facts of *draft* with their start and end dates."""
    yield from ()  # steps are generators, also this one, which has no I/O
    return {} if draft.episode.is_declared else {"facts": date_facts(draft.facts, draft.episode, settings)}


def date_facts(facts: Sequence[StatedFact], episode: EpisodeRecord, settings: Settings) -> tuple[StatedFact, ...]:
    """Return *facts* with their start and end, and how exact both are, such as "month"."""
    if not facts:
        return ()
    reference = local_time(episode.at, episode.offset)
    everywhere = find_dates(episode.text, reference)
    spans = Counter((fact.start, fact.end) for fact in facts)
    claimed = [one for fact in facts if (one := parse_period(fact.stated_from, reference.tzinfo or UTC)) is not None]
    dated: list[StatedFact] = []
    for fact in facts:
        # Dates in a quote belong to the fact only if no other fact has the same quote.
        alone = fact.quoted and spans[fact.start, fact.end] == 1
        within = [one for one in everywhere if fact.start <= one.start and one.end <= fact.end] if alone else []
        if fact.stated_from is None and any(_starts_within(time, one.interval) for one in within for time in claimed):
            within = []  # the model gave this date to another fact
        words = episode.text[fact.start : fact.end]
        stated = _mark_former(fact)
        if settings.undated_start == "told":
            stated = _without_invented_dates(stated, episode.text, everywhere, reference)
        dated.append(_date_fact(stated, words, within, everywhere, reference))
    return tuple(map(_begin_when_stated, dated) if settings.undated_start == "reference" else dated)


def _begin_when_stated(fact: StatedFact) -> StatedFact:
    """Return *fact*, begun at the time of its message if it is a state without dates, such as "I live in Oslo"."""
    is_undated = fact.kind == "state" and fact.valid_at == OPEN_START and fact.stated_at < fact.invalid_at
    return replace(fact, valid_at=fact.stated_at) if is_undated else fact


def _mark_former(fact: StatedFact) -> StatedFact:
    is_over = fact.kind == "state" and is_past_state(fact.wording) and not _GOES_ON.search(fact.sentence)
    return replace(fact, kind="former") if is_over else fact


def _date_fact(
    fact: StatedFact, words: str, within: Sequence[DateMention], everywhere: Sequence[DateMention], reference: datetime
) -> StatedFact:
    """Return *fact* with its start and end dates, as precise as in the text: "in May" gives a month."""
    zone = reference.tzinfo or UTC
    first, last = parse_period(fact.stated_from, zone), parse_period(fact.stated_until, zone)
    if first is None and last is None and len(within) == 1:
        first, last = _read_words(fact, within[0].interval, words)
    continued = _BEGINS.search(words) is not None or _SINCE.search(words) is not None
    start, end = (_find_precision(time, within, everywhere) for time in (first, last))
    dated = set_dates(fact, start, end, continued=continued)
    is_open = OPEN_START < dated.valid_at < dated.stated_at and dated.invalid_at == OPEN_END
    # "Since 2020" has no end; "in 2020 since I got a job" and "I've worked there in 2020" name a year.
    is_since = any(one.interval.end is None and instant(dated.valid_at) == one.interval.start for one in within)
    return replace(dated, goes_on=fact.kind == "state" and is_open and is_since)


def set_dates(fact: StatedFact, start: Interval | None, end: Interval | None, *, continued: bool = False) -> StatedFact:
    """Set the start of *fact* to the period *start*, and its end to the period *end*; None means unknown."""
    first, last = start or Interval(), end or Interval()
    valid_at, invalid_at = micros(first.start, default=OPEN_START), micros(last.start, default=OPEN_END)
    end_precision = last.precision
    window_end = micros(first.end, default=OPEN_END) if WIDTH[first.precision] else OPEN_END
    if fact.kind == "former" and invalid_at == OPEN_END:
        invalid_at = fact.stated_at if continued or first.precision == "about" else min(window_end, fact.stated_at)
        end_precision = "by"
    if invalid_at <= valid_at:
        invalid_at = OPEN_END
    return replace(
        fact,
        valid_at=valid_at,
        invalid_at=invalid_at,
        precision=first.precision,
        end_precision=end_precision if invalid_at != OPEN_END else "instant",
        window_end=window_end,
    )


def _without_invented_dates(
    fact: StatedFact, content: str, everywhere: Sequence[DateMention], reference: datetime
) -> StatedFact:
    """Return *fact* without dates that the model took from the time of the message instead of its text."""
    if fact.kind == "plan":
        return fact
    zone = reference.tzinfo or UTC
    first, until = parse_period(fact.stated_from, zone), parse_period(fact.stated_until, zone)
    if _is_invented(first, content, everywhere, reference):
        fact = replace(fact, stated_from=None)
    is_instant = fact.kind == "former" and until is not None and until.precision == "instant"
    if is_instant and _is_invented(until, content, everywhere, reference):
        fact = replace(fact, stated_until=None)
    return fact


def _is_invented(period: Interval | None, content: str, everywhere: Iterable[DateMention], reference: datetime) -> bool:
    """Return whether *period* is the time of the message (*reference*) without being named in its text *content*.

    *everywhere*: all dates in the text.
    """
    if period is None or period.start is None or period.precision not in ("instant", "day", "by"):
        return False
    now = reference.astimezone(UTC)
    is_now = period.start <= now < (period.end or now) or abs(period.start - now).total_seconds() < 60
    day = period.start.astimezone(reference.tzinfo).day
    is_named = any(_starts_within(mention.interval, period) for mention in everywhere) or any(
        match["now"] or day in map(int, filter(str.isdigit, match.groups(""))) for match in _NOW.finditer(content)
    )
    return is_now and not is_named


def _starts_within(named: Interval, period: Interval) -> bool:
    start, end = named.start, period.end
    return start is not None and period.start is not None and period.start <= start and (end is None or start < end)


def _read_words(fact: StatedFact, named: Interval, words: str) -> tuple[Interval | None, Interval | None]:
    """Return (start, end) of *fact* from the only date in its quote: "since May" gives a start, "until May" an end."""
    if fact.kind in ("event", "plan") or (fact.kind == "state" and _BEGINS.search(words)):
        return (named if named.start is not None else None), None
    if named.start is None:
        return None, Interval(named.end, None, named.precision)
    return (named, None) if named.end is None else (None, None)


def _find_precision(
    time: Interval | None, within: Sequence[DateMention], everywhere: Sequence[DateMention]
) -> Interval | None:
    """Return *time*, a date from the model, as precise as in the text: 1 May becomes May for "in May"."""
    if time is None or time.start is None or time.precision == "by":
        return time
    if any(
        (mention.interval.start, mention.interval.precision) == (time.start, time.precision) for mention in everywhere
    ):
        return time
    for mentions in (within, everywhere):
        for mention in mentions:
            named = mention.interval
            if named.precision == "about" and _is_vaguely(time, named):
                return replace(time, precision="about")
            if named.start == time.start and WIDTH[named.precision] > WIDTH[time.precision]:
                return replace(time, end=named.end or time.end, precision=named.precision)
    return time


def _is_vaguely(time: Interval, named: Interval) -> bool:
    """Return whether *time* lies in the approximate period *named*: 3 May 2019 lies in "about 2019"."""
    first, second = (time, named) if named.end is not None else (named, time)
    return time.precision != "instant" and _starts_within(first, second)
