"""Part of step 5: each predicate under its one canonical name, the wording kept (C55).

A person's correction counts first, then the declared fact types, what was learned in this namespace, the rules; the
model is asked only about what none of them knows, once for all of an episode, and its answer is kept in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor.queries import facts as cypher
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.records import NewPredicate
from kg_memory.llm.prompts import PREDICATES
from kg_memory.llm.prompts.answers import CanonicalPredicate
from kg_memory.runtime.effects import read, read_once
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import predicates as vocabulary

MOST_KNOWN = 4096
"""How many learned predicates are held in the process (C55); where there are more, the database is asked each time."""
MOST_SHOWN = 100
"""How many of the names in use the model is shown, at most."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a predicate is kept as, and the family within which facts may contradict each other.

    `declared` tells that a person or the settings say whether it is `one_at_a_time`.
    """

    name: str
    one_at_a_time: bool | None = None
    family: str | None = None
    declared: bool = False


def meanings(
    predicates: Mapping[str, str],
    settings: Settings,
    before: Iterable[NewPredicate] = (),
    changed_at: int | None = None,
) -> Flow[tuple[dict[str, Meaning], list[NewPredicate]]]:
    """Return what each of *predicates* (by name, with a sentence that has it) means, and what was learned of it.

    Those that were learned *before*, ahead of their turn, are not asked about again. *changed_at* is when one was
    learned or corrected last: what was read since then is known.
    """
    if not predicates:
        return {}, []
    found, new, stored = yield from _known_ones(predicates, settings, before, changed_at)
    missing = [{"name": name, "sentence": said} for name, said in predicates.items() if name not in found]
    if not missing:
        return found, list(new.values())
    types = (vocabulary.predicate_name(each.name) for each in settings.fact_types)
    learned_names = (each["canonical"] for each in stored.values())
    known = list(dict.fromkeys((*types, *learned_names, *vocabulary.canonical_predicates())))
    answers = yield from ask_in_batches(PREDICATES, "predicates", missing, known=known[:MOST_SHOWN])
    learned = [_learned(each, settings) for answer in answers for each in answer.predicates if each.name in predicates]
    new |= {each["name"]: each for each in learned if each["name"] not in found}
    for name in predicates:
        if name not in found:
            fresh = new.get(name)
            found[name] = Meaning(*_stored(fresh)) if fresh else Meaning(name)
    return found, list(new.values())


def known_meanings(
    predicates: Mapping[str, str],
    settings: Settings,
    before: Iterable[NewPredicate] = (),
    changed_at: int | None = None,
) -> Flow[dict[str, Meaning]]:
    """Return what those of *predicates* mean about which nobody need be asked; as `meanings`."""
    if not predicates:
        return {}
    found, _, _ = yield from _known_ones(predicates, settings, before, changed_at)
    return found


def _known_ones(
    predicates: Iterable[str], settings: Settings, before: Iterable[NewPredicate], changed_at: int | None
) -> Flow[tuple[dict[str, Meaning], dict[str, NewPredicate], dict[str, dict[str, Any]]]]:
    """Return the meanings that are known, those of them that were learned before, and all that is stored."""
    rules = {name: rule.name for name in predicates if (rule := vocabulary.canonical_predicate(name))}
    stored = yield from _stored_ones({*predicates, *rules.values()}, changed_at)
    found: dict[str, Meaning] = {}
    for name in predicates:
        told, of_rule = stored.get(name), stored.get(rules.get(name, ""))
        if told is None and of_rule is not None and of_rule["origin"] == "corrected":
            told = of_rule  # what a person said of a predicate counts for its synonyms
        meaning = _known(name, told, settings)
        if meaning is not None:
            found[name] = meaning
    new = {each["name"]: each for each in before if each["name"] in predicates and each["name"] not in found}
    found |= {name: Meaning(*_stored(told)) for name, told in new.items()}
    return found, new, stored


def _stored_ones(names: Iterable[str], changed_at: int | None) -> Flow[dict[str, dict[str, Any]]]:
    """Return what is stored of the predicates called *names*, and of others, by their names."""
    rows = yield from read_once(changed_at, cypher.ALL_PREDICATES, skip=0, limit=MOST_KNOWN)
    if len(rows) == MOST_KNOWN:
        rows = [*rows, *(yield from read(cypher.PREDICATES, names=sorted(names)))]
    return {row["predicate"]["name"]: row["predicate"] for row in rows}


def _known(name: str, stored: Mapping[str, Any] | None, settings: Settings) -> Meaning | None:
    """Return what *name* means by all that was said, set and is known of it; ``None`` for a miss."""
    if stored is not None and stored["origin"] == "corrected":
        return Meaning(*_stored(stored), declared=stored["one_at_a_time"] is not None)
    declared = vocabulary.declared_predicate(name, settings.fact_types)
    if declared is not None:
        said = any(each.one_at_a_time is not None for each in settings.fact_types if _is(each.name, declared.name))
        return Meaning(declared.name, declared.one_at_a_time, declared.family, declared=said)
    if stored is not None:
        return Meaning(*_stored(stored))
    rule = vocabulary.canonical_predicate(name)
    return Meaning(rule.name, rule.one_at_a_time, rule.family) if rule else None


def _is(name: str, canonical: str) -> bool:
    return vocabulary.predicate_name(name) == canonical


def _stored(told: Mapping[str, Any]) -> tuple[str, bool | None, str | None]:
    rule = vocabulary.canonical_predicate(told["canonical"])
    return told["canonical"], told["one_at_a_time"], rule.family if rule else None


def _learned(each: CanonicalPredicate, settings: Settings) -> NewPredicate:
    """Return what the model said, its canonical name brought to the one that the rules or the settings have for it."""
    name = vocabulary.predicate_name(each.canonical)
    meaning = _known(name, None, settings) or Meaning(name, each.one_at_a_time)
    flag = meaning.one_at_a_time if meaning.one_at_a_time is not None else each.one_at_a_time
    return {"name": each.name, "canonical": meaning.name, "one_at_a_time": flag, "origin": "learned"}
