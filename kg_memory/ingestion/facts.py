"""Step 5, facts: what the episode says about its entities, each with the characters that say it (Zep 2.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kg_memory.ingestion.declared import state_declared
from kg_memory.ingestion.extract import list_surplus
from kg_memory.ingestion.predicates import Meaning, find_meanings, state_fact
from kg_memory.ingestion.records import (
    LIMIT_OF_EPISODE,
    MOST_IN_EPISODE,
    Loss,
    NamedFact,
    Piece,
    ResolvedEntity,
    StatedFact,
)
from kg_memory.ingestion.state import Draft, Update, ask_about, type_fields
from kg_memory.llm.prompts import FACTS
from kg_memory.llm.prompts.answers import ExtractedFact, ExtractedFacts
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import Ask, work_if
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name, replace_unstorable
from kg_memory.text.predicates import is_lasting, is_present, predicate_name

OUTSIDE = "its predicate {} is none of the ontology, which is strict"
UNSUPPORTED = "its quote is not in the message, and no other words there support it"


class Reading(NamedTuple):
    """A fact as it was read, its entities by their places; with the piece that states it, and its place there."""

    piece: Piece
    fact: ExtractedFact
    place: int


Check = Callable[[StatedFact, Reading], StatedFact | None]
"""Returns a fact with its support, and the characters that state it; None where nothing in the message supports it."""


def facts(draft: Draft, settings: Settings) -> Flow[Update]:
    """Find the facts that each piece states between the entities, and join them; a fact of several is a hyper-edge.

    It asks only where the facts were not read together with the entities.
    """
    if draft.episode.is_declared and draft.skipped is None:
        declared, learned = yield from state_declared(draft, settings)
        return {"facts": declared, "predicates": learned}
    readings, left_out = (
        locate_readings(draft) if draft.stated is not None else (yield from ask_readings(draft, settings))
    )
    meanings, learned = yield from find_meanings(wordings(readings), settings, draft.predicates_at)
    stated, refused = yield from work_if(
        draft.episode.is_long, lambda: state_facts(draft, readings, meanings, settings)
    )
    dropped = tuple(dict.fromkeys((*draft.dropped, *left_out, *refused)))
    return {"facts": stated, "predicates": learned, "dropped": dropped}


def ask_readings(draft: Draft, settings: Settings) -> Flow[tuple[list[Reading], list[Loss]]]:
    """Ask what each piece states of the entities; return that, and what is left out of the answers."""
    if not draft.entities:
        return [], []
    answers = yield from every(_ask(draft, piece, settings) for piece in draft.pieces)
    readings = [
        Reading(piece, fact, place)
        for piece, answer in zip(draft.pieces, answers, strict=True)
        for place, fact in enumerate(answer.facts[: settings.max_facts])
    ]
    selected, losses = _select_facts(readings[:MOST_IN_EPISODE], len(draft.entities))
    losses += list_surplus(answers, settings, "facts")
    losses += [Loss("fact", reading.fact.sentence, LIMIT_OF_EPISODE) for reading in readings[MOST_IN_EPISODE:]]
    return selected, losses


def locate_readings(draft: Draft) -> tuple[list[Reading], list[Loss]]:
    """Return what was read together with the entities, and what of it is left out."""
    places = places_of(draft.entities)
    readings = [
        Reading(draft.pieces[named.piece], _locate_ends(named, places), named.place) for named in draft.stated or ()
    ]
    return _select_facts(readings, len(draft.entities))


def wordings(readings: Sequence[Reading]) -> dict[str, str]:
    """Return the predicates that were read, each with the first sentence that has it."""
    return {predicate_name(reading.fact.predicate): reading.fact.sentence for reading in reversed(readings)}


def state_facts(
    draft: Draft,
    readings: Iterable[Reading],
    meanings: Mapping[str, Meaning],
    settings: Settings,
) -> tuple[tuple[StatedFact, ...], list[Loss]]:
    """Return the facts of *readings*, once each, their predicates under the names that *meanings* has for them.

    With them come those that are left out, as no words support them or a strict ontology does not have them.
    """
    losses: list[Loss] = []
    facts: dict[str, StatedFact] = {}
    ids: dict[tuple[int, int], str] = {}
    premises: dict[str, list[tuple[int, int]]] = {}
    check: Check = load_plugin("checks", "support")(draft, settings)
    declared = {predicate_name(type_.name) for type_ in settings.fact_types}
    for reading in _with_kinds(readings, meanings):
        stated = _state(draft, reading.piece, reading.fact, _find_meaning(reading.fact, meanings))
        fact = check(stated, reading)
        if fact is None:
            losses.append(Loss("fact", reading.fact.sentence, UNSUPPORTED))
            continue
        if settings.strict_fact_types and fact.predicate not in declared:
            losses.append(Loss("fact", reading.fact.sentence, OUTSIDE.format(fact.predicate)))
            continue
        if fact.id not in facts or facts[fact.id].weak:
            facts[fact.id] = fact
        ids[reading.piece.start, reading.place] = fact.id
        premises.setdefault(fact.id, []).extend((reading.piece.start, place) for place in reading.fact.rests_on)
    stored = (replace(fact, premises=_find_premises(fact, premises[fact.id], ids)) for fact in facts.values())
    return tuple(stored), losses


def _find_meaning(fact: ExtractedFact, meanings: Mapping[str, Meaning]) -> Meaning:
    """Return the meaning of the predicate; what happens is not the state that it begins, and has a name of its own."""
    name = predicate_name(fact.predicate)
    meaning = meanings[name]
    if name != meaning.name and (fact.kind == "plan" or (fact.kind == "event" and is_present(meaning.name))):
        return Meaning(name, single_valued=False, family="plan" if fact.kind == "plan" else None)
    return meaning


def _with_kinds(readings: Iterable[Reading], meanings: Mapping[str, Meaning]) -> list[Reading]:
    """Return *readings*, an event as the state that it begins where that is not stated beside it: "moved to Oslo"."""
    readings = list(readings)
    names = [meanings[predicate_name(reading.fact.predicate)].name for reading in readings]
    states = {
        (reading.fact.subject, name)
        for reading, name in zip(readings, names, strict=True)
        if reading.fact.kind != "event"
    }
    return [
        reading._replace(fact=reading.fact.model_copy(update={"kind": "state"}))
        if reading.fact.kind == "event" and is_lasting(name) and (reading.fact.subject, name) not in states
        else reading
        for reading, name in zip(readings, names, strict=True)
    ]


def _find_premises(
    fact: StatedFact, places: Iterable[tuple[int, int]], ids: Mapping[tuple[int, int], str]
) -> tuple[str, ...]:
    """Return the ids of the facts at the *places* that *fact* rests on, besides itself."""
    premises = dict.fromkeys(ids[place] for place in places if place in ids)
    return tuple(premise for premise in premises if premise != fact.id)


def places_of(entities: Sequence[ResolvedEntity]) -> dict[str, int]:
    """Return the place of the entity that has each name in this episode, by the name's canonical form."""
    places: dict[str, int] = {}
    for place, entity in enumerate(entities):
        for name in entity.called:
            places.setdefault(canonical_name(name), place)
    return places


