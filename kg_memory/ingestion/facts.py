"""Step 5, facts: find the facts that a text states between its entities, and which characters of the text state them.

Each predicate gets a canonical name ("is employed by" -> WORKS_AT) and keeps its wording. The name comes from a user's
correction, the declared fact types, predicates learned in this namespace, or the built-in rules, in this order. The
model is asked about other predicates that are like a known one, and its answer is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.date import set_dates
from kg_memory.ingestion.declared import DeclaredFact, parse_content, to_sentence
from kg_memory.ingestion.extract import ask_facts, list_surplus
from kg_memory.ingestion.records import (
    JSON,
    LIMIT_OF_EPISODE,
    MOST_IN_EPISODE,
    Loss,
    NamedFact,
    NewPredicate,
    Piece,
    ResolvedEntity,
    StatedFact,
)
from kg_memory.ingestion.state import Draft, Update, ask_in_batches
from kg_memory.llm.prompts import PREDICATES
from kg_memory.llm.prompts.answers import CanonicalPredicate, ExtractedFact
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import fetch, read_once
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.temporal.interval import parse_period
from kg_memory.text import predicates as vocabulary
from kg_memory.text.identity import canonical_name, display_name, fact_id, replace_unstorable
from kg_memory.text.predicates import is_past_state, is_present, is_single_valued_state, predicate_name
from kg_memory.text.tokenise import terms

OUTSIDE = "its predicate {} is not a declared fact type, and strict_fact_types is set"
UNSUPPORTED = "its quote is not in the message, and no other words there support it"
INCOMPLETE = "it is stored without one of its objects, which is not an entity"
MOST_CACHED = 4096  # learned predicates; a namespace with more reads the database for each episode
MOST_SHOWN = 100  # existing predicate names that the model is shown
_words_of = lru_cache(maxsize=2 * MOST_CACHED)(lambda name: frozenset(terms(name.replace("_", " "))))
_REPLACES = re.compile(
    r"\b(?:now|instead|no longer|any ?more|switch\w*|swap\w*|replac\w*|changed)\b|换|改|现在|如今|不再|替",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """The canonical name of a predicate, such as LIVES_IN, and its properties.

    `family`: predicates whose facts may contradict each other. `declared`: a person or the settings set
    `single_valued`.
    """

    name: str
    single_valued: bool | None = None
    family: str | None = None
    declared: bool = False


class FactReading(NamedTuple):
    """A fact as the model extracted it, the piece of the text that states it, and its index (*place*) in the answer."""

    piece: Piece
    fact: ExtractedFact
    place: int


Check = Callable[[StatedFact, FactReading], StatedFact | None]
"""Returns a fact with its support score and the place of its quote, or ``None`` if the message does not support it."""


def facts(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 5 of ingestion: return the facts that a text states, the new predicates, and the facts left out."""
    if draft.episode.is_declared and draft.skipped is None:
        declared, learned = yield from state_declared(draft, settings)
        return {"facts": declared, "predicates": learned}
    asked = draft.stated is None
    readings, left_out = (yield from ask_readings(draft, settings)) if asked else convert_named_facts(draft)
    sentences = {predicate_name(reading.fact.predicate): reading.fact.sentence for reading in reversed(readings)}
    meanings, learned = yield from find_meanings(sentences, settings, draft.predicates_at)
    stated, refused = state_facts(draft, readings, meanings, settings)
    dropped = tuple(dict.fromkeys((*draft.dropped, *left_out, *refused)))
    return {"facts": stated, "predicates": learned, "dropped": dropped}


def ask_readings(draft: Draft, settings: Settings) -> Flow[tuple[list[FactReading], list[Loss]]]:
    """Ask the model for the facts in each part of the text; return (usable facts, facts left out with reasons)."""
    if not draft.entities:
        return [], []
    answers = yield from every(ask_facts(draft, piece, settings) for piece in draft.pieces)
    readings = [
        FactReading(piece, fact, index)
        for piece, answer in zip(draft.pieces, answers, strict=True)
        for index, fact in enumerate(answer.facts[: settings.max_facts])
    ]
    selected, losses = _select_facts(readings[:MOST_IN_EPISODE], len(draft.entities))
    losses += list_surplus(answers, settings, "facts")
    losses += [Loss("fact", reading.fact.sentence, LIMIT_OF_EPISODE) for reading in readings[MOST_IN_EPISODE:]]
    return selected, losses


