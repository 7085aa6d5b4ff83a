"""Build the facts that an episode states, whoever states them: a model, the offline reader, or an application."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kg_memory.ingestion.predicates import Meaning
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH, Interval, micros
from kg_memory.text.identity import fact_id

_REPLACES = re.compile(
    r"\b(?:now|instead|no longer|any ?more|switch\w*|swap\w*|replac\w*|changed)\b|换|改|现在|如今|不再|替",
    re.IGNORECASE,
)
"""Words that tell that something is otherwise now."""


def state_fact(
    draft: Draft, subject: int, objects: Sequence[int], meaning: Meaning, sentence: str, **fields: Any
) -> StatedFact:
    """Return the fact that *draft* states between entities, which are given by their places; not dated yet."""
    words = draft.episode.text[fields.get("start", 0) : fields.get("end", 0)]
    ends = [draft.entities[place] for place in objects]
    keys = [entity.key for entity in ends]
    return StatedFact(
        id=fact_id(draft.namespace, draft.entities[subject].key, meaning.name, keys, sentence),
        subject=subject,
        subject_id=draft.entities[subject].id,
        predicate=meaning.name,
        single_valued=meaning.single_valued,
        family=meaning.family,
        objects=tuple(objects),
        object_ids=tuple(entity.id for entity in ends),
        sentence=sentence,
        stated_at=draft.episode.at,
        replaces=_REPLACES.search(words) is not None,
        **{"declared": meaning.declared, **fields},
    )


def put_dates(fact: StatedFact, start: Interval | None, end: Interval | None, *, went_on: bool = False) -> StatedFact:
    """Return *fact* with the times in which it began and ended; a former state ended when it was stated, at the latest.

    One that was so in a month ended with it, unless it *went_on*: "I had a car since 2019".
    An interval that ends before it begins tells only when it begins.
    """
    first, last = start or Interval(), end or Interval()
    valid_at, invalid_at = micros(first.start, default=OPEN_START), micros(last.start, default=OPEN_END)
    end_precision = last.precision
    window_end = micros(first.end, default=OPEN_END) if WIDTH[first.precision] else OPEN_END
    if fact.kind == "former" and invalid_at == OPEN_END:
        is_open = went_on or first.precision == "about"
        invalid_at = fact.stated_at if is_open else min(window_end, fact.stated_at)
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
