"""Step 6, date: give each fact its interval, from the model's dates as checked by code (Zep 2.2.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kg_memory.ingestion.receive import local_time
from kg_memory.ingestion.records import EpisodeRecord, StatedFact
from kg_memory.ingestion.state import Draft, Update
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH, Interval, micros
from kg_memory.text.dates import DateMention, find_dates, parse_period
from kg_memory.text.predicates import is_past_state

_GOES_ON = re.compile(
    r"\bsince\b|\b(?:has|have|'ve|'s) (?:been|lived|worked|studied|resided)\b|以来|至今", re.IGNORECASE
)
"""Words that mark a state as continuing, even if its predicate is in the past tense."""


def date(draft: Draft, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Give each fact its interval: the model's dates where they are dates, else those that its words name."""
    yield from ()
    if draft.episode.is_declared:
        return {}  # their dates are those that were declared
    return {"facts": date_facts(draft.facts, draft.episode)}


def date_facts(facts: Sequence[StatedFact], episode: EpisodeRecord) -> tuple[StatedFact, ...]:
    """Return *facts*, which *episode* states, with their dates."""
    reference = local_time(episode.at, episode.offset)
    spans = Counter((fact.start, fact.end) for fact in facts)
    dated: list[StatedFact] = []
    for fact in facts:
        # Words that state one fact, and stand in the content, may name its date; those of several may name another's.
        alone = fact.quoted and spans[fact.start, fact.end] == 1
        words = episode.content[fact.start : fact.end] if alone else ""
        dated.append(_date_fact(fact, find_dates(words, reference), reference))
    return tuple(dated)


def _date_fact(fact: StatedFact, mentions: Sequence[DateMention], reference: datetime) -> StatedFact:
    """Return *fact* with its times; what the model gave as an instant is as coarse as the words that say it."""
    zone = reference.tzinfo or UTC
    first, last = parse_period(fact.stated_from, zone), parse_period(fact.stated_until, zone)
    in_words = mentions[0].interval if len(mentions) == 1 else None
    if first is None and last is None:
        # The model gave no date: the words that state the fact may name one after all.
        first = in_words if in_words is not None and in_words.start is not None else None
    elif first is not None and in_words is not None and _is_coarser(in_words, first):
        first = in_words
    if last is not None and in_words is not None and _is_coarser(in_words, last):
        last = in_words
    start = first or Interval()
    valid_at = micros(start.start, default=OPEN_START)
    invalid_at = micros(last.start if last else None, default=OPEN_END)
    window_end = micros(start.end, default=OPEN_END) if WIDTH[start.precision] else OPEN_END
    if last is None and is_past_state(fact.wording) and not _GOES_ON.search(fact.sentence):
        invalid_at = min(window_end, fact.stated_at)
    if invalid_at <= valid_at and valid_at != OPEN_START:
        invalid_at = OPEN_END  # an interval that ends before it begins tells only when it begins
    return replace(
        fact,
        valid_at=valid_at,
        invalid_at=invalid_at,
        precision=start.precision,
        end_precision=last.precision if last and last.start and invalid_at != OPEN_END else "instant",
        window_end=window_end,
    )


def _is_coarser(in_words: Interval, by_model: Interval) -> bool:
    return in_words.start == by_model.start and WIDTH[in_words.precision] > WIDTH[by_model.precision]
