"""Step 6, dedupe: which facts are known already, compared only with facts of the same pair (Zep 2.2.2)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kg_memory.effects import read
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.state import IngestionState, NewFact
from kg_memory.prompts import DEDUPE
from kg_memory.settings import Settings
from kg_memory.temporal import instant


def dedupe(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Mark each fact that says what a known one says; the known one gets its evidence."""
    facts = state["facts"]
    entities = state["entities"]
    pairs = [
        {"new": new, "subject": entities[fact["subject"]]["id"], "object": entities[object_]["id"]}
        for new, fact in enumerate(facts)
        for object_ in fact["objects"]
        if entities[fact["subject"]]["known"] and entities[object_]["known"]
    ]
    rows = (yield from read(cypher.FACTS_OF_PAIRS, pairs=pairs, limit=settings.candidates)) if pairs else []
    existing: defaultdict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        existing[row["new"]][row["fact"]["id"]] = row
    same = {new: facts[new]["id"] for new, found in existing.items() if facts[new]["id"] in found}
    unsure = {new: list(found.values()) for new, found in existing.items() if new not in same}
    if unsure:
        asked = [
            {**told(fact, state), "id": new, "existing": [known(row, place) for place, row in enumerate(unsure[new])]}
            for new, fact in enumerate(facts)
            if new in unsure
        ]
        answers = yield from ask_in_batches(DEDUPE, "facts", asked)
        for each in (each for answer in answers for each in answer.duplicates):
            found = unsure.get(each.fact, [])
            if each.same_as is not None and 0 <= each.same_as < len(found):
                same[each.fact] = found[each.same_as]["fact"]["id"]
    return {"facts": [{**fact, "same_as": same.get(new)} for new, fact in enumerate(facts)]}


def told(fact: NewFact, state: IngestionState) -> dict[str, Any]:
    """Return a new fact as prompts are told it."""
    entities = state["entities"]
    return {
        "subject": entities[fact["subject"]]["name"],
        "predicate": fact["predicate"],
        "objects": [entities[each]["name"] for each in fact["objects"]],
        "sentence": fact["sentence"],
        "valid_at": fact["said_from"],
        "invalid_at": fact["said_until"],
    }


def known(row: dict[str, Any], place: int) -> dict[str, Any]:
    """Return a stored fact as prompts are told it, under its place in the list as its id."""
    fact = row["fact"]
    return {
        "id": place,
        "subject": fact["subject"],
        "predicate": fact["predicate"],
        "objects": row["objects"],
        "sentence": fact["sentence"],
        "valid_at": _iso(min((each["valid_at"] for each in row["beliefs"]), default=None)),
        "invalid_at": _iso(max((each["invalid_at"] for each in row["beliefs"]), default=None)),
    }


def _iso(micros: int | None) -> str | None:
    moment = instant(micros)
    return moment.isoformat() if moment else None
