"""Step 4, resolve: which entities are known already, under this name or another (Zep 2.2.1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from kg_memory.falkor.queries import ingestion as cypher
from kg_memory.falkor.schema import refuse_other_vectors
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.extract import opening_fields
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.records import Identity, IngestionState, NewEntity
from kg_memory.ingestion.settle import judging, naming
from kg_memory.llm.joint import as_one
from kg_memory.llm.prompts import RESOLVE
from kg_memory.runtime.effects import Vector, embed, embedding_model, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, canonical_name, entity_id, entity_key

Candidate = dict[str, Any]
MOST_ALIASES = 50
"""How many other names an entity may have; each is told wherever it is compared with a new one."""
log = logging.getLogger("kg_memory.ingestion")


def resolve(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Find each entity among the known ones: by its names, its meaning and its words.

    The same name and type is the same entity, and so is a name from `merge_threshold` of similarity;
    what stays ambiguous is asked in one question for all, and with it what later steps will ask, if that is read.
    """
    entities = state["entities"]
    # With the names, what later steps will embed: they find it known, and one request is all.
    stated = [each["fact"]["sentence"] for each in state.get("stated") or ()]
    later = [line(state["episode"]), *stated] if entities else []
    vectors = yield from embed([*(each["name"] for each in entities), *later])
    known = yield from candidates(entities, vectors[: len(entities)], settings)
    before = state.get("identified") or {}
    told = {new: identity for new, each in enumerate(entities) if (identity := told_before(each, known[new], before))}
    unsure = {new: found for new, found in unclear(entities, known, settings).items() if new not in told}
    settled: dict[str, Any] = {}
    if unsure:
        asking = identified({new: entities[new] for new in unsure}, unsure, opening_fields(state))
        if state.get("stated") is None:
            told |= yield from asking
        else:
            guess = resolved(entities, known, told | likely(entities, unsure), state["namespace"], settings)
            supposed = cast("IngestionState", {**state, "entities": guess})
            answers = yield from as_one(asking, naming(supposed, settings), judging(supposed, settings))
            told |= answers[0]
            settled = {"learned": answers[1], **answers[2]}
    return {"entities": resolved(entities, known, told, state["namespace"], settings), **settled}


def unclear(
    entities: Sequence[NewEntity], known: Mapping[int, list[Candidate]], settings: Settings
) -> dict[int, list[Candidate]]:
    """Return the candidates of those entities that code alone cannot tell which they are, by their places."""
    return {new: found for new, found in known.items() if found and not certain(entities[new], found, settings)}


def resolved(
    entities: Sequence[NewEntity],
    known: Mapping[int, list[Candidate]],
    told: Mapping[int, Identity],
    namespace: str,
    settings: Settings,
) -> list[NewEntity]:
    """Return *entities* as those *known* ones that they are beyond doubt, or were *told* to be, else as new ones."""

    def one(new: int, entity: NewEntity) -> NewEntity:
        same = certain(entity, known[new], settings)
        if same is not None:
            return _known(entity, same, None)
        identity = told.get(new)
        same = next((each for each in known[new] if identity and each["id"] == identity["same_as"]), None)
        return _known(entity, same, identity["name"]) if identity and same else _unknown(entity, namespace)

    return _joined(one(new, entity) for new, entity in enumerate(entities))


def told_before(entity: NewEntity, found: Sequence[Candidate], before: Mapping[str, Identity]) -> Identity | None:
    """Return what was answered of the entity, if it was asked with all that it may be now."""
    identity = before.get(canonical_name(entity["name"]))
    ids = {each["id"] for each in found}
    if identity is None or not ids.issubset(identity["among"]):
        return None
    return identity if identity["same_as"] is None or identity["same_as"] in ids else None


def likely(entities: Sequence[NewEntity], unsure: Mapping[int, Sequence[Candidate]]) -> dict[int, Identity]:
    """Return which of *unsure* are most likely whom: the best candidate with a name of the same words."""
    found: dict[int, Identity] = {}
    for new, among in unsure.items():
        same = next((each for each in among if _sounds_like(entities[new], each)), None)
        if same is not None:
            found[new] = Identity(among=[each["id"] for each in among], same_as=same["id"], name="")
    return found


def _sounds_like(entity: NewEntity, candidate: Candidate) -> bool:
    """Tell whether the two have a name in common, or one of the same words: "kid" and "kids"."""
    own = set(tokenise.terms(entity["name"]))
    same = (own == set(tokenise.terms(each)) for each in (candidate["name"], *candidate["aliases"]))
    return alias_key(entity["name"]) in _keys(candidate) or (bool(own) and any(same))


