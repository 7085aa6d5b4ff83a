"""Part of step 7: what the model is told of a new fact and the known ones, and what it says of each pair.

A verdict is kept by what was told of its pair: the same pair told alike is asked about once, whenever and in whatever
company it was asked first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.records import IngestionState, NewFact
from kg_memory.llm.prompts import JUDGE
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import instant, iso
from kg_memory.text import predicates

Known = dict[str, Any]
"""A known fact, as `cypher` tells it."""
Told = dict[str, Any]
"""A new fact and, under `existing`, known ones, as the prompt is told them."""


def told(new: int, among: Sequence[Known], facts: Sequence[NewFact], state: IngestionState) -> Told:
    """Return one of the new *facts*, by its place, and the known ones as the prompt is told them."""
    fact, entities, episode = facts[new], state["entities"], state["episode"]
    # An entity that got a fuller name is told under that name on both sides.
    names = {each["id"]: each["name"] for each in entities}
    own = {
        "subject": entities[fact["subject"]]["name"],
        "predicate": fact["predicate"],
        "objects": [entities[each]["name"] for each in fact["objects"]],
        "sentence": fact["sentence"],
        "quote": episode["content"][fact["start"] : fact["end"]],
        "said_at": _iso(episode["at"]),
        "valid_at": _iso(fact["valid_at"]),
        "invalid_at": _iso(fact["invalid_at"]),
        "one_at_a_time": bool(fact["one_at_a_time"]),
    }
    return {**_brief(own), "existing": [_known(row, names, fact) for row in among]}


def pairs_of(fact: Told) -> list[str]:
    """Return a key for each pair of the new *fact* and a known one: by all that is told of the two."""
    new = {name: value for name, value in fact.items() if name != "existing"}
    return [hashlib.sha256(json.dumps([new, known]).encode()).hexdigest()[:32] for known in fact["existing"]]


def answered(asked: Mapping[int, Told], judged: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Return *judged* and what the model says of the other pairs, empty where the two are unrelated.

    The new facts are told under the numbers that they have in *asked*, the known ones by their place.
    """
    pairs: dict[int, list[str]] = {}
    questions: list[Told] = []
    for new, fact in asked.items():
        unseen = [
            (pair, known) for pair, known in zip(pairs_of(fact), fact["existing"], strict=True) if pair not in judged
        ]
        if unseen:
            pairs[new] = [pair for pair, _ in unseen]
            existing = [{"id": place, **known} for place, (_, known) in enumerate(unseen)]
            questions.append({"id": new, **fact, "existing": existing})
    answers = yield from ask_in_batches(JUDGE, "facts", questions)
    found = {**judged, **{pair: {} for among in pairs.values() for pair in among}}
    for each in chain.from_iterable(answer.verdicts for answer in answers):
        if 0 <= each.known < len(pairs.get(each.fact, ())):
            found[pairs[each.fact][each.known]] = each.model_dump()
    return found


def _known(row: Known, names: Mapping[str, str], new: NewFact) -> dict[str, Any]:
    fact = row["fact"]
    rule = predicates.canonical_predicate(fact["predicate"])
    one_at_a_time = new["one_at_a_time"] if fact["predicate"] == new["predicate"] else rule and rule.one_at_a_time
    known = {
        "subject": names.get(fact["subject_id"], fact["subject"]),
        "predicate": fact["predicate"],
        "objects": sorted(names.get(id_, name) for id_, name in zip(row["object_ids"], row["objects"], strict=True)),
        "sentence": fact["sentence"],
        "said_at": _iso(row["told_at"]),
        "valid_at": _iso(row["valid_at"]),
        "invalid_at": _iso(row["invalid_at"]),
        "one_at_a_time": bool(one_at_a_time),
    }
    return _brief(known)


def _brief(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is *told* without what is not so or not known, which would be an eighth of its tokens."""
    return {name: value for name, value in told.items() if value is not None and value is not False}


def _iso(micros: int | None) -> str | None:
    moment = instant(micros)
    return None if moment is None else iso(moment)