def convert_named_facts(draft: Draft) -> tuple[list[FactReading], list[Loss]]:
    """Convert `draft.stated`, facts with entity names, to (facts with indexes in `draft.entities`, facts left out)."""
    indexes = index_by_name(draft.entities)
    readings = [
        FactReading(draft.pieces[named.piece], _to_indexes(named, indexes), named.place) for named in draft.stated or ()
    ]
    return _select_facts(readings, len(draft.entities))


def state_facts(
    draft: Draft, readings: Iterable[FactReading], meanings: Mapping[str, Meaning], settings: Settings
) -> tuple[tuple[StatedFact, ...], list[Loss]]:
    """Convert *readings*, facts as the model extracted them, to (facts to store, facts left out with reasons)."""
    losses: list[Loss] = []
    facts: dict[str, StatedFact] = {}
    ids: dict[tuple[int, int], str] = {}
    premises: dict[str, list[tuple[int, int]]] = {}
    check: Check = load_plugin("checks", "support")(draft, settings)
    declared = {predicate_name(type_.name) for type_ in settings.fact_types}
    for reading in _with_kinds(readings, meanings):
        fact = check(_to_undated(draft, reading.piece, reading.fact, _predicate_of(reading.fact, meanings)), reading)
        if fact is None:
            losses.append(Loss("fact", reading.fact.sentence, UNSUPPORTED))
            continue
        if settings.strict_fact_types and fact.predicate not in declared:
            losses.append(Loss("fact", reading.fact.sentence, OUTSIDE.format(fact.predicate)))
            continue
        if fact.id not in facts or facts[fact.id].weak:
            facts[fact.id] = fact
        ids[reading.piece.start, reading.place] = fact.id
        premises.setdefault(fact.id, []).extend((reading.piece.start, index) for index in reading.fact.rests_on)
    stored: list[StatedFact] = []
    for fact in facts.values():
        named = dict.fromkeys(ids.get(key, fact.id) for key in premises[fact.id])
        stored.append(replace(fact, premises=tuple(premise for premise in named if premise != fact.id)))
    return tuple(stored), losses


def _predicate_of(fact: ExtractedFact, meanings: Mapping[str, Meaning]) -> Meaning:
    """Return the predicate to store for *fact*: the canonical one, but a plan keeps the model's.

    So does an event whose canonical predicate is in the present tense.
    """
    name = predicate_name(fact.predicate)
    meaning = meanings[name]
    if name != meaning.name and (fact.kind == "plan" or (fact.kind == "event" and is_present(meaning.name))):
        return Meaning(name, single_valued=False, family="plan" if fact.kind == "plan" else None)
    return meaning


def _with_kinds(readings: Iterable[FactReading], meanings: Mapping[str, Meaning]) -> Iterator[FactReading]:
    """Yield *readings* with events turned into the states they begin: "moved to" into LIVES_IN."""
    named = [(reading, meanings[predicate_name(reading.fact.predicate)].name) for reading in readings]
    states = {(reading.fact.subject, name) for reading, name in named if reading.fact.kind != "event"}
    for reading, name in named:
        fact = reading.fact
        begins = fact.kind == "event" and is_single_valued_state(name) and (fact.subject, name) not in states
        yield reading._replace(fact=fact.model_copy(update={"kind": "state"})) if begins else reading


def index_by_name(entities: Sequence[ResolvedEntity]) -> dict[str, int]:
    """Return the index in *entities* by each name that the text uses for the entity: ``{"ann": 0, "annie": 0}``."""
    indexes: dict[str, int] = {}
    for index, entity in enumerate(entities):
        for name in entity.called:
            indexes.setdefault(canonical_name(name), index)
    return indexes


def _to_indexes(named: NamedFact, indexes: Mapping[str, int]) -> ExtractedFact:
    subject, *objects = (indexes.get(canonical_name(display_name(end)), -1) for end in (named.subject, *named.objects))
    values = {name: getattr(named, name) for name in ExtractedFact.model_fields}
    return ExtractedFact.model_validate({**values, "subject": subject, "objects": objects})