def candidates(
    entities: Sequence[NewEntity], vectors: Sequence[Vector], settings: Settings
) -> Flow[dict[int, list[Candidate]]]:
    """Return the known entities that each new one may be, by its place, best first.

    Errors: `EmbeddingMismatch` where the known ones are, or were, embedded anew by another model meanwhile.
    """
    names = [
        {
            "new": new,
            "alias": alias_key(each["name"]),
            "type": each["type"],
            "embedding": vector,
            "terms": sorted(set(tokenise.terms(each["name"]))),
        }
        for new, (each, vector) in enumerate(zip(entities, vectors, strict=True))
    ]
    if not names:
        return {}
    limit = settings.candidates
    rows = yield from read(cypher.SIMILAR_ENTITIES, names=names, limit=limit, threshold=settings.ask_threshold or 0.0)
    for row in rows:
        if row["kind"] == "vectors":
            refuse_other_vectors(row["entity"], (yield from embedding_model()), len(vectors[0]))
    return {new: _best((row for row in rows if row["new"] == new), limit) for new in range(len(entities))}


def _best(rows: Iterable[Mapping[str, Any]], limit: int) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for row in rows:
        entity = dict(row["entity"])
        known = best.setdefault(entity["id"], {**entity, "score": row["score"]})
        known["score"] = max(known["score"], row["score"])
    return sorted(best.values(), key=lambda each: (-each["score"], each["id"]))[:limit]


def certain(entity: NewEntity, found: Sequence[Candidate], settings: Settings) -> Candidate | None:
    """Return the one candidate that *entity* is beyond doubt, if there is one.

    Just one of its type that has its name is, whoever else means the same: `SIMILAR_ENTITIES` rests on that.
    """
    default = settings.entity_types[0].name
    fitting = [each for each in found if each["type"] == entity["type"] or default in (each["type"], entity["type"])]
    called = [each for each in fitting if alias_key(entity["name"]) in _keys(each)]
    if called:
        same_type = [each for each in called if each["type"] == entity["type"]]
        return (same_type or called)[0] if len(same_type or called) == 1 else None
    enough = 1.0 if settings.merge_threshold is None else settings.merge_threshold
    close = [each for each in fitting if each["score"] >= enough]
    return close[0] if len(close) == 1 and _digits(close[0]["name"]) == _digits(entity["name"]) else None


def identified(
    entities: Mapping[int, NewEntity], unsure: Mapping[int, Sequence[Candidate]], told: Mapping[str, Any]
) -> Flow[dict[int, Identity]]:
    """Ask which of its candidates each of *entities* is, *told* what they were read from, and return the answers."""
    asked = [
        {
            "id": new,
            "name": entities[new]["name"],
            "type": entities[new]["type"],
            "candidates": [
                {
                    "id": place,
                    **{name: each[name] for name in ("name", "type", "summary", "aliases")},
                    "score": round(each["score"], 2),
                }
                for place, each in enumerate(found)
            ],
        }
        for new, found in unsure.items()
    ]
    answers = yield from ask_in_batches(RESOLVE, "entities", asked, **told)
    among = {new: [each["id"] for each in found] for new, found in unsure.items()}
    identities = {new: Identity(among=ids, same_as=None, name="") for new, ids in among.items()}
    for each in (each for answer in answers for each in answer.resolutions):
        ids = among.get(each.entity, [])
        if each.same_as is not None and 0 <= each.same_as < len(ids):
            identities[each.entity] = {"among": ids, "same_as": ids[each.same_as], "name": each.name}
    return identities


def _known(entity: NewEntity, same: Candidate, name: str | None) -> NewEntity:
    """Return the known entity, under the fullest name that was given for it, with the new name as an alias."""
    given: dict[str, str] = {canonical_name(each): each for each in (same["name"], entity["name"], *same["aliases"])}
    fullest = given[canonical_name(name)] if name and canonical_name(name) in given else str(same["name"])
    names = dict.fromkeys((str(same["name"]), entity["name"]))
    aliases = [each for each in names if each != fullest and each not in same["aliases"]]
    if len(same["aliases"]) >= MOST_ALIASES:
        log.warning("entity %s has %d other names already: no more are kept", same["id"], len(same["aliases"]))
        fullest, aliases = str(same["name"]), []
    found: NewEntity = {
        "name": fullest, "type": same["type"], "key": same["key"], "id": same["id"], "known": True,
        "renamed": fullest != same["name"], "aliases": aliases, "called": [entity["name"]],
    }  # fmt: skip
    return {**found, "evicted": True} if same.get("evicted") else found


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
