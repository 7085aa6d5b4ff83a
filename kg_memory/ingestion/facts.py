"""Step 5, facts: what the episode says about its entities, each with the characters that say it (Zep 2.2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kg_memory.ingestion.extract import facts_of, fields
from kg_memory.ingestion.predicates import Meaning, meanings
from kg_memory.ingestion.records import IngestionState, NewEntity, NewFact, Piece
from kg_memory.llm.prompts import FACTS
from kg_memory.llm.prompts.answers import ExtractedFact, ExtractedFacts
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name, fact_id, replace_unstorable
from kg_memory.text.predicates import predicate_name

Stated = tuple[Piece, ExtractedFact]
"""A fact as it was read, with the piece that states it."""


def facts(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Ask which facts each piece states between the entities, and join them; a fact of several is a hyper-edge."""
    stated = yield from stated_in(state, settings)
    known, learned = yield from meanings(
        wordings(stated), settings, state.get("learned") or (), state.get("predicates_at")
    )
    return {"facts": told(stated, known, state), "predicates": learned}


def stated_in(state: IngestionState, settings: Settings) -> Flow[list[Stated]]:
    """Return what the pieces state that joins two of the entities; asked where it was not read together with these."""
    count = len(state["entities"])
    if count < 2:
        return []
    read_before = state.get("stated")
    if read_before is None:
        stated = yield from _asked(state, settings)
    else:
        places = places_of(state["entities"])
        stated = [(state["pieces"][each["piece"]], by_place(each["fact"], places)) for each in read_before]
    return [(piece, each) for piece, each in stated if _joins_entities(each, count)]


def wordings(stated: Sequence[Stated]) -> dict[str, str]:
    """Return the predicates that were read, each with the first sentence that has it."""
    return {predicate_name(each.predicate): each.sentence for _, each in reversed(stated)}


def told(stated: Iterable[Stated], known: Mapping[str, Meaning], state: IngestionState) -> list[NewFact]:
    """Return what is stated as facts, once each, their predicates as they are *known*."""
    found: dict[str, NewFact] = {}
    for piece, each in stated:
        fact = _fact(state, piece, each, known)
        found.setdefault(fact["id"], fact)
    return list(found.values())


def places_of(entities: Sequence[NewEntity]) -> dict[str, int]:
    """Return the place of the entity that each name calls, by its canonical form."""
    places: dict[str, int] = {}
    for place, entity in enumerate(entities):
        for name in entity["called"]:
            places.setdefault(canonical_name(name), place)
    return places


def by_place(stated: Mapping[str, Any], places: Mapping[str, int]) -> ExtractedFact:
    """Return the fact with its entities by their *places* instead of names; -1 for what is none."""
    subject, *objects = (
        places.get(canonical_name(display_name(name)), -1) for name in (stated["subject"], *stated["objects"])
    )
    return ExtractedFact.model_validate({**stated, "subject": subject, "objects": objects})


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """Return where *quote* stands in *content*, whatever its case and spaces."""
    quote = quote.strip()
    if not quote:
        return None
    start = content.find(quote)
    if start >= 0:
        return start, start + len(quote)
    found = re.search(r"\s+".join(map(re.escape, quote.split())), content, re.IGNORECASE)
    return found.span() if found else None


def _asked(state: IngestionState, settings: Settings) -> Flow[list[Stated]]:
    answers = yield from every(_ask(state, piece, settings) for piece in state["pieces"])
    return [(state["pieces"][place], each) for place, each in facts_of(answers, settings)]


def _ask(state: IngestionState, piece: Piece, settings: Settings) -> Flow[ExtractedFacts]:
    entities = [
        {"id": place, **{name: each[name] for name in ("name", "type", "called")}}
        for place, each in enumerate(state["entities"])
    ]
    answer = yield from ask(
        FACTS, **fields(state, piece), entities=entities, fact_types=[asdict(each) for each in settings.fact_types],
        instructions=settings.instructions,
    )  # fmt: skip
    return answer


def _joins_entities(stated: ExtractedFact, count: int) -> bool:
    """Tell whether the fact says something, and joins two distinct ones of so many entities."""
    return (
        0 <= stated.subject < count
        and bool(_objects(stated, count))
        and bool(replace_unstorable(stated.sentence).strip())
    )


def _objects(stated: ExtractedFact, count: int) -> list[int]:
    return [each for each in dict.fromkeys(stated.objects) if each != stated.subject and 0 <= each < count]


def _fact(state: IngestionState, piece: Piece, stated: ExtractedFact, known: Mapping[str, Meaning]) -> NewFact:
    entities = state["entities"]
    objects = _objects(stated, len(entities))
    sentence = " ".join(replace_unstorable(stated.sentence).split())
    wording = predicate_name(stated.predicate)
    meaning = known[wording]
    place = locate(stated.quote, piece["content"])
    start, end = place or (0, len(piece["content"]))
    subject_key = entities[stated.subject]["key"]
    object_keys = [entities[each]["key"] for each in objects]
    return {
        "id": fact_id(state["namespace"], subject_key, meaning.name, object_keys, sentence),
        "subject": stated.subject, "subject_id": entities[stated.subject]["id"],
        "predicate": meaning.name, "one_at_a_time": meaning.one_at_a_time, "declared": meaning.declared,
        "family": meaning.family, "wording": wording,
        "objects": objects, "object_ids": [entities[each]["id"] for each in objects], "sentence": sentence,
        "start": piece["start"] + start, "end": piece["start"] + end,
        "quoted": place is not None,
        "said_from": stated.valid_at, "said_until": stated.invalid_at,
        "confidence": min(max(stated.confidence, 0.0), 1.0), "edge_type": stated.edge_type,
        "said_at": state["episode"]["at"], "same_as": None, "corrects": False, "refuted": False, "retold": False,
    }  # fmt: skip