def _select_facts(readings: Iterable[FactReading], count: int) -> tuple[list[FactReading], list[Loss]]:
    selected: list[FactReading] = []
    losses: list[Loss] = []
    for reading in readings:
        fact = reading.fact
        reason = _why_left_out(fact, count)
        if reason is None:
            selected.append(reading)
            reason = None if all(0 <= index < count for index in fact.objects) else INCOMPLETE
        if reason is not None:
            losses.append(Loss("fact", fact.sentence or fact.quote, reason))
    return selected, losses


def _why_left_out(fact: ExtractedFact, count: int) -> str | None:
    if not replace_unstorable(fact.sentence).strip():
        return "it has no sentence"
    if not 0 <= fact.subject < count:
        return "its subject is not an entity"
    if not _objects(fact, count) and not set(fact.objects) <= {fact.subject}:
        return "none of its objects is an entity"
    return None


def _objects(fact: ExtractedFact, count: int) -> list[int]:
    return [index for index in dict.fromkeys(fact.objects) if index != fact.subject and 0 <= index < count]


def _to_undated(draft: Draft, piece: Piece, reading: ExtractedFact, meaning: Meaning) -> StatedFact:
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


def state_fact(
    draft: Draft, subject: int, objects: Sequence[int], meaning: Meaning, sentence: str, **fields: Any
) -> StatedFact:
    """Build a fact without dates; *subject* and *objects*: indexes in `draft.entities`; *fields*: its other fields."""
    words = draft.episode.text[fields.get("start", 0) : fields.get("end", 0)]
    ends = [draft.entities[index] for index in objects]
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


# Declared facts


def state_declared(draft: Draft, settings: Settings) -> Flow[tuple[tuple[StatedFact, ...], tuple[NewPredicate, ...]]]:
    """Return the facts that an application declared as JSON, with dates, and the new predicates."""
    declared = parse_content(draft.episode.content)
    sentences = {predicate_name(fact.predicate): fact.sentence for fact in reversed(declared)}
    meanings, learned = yield from find_meanings(sentences, settings, draft.predicates_at)
    return tuple(_to_stated(draft, declared, meanings)), learned


def _to_stated(draft: Draft, declared: Sequence[DeclaredFact], meanings: Mapping[str, Meaning]) -> Iterator[StatedFact]:
    """Convert facts that an application declared to facts with dates; *meanings*: canonical predicates by name."""
    content, zone = draft.episode.content, timezone(timedelta(minutes=draft.episode.offset))
    indexes = index_by_name(draft.entities)
    seen = set[tuple[str, int, int]]()
    after = 0
    for fact in declared:
        written = json.dumps(fact.sentence, ensure_ascii=False)[1:-1]
        start = content.find(written, after)
        quoted, end = start >= 0, start + len(written)
        after = end if quoted else after
        meaning = meanings[predicate_name(fact.predicate)]
        subject, *objects = dict.fromkeys(indexes[canonical_name(name)] for name in (fact.subject, *fact.objects))
        undated = state_fact(
            draft,
            subject,
            objects,
            meaning,
            fact.sentence,
            wording=predicate_name(fact.predicate),
            declared=meaning.single_valued is not None,
            start=start if quoted else 0,
            end=end if quoted else len(content),
            quoted=quoted,
            stated_from=fact.valid_at,
            stated_until=fact.invalid_at,
            confidence=fact.confidence,
            edge_type="semantic",
            kind="former" if is_past_state(fact.predicate) else "state",
            support=1.0,
            is_triple=fact.sentence == to_sentence(fact.subject, fact.predicate, fact.objects),
            premises=fact.rests_on,
        )
        stated = set_dates(undated, parse_period(fact.valid_at, zone), parse_period(fact.invalid_at, zone))
        times = stated.id, stated.valid_at, stated.invalid_at
        if times not in seen:
            seen.add(times)
            yield stated


