"""Step 4, resolve: which entities are known already, under this name or another (Zep 2.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory import words
from kg_memory.effects import Vector, embed, read
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.identity import alias_key, canonical, entity_id, entity_key
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.extract import fields
from kg_memory.ingestion.state import IngestionState, NewEntity
from kg_memory.prompts import RESOLVE
from kg_memory.settings import Settings

Candidate = dict[str, Any]


def resolve(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Find each entity among the known ones: by its names, its meaning and its words.

    The same name and type is the same entity, and so is a name from `merge_threshold` of similarity;
    what stays ambiguous is asked in one question for all.
    """
    entities = state["entities"]
    namespace = state["namespace"]
    vectors = yield from embed([each["name"] for each in entities])
    known = yield from candidates(entities, vectors, settings)
    decided = {new: same for new, found in known.items() if (same := _certain(entities[new], found, settings))}
    unsure = {new: found for new, found in known.items() if new not in decided and found}
    names: dict[int, str] = {}
    if unsure:
        answered, names = yield from _ask(state, unsure)
        decided |= answered
    resolved = (
        _known(entity, decided[new], names.get(new)) if new in decided else _unknown(entity, namespace)
        for new, entity in enumerate(entities)
    )
    return {"entities": _joined(resolved)}


def candidates(
    entities: Sequence[NewEntity], vectors: Sequence[Vector], settings: Settings
) -> Flow[dict[int, list[Candidate]]]:
    """Return the known entities that each new one may be, by its place, best first."""
    names = [
        {
            "new": new,
            "alias": alias_key(each["name"]),
            "embedding": vector,
            "terms": sorted(set(words.tokens(each["name"]))),
        }
        for new, (each, vector) in enumerate(zip(entities, vectors, strict=True))
    ]
    if not names:
        return {}
    limit = settings.candidates
    rows = yield from read(cypher.SIMILAR_ENTITIES, names=names, limit=limit, threshold=settings.ask_threshold or 0.0)
    return {new: _best((row for row in rows if row["new"] == new), limit) for new in range(len(entities))}


def _best(rows: Iterable[Mapping[str, Any]], limit: int) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for row in rows:
        entity = dict(row["entity"])
        known = best.setdefault(entity["id"], {**entity, "score": row["score"]})
        known["score"] = max(known["score"], row["score"])
    return sorted(best.values(), key=lambda each: (-each["score"], each["id"]))[:limit]


def _certain(entity: NewEntity, found: Sequence[Candidate], settings: Settings) -> Candidate | None:
    """Return the one candidate that *entity* is beyond doubt, if there is one."""
    default = settings.entity_types[0].name
    fitting = [each for each in found if each["type"] == entity["type"] or default in (each["type"], entity["type"])]
    called = [each for each in fitting if alias_key(entity["name"]) in _keys(each)]
    if called:
        same_type = [each for each in called if each["type"] == entity["type"]]
        return (same_type or called)[0] if len(same_type or called) == 1 else None
    enough = 1.0 if settings.merge_threshold is None else settings.merge_threshold
    close = [each for each in fitting if each["score"] >= enough]
    return close[0] if len(close) == 1 and _digits(close[0]["name"]) == _digits(entity["name"]) else None


def _ask(
    state: IngestionState, unsure: Mapping[int, Sequence[Candidate]]
) -> Flow[tuple[dict[int, Candidate], dict[int, str]]]:
    asked = [
        {
            "id": new,
            "name": state["entities"][new]["name"],
            "type": state["entities"][new]["type"],
            "candidates": [
                {"id": place, **{name: each[name] for name in ("name", "type", "summary", "aliases", "score")}}
                for place, each in enumerate(found)
            ],
        }
        for new, found in unsure.items()
    ]
    answers = yield from ask_in_batches(RESOLVE, "entities", asked, **fields(state, state["pieces"][0]))
    same: dict[int, Candidate] = {}
    names: dict[int, str] = {}
    for each in (each for answer in answers for each in answer.resolutions):
        found = unsure.get(each.entity, ())
        if each.same_as is not None and 0 <= each.same_as < len(found):
            same[each.entity] = found[each.same_as]
            names[each.entity] = each.name
    return same, names


def _known(entity: NewEntity, same: Candidate, name: str | None) -> NewEntity:
    """Return the known entity, under the fullest name that was given for it, with the new name as an alias."""
    given: dict[str, str] = {canonical(each): each for each in (same["name"], entity["name"], *same["aliases"])}
    fullest = given[canonical(name)] if name and canonical(name) in given else str(same["name"])
    names = dict.fromkeys((str(same["name"]), entity["name"]))
    aliases = [each for each in names if each != fullest and each not in same["aliases"]]
    return {
        "name": fullest, "type": same["type"], "key": same["key"], "id": same["id"], "known": True,
        "renamed": fullest != same["name"], "aliases": aliases, "called": [entity["name"]],
    }  # fmt: skip


def _joined(entities: Iterable[NewEntity]) -> list[NewEntity]:
    """Return *entities* with those that turned out to be one joined, under the new name if there is one."""
    joined: dict[str, NewEntity] = {}
    for each in entities:
        first = joined.setdefault(each["key"], each)
        named = each if each["renamed"] and not first["renamed"] else first
        names = dict.fromkeys((*first["aliases"], *each["aliases"]))
        called = list(dict.fromkeys((*first["called"], *each["called"])))
        aliases = [name for name in names if name != named["name"]]
        joined[each["key"]] = {**named, "called": called, "aliases": aliases}
    return list(joined.values())


def _unknown(entity: NewEntity, namespace: str) -> NewEntity:
    key = entity_key(entity["name"], entity["type"])
    return {
        **entity, "key": key, "id": entity_id(namespace, key), "known": False, "renamed": False, "aliases": [],
        "called": [entity["name"]],
    }  # fmt: skip


def _keys(candidate: Candidate) -> set[str]:
    return {alias_key(name) for name in (candidate["name"], *candidate["aliases"])}


def _digits(name: str) -> list[str]:
    return [char for char in name if char.isdigit()]
