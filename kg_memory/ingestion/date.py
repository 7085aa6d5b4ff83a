"""Step 7, date: since when and until when each fact is so, by the model and checked by code (Zep 2.2.3)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from kg_memory.dates import find_dates, parse_instant
from kg_memory.flow import Flow
from kg_memory.ingestion.state import IngestionState, NewFact
from kg_memory.settings import Settings
from kg_memory.temporal import EPOCH, OPEN_END, OPEN_START, Interval, instant, micros


def date(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Give each fact its interval: the model's dates where they are dates, else those that its words name."""
    yield from ()
    episode = state["episode"]
    reference = instant(episode["at"]) or EPOCH
    spans = Counter((fact["start"], fact["end"]) for fact in state["facts"])
    dated = []
    for fact in state["facts"]:
        # Words that state one fact, and were found, may name its date; those of several may name another's.
        alone = fact["quoted"] and spans[fact["start"], fact["end"]] == 1
        words = episode["content"][fact["start"] : fact["end"]] if alone else ""
        interval = _interval(fact, words, reference)
        valid_at = micros(interval.start, default=OPEN_START)
        invalid_at = micros(interval.end, default=OPEN_END)
        dated.append({**fact, "valid_at": valid_at, "invalid_at": invalid_at})
    return {"facts": dated}


def _interval(fact: NewFact, words: str, reference: datetime) -> Interval:
    start = parse_instant(fact["said_from"])
    end = parse_instant(fact["said_until"])
    if start is None and end is None:
        # The model gave no date: the words that state the fact may name one after all.
        mentions = find_dates(words, reference)
        start = mentions[0].interval.start if len(mentions) == 1 else None
    if start is not None and end is not None and end <= start:
        end = None  # an interval that ends before it begins tells only when it begins
    return Interval(start, end)