def find_meanings(
    predicates: Mapping[str, str], settings: Settings, changed_at: int | None = None
) -> Flow[tuple[dict[str, Meaning], tuple[NewPredicate, ...]]]:
    """Return (canonical predicates by name, predicates newly learned from the model) for all *predicates*."""
    if not predicates:
        return {}, ()
    rules = {name: rule.name for name in predicates if (rule := vocabulary.canonical_predicate(name))}
    stored = yield from _read_stored({*predicates, *rules.values()}, changed_at)
    meanings: dict[str, Meaning] = {}
    missing: dict[str, str] = {}
    for name, sentence in predicates.items():
        row, of_rule = stored.get(name), stored.get(rules.get(name, ""))
        if row is None and of_rule is not None and of_rule["origin"] == "corrected":
            row = of_rule  # a person's correction of a predicate applies to its synonyms
        if row and row["single_valued"] is None and row["origin"] == "learned":
            row = None  # it was kept without asking; now that it comes again, it is asked about
        meaning = _look_up(name, row, settings)
        meanings[name] = meaning or Meaning(name)  # kept if the model's answer leaves it out
        missing |= {} if meaning else {name: sentence}
    learned = (yield from _ask_meanings(missing, stored, settings)) if missing else {}
    meanings |= {name: _meaning(one.canonical, one.single_valued) for name, one in learned.items()}
    return meanings, tuple(learned.values())


def _ask_meanings(
    missing: Mapping[str, str], stored: Mapping[str, Row], settings: Settings
) -> Flow[dict[str, NewPredicate]]:
    """Ask the model for a standard predicate for each name in *missing*, ``{name: sentence}``."""
    types = (predicate_name(declared.name) for declared in settings.fact_types)
    in_use = dict.fromkeys((*types, *(row["canonical"] for row in stored.values()), *vocabulary.canonical_predicates()))
    words = {name: _words_of(name) for name in (*in_use, *missing)}
    alike = {n: {k for k in in_use if settings.fact_types or not n.isascii() or words[n] & words[k]} for n in missing}
    known = [name for name in in_use if any(name in names for names in alike.values())][:MOST_SHOWN]
    items = [{"name": name, "sentence": told} for name, told in missing.items() if alike[name] or name in stored]
    answers = yield from ask_in_batches(PREDICATES, "predicates", items, {"known": known})
    given = (row for answer in answers for row in answer.predicates if row.name in missing)
    learned = {row.name: _new_predicate(row, settings) for row in given}
    learned |= {name: replace(learned[name], canonical=name) for name in learned if name in stored}
    return {name: NewPredicate(name, name, None) for name in missing if not alike[name]} | learned


def _read_stored(names: Iterable[str], changed_at: int | None) -> Flow[dict[str, JSON]]:
    rows = yield from read_once(changed_at, queries.ALL_PREDICATES, skip=0, limit=MOST_CACHED)
    if len(rows) == MOST_CACHED:
        rows = [*rows, *(yield from fetch(queries.PREDICATES, names=sorted(names)))]
    return {row["predicate"]["name"]: row["predicate"] for row in rows}


def _look_up(name: str, stored: Row | None, settings: Settings) -> Meaning | None:
    """Return the canonical predicate of *name*, or None if unknown.

    A person's correction comes first, then *settings*, other stored predicates, and built-in rules.
    """
    if stored is not None and stored["origin"] == "corrected":
        single_valued = stored["single_valued"]
        return _meaning(stored["canonical"], single_valued, declared=single_valued is not None)
    declared = vocabulary.declared_predicate(name, settings.fact_types)
    if declared is not None:
        names = {predicate_name(fact.name) for fact in settings.fact_types if fact.single_valued is not None}
        return Meaning(declared.name, declared.single_valued, declared.family, declared=declared.name in names)
    if stored is not None:
        return _meaning(stored["canonical"], stored["single_valued"])
    rule = vocabulary.canonical_predicate(name)
    return Meaning(rule.name, rule.single_valued, rule.family) if rule else None


def _meaning(canonical: str, single_valued: bool | None, *, declared: bool = False) -> Meaning:  # noqa: FBT001
    rule = vocabulary.canonical_predicate(canonical)
    return Meaning(canonical, single_valued, rule.family if rule else None, declared=declared)


def _new_predicate(answer: CanonicalPredicate, settings: Settings) -> NewPredicate:
    name = predicate_name(answer.canonical)
    meaning = _look_up(name, None, settings) or Meaning(name, answer.one_at_a_time)
    single_valued = meaning.single_valued if meaning.single_valued is not None else answer.one_at_a_time
    return NewPredicate(answer.name, meaning.name, single_valued)