def _ask(draft: Draft, piece: Piece, settings: Settings) -> Flow[ExtractedFacts]:
    entities = [
        {"id": place, "name": entity.name, "type": entity.type, "called": list(entity.called)}
        for place, entity in enumerate(draft.entities)
    ]
    more = {"fact_types": type_fields(settings)["fact_types"], "instructions": settings.instructions}
    answer: ExtractedFacts = yield from ask_about(
        draft, lambda seen: Ask(FACTS, {**seen.prompt_fields(piece), "entities": entities, **more})
    )
    return answer


def _locate_ends(named: NamedFact, places: Mapping[str, int]) -> ExtractedFact:
    """Return the fact with its entities by their *places* instead of names; -1 for an unknown one."""
    subject, *objects = (places.get(canonical_name(display_name(name)), -1) for name in (named.subject, *named.objects))
    values = {name: getattr(named, name) for name in ExtractedFact.model_fields}
    return ExtractedFact.model_validate({**values, "subject": subject, "objects": objects})


def _select_facts(readings: Iterable[Reading], count: int) -> tuple[list[Reading], list[Loss]]:
    """Return those of *readings* that say something of *count* entities, and what of them is left out."""
    selected: list[Reading] = []
    losses: list[Loss] = []
    for reading in readings:
        fact = reading.fact
        reason = _why_left_out(fact, count)
        if reason is None:
            selected.append(reading)
        reason = reason or _why_incomplete(fact, count)
        if reason is not None:
            losses.append(Loss("fact", fact.sentence or fact.quote, reason))
    return selected, losses


def _why_left_out(fact: ExtractedFact, count: int) -> str | None:
    if not replace_unstorable(fact.sentence).strip():
        return "it has no sentence"
    if not 0 <= fact.subject < count:
        return "its subject is no entity"
    if not _objects(fact, count) and not set(fact.objects) <= {fact.subject}:
        return "none of its objects is an entity"
    return None


def _why_incomplete(fact: ExtractedFact, count: int) -> str | None:
    """Return why the fact is taken without one of its objects, if it is."""
    has_all = all(0 <= place < count for place in fact.objects)
    return None if has_all else "it is taken without one of its objects, which is no entity"


def _objects(fact: ExtractedFact, count: int) -> list[int]:
    return [place for place in dict.fromkeys(fact.objects) if place != fact.subject and 0 <= place < count]


def _state(draft: Draft, piece: Piece, reading: ExtractedFact, meaning: Meaning) -> StatedFact:
    return state_fact(
        draft,
        reading.subject,
        _objects(reading, len(draft.entities)),
        meaning,
        " ".join(replace_unstorable(reading.sentence).split()),
        wording=predicate_name(reading.predicate),
        start=piece.start,
        end=piece.start + len(piece.content),
        quoted=False,
        stated_from=reading.valid_at,
        stated_until=reading.invalid_at,
        confidence=min(max(reading.confidence, 0.0), 1.0),
        edge_type=reading.edge_type,
        kind=reading.kind,
    )
