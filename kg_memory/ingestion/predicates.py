"""Part of step 5: facts by the canonical names of their predicates, the wording kept (C55).

A person's correction counts first, then the declared fact types, what was learned in this namespace, the rules; the
model is asked only about predicates that none of them knows, once for all of an episode, and its answer is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON, NewPredicate, StatedFact
from kg_memory.ingestion.state import Draft, ask_in_batches
from kg_memory.llm.prompts import PREDICATES
from kg_memory.llm.prompts.answers import CanonicalPredicate
from kg_memory.runtime.effects import read, read_once
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import predicates as vocabulary
from kg_memory.text.identity import fact_id

MOST_CACHED = 4096
"""The most learned predicates that are cached (C55); where there are more, the database is asked each time."""
MOST_SHOWN = 100
"""The most names in use that the model is shown."""
_REPLACES = re.compile(
    r"\b(?:now|instead|no longer|any ?more|switch\w*|swap\w*|replac\w*|changed)\b|换|改|现在|如今|不再|替",
    re.IGNORECASE,
)
"""Words that tell that something is otherwise now."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The name of a predicate, and the family within which facts may contradict each other.

    `declared` tells that a person or the settings say whether it is `single_valued`.
    """

    name: str
    single_valued: bool | None = None
    family: str | None = None
    declared: bool = False


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


def find_meanings(
    predicates: Mapping[str, str], settings: Settings, changed_at: int | None = None
) -> Flow[tuple[dict[str, Meaning], tuple[NewPredicate, ...]]]:
    """Return what each of *predicates* (by name, with a sentence that has it) means, and what was learned of it.

    *changed_at* is when one was learned or corrected last: what was read since then is cached.
    """
    if not predicates:
        return {}, ()
    rules = {name: rule.name for name in predicates if (rule := vocabulary.canonical_predicate(name))}
    stored = yield from _read_stored({*predicates, *rules.values()}, changed_at)
    meanings: dict[str, Meaning | None] = {}
    for name in predicates:
        row, of_rule = stored.get(name), stored.get(rules.get(name, ""))
        if row is None and of_rule is not None and of_rule["origin"] == "corrected":
            row = of_rule  # a person's correction of a predicate counts for its synonyms
        meanings[name] = _find_meaning(name, row, settings)
    missing = {name: sentence for name, sentence in predicates.items() if meanings[name] is None}
    learned = yield from _ask(missing, stored, settings)
    named = {name: _meaning(one.canonical, one.single_valued) for name, one in learned.items()}
    # One that no answer names is its own canonical name.
    return {name: meaning or named.get(name, Meaning(name)) for name, meaning in meanings.items()}, tuple(
        learned.values()
    )


def _ask(missing: Mapping[str, str], stored: Mapping[str, Row], settings: Settings) -> Flow[dict[str, NewPredicate]]:
    """Ask what the predicates *missing* mean, and return by names what the answers say."""
    if not missing:
        return {}
    types = (vocabulary.predicate_name(declared.name) for declared in settings.fact_types)
    in_use = dict.fromkeys((*types, *(row["canonical"] for row in stored.values()), *vocabulary.canonical_predicates()))
    items = [{"name": name, "sentence": sentence} for name, sentence in missing.items()]
    answers = yield from ask_in_batches(PREDICATES, "predicates", items, {"known": list(in_use)[:MOST_SHOWN]})
    rows = (row for answer in answers for row in answer.predicates if row.name in missing)
    return {row.name: _new_predicate(row, settings) for row in rows}


def _read_stored(names: Iterable[str], changed_at: int | None) -> Flow[dict[str, JSON]]:
    """Return the stored predicates called *names*, and others, by their names."""
    rows = yield from read_once(changed_at, queries.ALL_PREDICATES, skip=0, limit=MOST_CACHED)
    if len(rows) == MOST_CACHED:
        rows = [*rows, *(yield from read(queries.PREDICATES, names=sorted(names)))]
    return {row["predicate"]["name"]: row["predicate"] for row in rows}


def _find_meaning(name: str, stored: Row | None, settings: Settings) -> Meaning | None:
    """Return what *name* means by a correction, the settings, what is *stored* and the rules; ``None`` for a miss."""
    if stored is not None and stored["origin"] == "corrected":
        single_valued = stored["single_valued"]
        return _meaning(stored["canonical"], single_valued, declared=single_valued is not None)
    declared = vocabulary.declared_predicate(name, settings.fact_types)
    if declared is not None:
        names = {vocabulary.predicate_name(fact.name) for fact in settings.fact_types if fact.single_valued is not None}
        is_set = declared.name in names
        return Meaning(declared.name, declared.single_valued, declared.family, declared=is_set)
    if stored is not None:
        return _meaning(stored["canonical"], stored["single_valued"])
    rule = vocabulary.canonical_predicate(name)
    return Meaning(rule.name, rule.single_valued, rule.family) if rule else None


def _meaning(canonical: str, single_valued: bool | None, *, declared: bool = False) -> Meaning:  # noqa: FBT001
    rule = vocabulary.canonical_predicate(canonical)
    return Meaning(canonical, single_valued, rule.family if rule else None, declared=declared)


def _new_predicate(answer: CanonicalPredicate, settings: Settings) -> NewPredicate:
    """Return what the model said, its canonical name brought to the one that the rules or the settings have for it."""
    name = vocabulary.predicate_name(answer.canonical)
    meaning = _find_meaning(name, None, settings) or Meaning(name, answer.one_at_a_time)
    single_valued = meaning.single_valued if meaning.single_valued is not None else answer.one_at_a_time
    return NewPredicate(answer.name, meaning.name, single_valued)
