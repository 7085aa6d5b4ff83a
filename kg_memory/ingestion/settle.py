"""What is asked together with which entities are known: what new predicates mean, and what the facts do to known ones.

The latter supposes that each entity which is asked about is the known one that sounds like it, else a new one. Where it
is not, its facts meet others, and the step `judge` asks about these; a pair that it finds again as it was told here is
not asked about again.
"""

from __future__ import annotations

from typing import Any, cast

from kg_memory.ingestion.contradictions import judge, related
from kg_memory.ingestion.date import date
from kg_memory.ingestion.facts import facts, stated_in, told, wordings
from kg_memory.ingestion.predicates import known_meanings
from kg_memory.ingestion.records import IngestionState, NewPredicate
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.predicates import predicate_name


def naming(state: IngestionState, settings: Settings) -> Flow[list[NewPredicate]]:
    """Return what the step `facts` learns of the predicates that are stated."""
    found = yield from facts(state, settings)
    learned: list[NewPredicate] = found["predicates"]
    return learned


def judging(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Return what the step `judge` is told of the stated facts whose predicates are known, and what it looks up."""
    stated = yield from stated_in(state, settings)
    known = yield from known_meanings(
        wordings(stated), settings, state.get("learned") or (), state.get("predicates_at")
    )
    plain = [(piece, each) for piece, each in stated if predicate_name(each.predicate) in known]
    guess = cast("IngestionState", {**state, "facts": told(plain, known, state)})
    guess = cast("IngestionState", {**guess, **(yield from date(guess, settings))})
    looked = yield from related(guess["facts"], settings)
    found = yield from judge(cast("IngestionState", {**guess, "related": looked}), settings)
    return {"judged": found["judged"], "related": looked}
