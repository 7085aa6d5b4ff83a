"""Step 6, date: since when and until when each fact is so, by the model and checked by code (Zep 2.2.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kg_memory.ingestion.receive import local
from kg_memory.ingestion.records import IngestionState, NewFact
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH, Interval, micros
from kg_memory.text.dates import DateMention, find_dates, parse_period
from kg_memory.text.predicates import is_past_state

_GOES_ON = re.compile(
    r"\bsince\b|\b(?:has|have|'ve|'s) (?:been|lived|worked|studied|resided)\b|以来|至今", re.IGNORECASE
)
"""How a sentence tells that what began in the past goes on, whatever the tense of its predicate."""


def date(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Give each fact its interval: the model's dates where they are dates, else those that its words name."""
    yield from ()
    episode = state["episode"]
    reference = local(episode)
    spans = Counter((fact["start"], fact["end"]) for fact in state["facts"])
    dated: list[NewFact] = []
    for fact in state["facts"]:
        # Words that state one fact, and were found, may name its date; those of several may name another's.
        alone = fact["quoted"] and spans[fact["start"], fact["end"]] == 1
        words = episode["content"][fact["start"] : fact["end"]] if alone else ""
        dated.append(_dated(fact, find_dates(words, reference), reference))
    return {"facts": dated}


def _dated(fact: NewFact, mentions: Sequence[DateMention], reference: datetime) -> NewFact:
    """Return *fact* with its times; what the model gave as an instant is as coarse as the words that say it."""
    zone = reference.tzinfo or UTC
    given, end = parse_period(fact["said_from"], zone), parse_period(fact["said_until"], zone)
    told = mentions[0].interval if len(mentions) == 1 else None
    if given is None and end is None:
        # The model gave no date: the words that state the fact may name one after all.
        given = told if told is not None and told.start is not None else None
    elif given is not None and told is not None and _coarser(told, given):
        given = told
    if end is not None and told is not None and _coarser(told, end):
        end = told
    start = given or Interval()
    valid_at = micros(start.start, default=OPEN_START)
    invalid_at = micros(end.start if end else None, default=OPEN_END)
    window_end = micros(start.end, default=OPEN_END) if WIDTH[start.precision] else OPEN_END
    if end is None and is_past_state(fact["wording"]) and not _GOES_ON.search(fact["sentence"]):
        invalid_at = min(window_end, fact["said_at"])
    if invalid_at <= valid_at and valid_at != OPEN_START:
        invalid_at = OPEN_END  # an interval that ends before it begins tells only when it begins
    return {
        **fact,
        "valid_at": valid_at,
        "invalid_at": invalid_at,
        "precision": start.precision,
        "end_precision": end.precision if end and end.start and invalid_at != OPEN_END else "instant",
        "window_end": window_end,
    }


def _coarser(told: Interval, given: Interval) -> bool:
    return told.start == given.start and WIDTH[told.precision] > WIDTH[given.precision]
