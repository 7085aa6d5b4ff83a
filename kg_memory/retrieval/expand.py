"""Breadth-first from entities: the facts, entities, communities and episodes around them (Zep 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.effects import read
from kg_memory.falkor import search_cypher as cypher
from kg_memory.flow import Flow
from kg_memory.identity import alias_key
from kg_memory.retrieval.state import Hits, Instants

FOUND_SEEDS = 3
"""How many of the entities that each search found are walked from."""
FOUND_WEIGHT = 0.25
"""What an entity counts that was found or recently spoken of, one that is named counting 1."""
DECAY = 0.5
"""What a neighbour counts of the entity that it was reached from."""
NEIGHBOURS = 10
FACTS_A_SEED = 50
FACTS_A_NEIGHBOUR = 10
MENTIONED = 0.5
"""What an episode counts that mentions a named entity, one that the entity itself spoke counting 1."""


def seeds(rare: Mapping[str, float], named: Iterable[str], entities: Hits) -> dict[str, float]:
    """Return where to start, with weights: entities named (by their rarity), spoken of, and found."""
    named = set(named)
    weights = {id_: weight * (1.0 if id_ in named else FOUND_WEIGHT) for id_, weight in rare.items()}
    for arm in (entities["words"], entities["meaning"]):
        for id_, _ in arm[:FOUND_SEEDS]:
            weights.setdefault(id_, FOUND_WEIGHT)
    return weights


def walk(
    start: Mapping[str, float], candidates: Sequence[str], instants: Instants
) -> Flow[tuple[dict[str, float], dict[str, float]]]:
    """Return the facts and the entities within two steps of *start*, and how much each has to do with it.

    A fact counts the weights of its entities; so do the *candidates* that other searches found.
    """
    near = yield from read(cypher.FACTS_NEAR, ids=list(start), limit=FACTS_A_SEED, **instants)
    weights = dict(start) | _neighbours(near, start)
    further = [id_ for id_ in weights if id_ not in start]
    far = yield from read(cypher.FACTS_NEAR, ids=further, limit=FACTS_A_NEIGHBOUR, **instants)
    linked = yield from read(cypher.FACT_LINKS, ids=list(candidates))
    facts = {row["id"]: sum(weights.get(id_, 0.0) for id_ in row["entities"]) for row in (*near, *far, *linked)}
    return {id_: score for id_, score in facts.items() if score > 0}, weights


def episode_links(
    named: Mapping[str, Sequence[str]], rare: Mapping[str, float], candidates: Sequence[str]
) -> Flow[dict[str, float]]:
    """Return which of the *candidates* were spoken by, or mention, the entities named, the rare ones counting more.

    *named* has the alias keys of each entity.
    """
    if not named or not candidates:
        return {}
    rows = yield from read(cypher.EPISODE_LINKS, ids=list(candidates), entities=list(named))
    scores = {}
    for row in rows:
        speaker = alias_key(row["speaker"]) if row["speaker"] else None
        spoken = {id_ for id_, keys in named.items() if speaker in keys}
        scores[row["id"]] = sum(
            rare[id_] * (1.0 if id_ in spoken else MENTIONED) for id_ in sorted(spoken.union(row["entities"]))
        )
    return {id_: score for id_, score in scores.items() if score > 0}


def communities_of(start: Mapping[str, float]) -> Flow[dict[str, float]]:
    """Return the communities that have members among *start*."""
    rows = yield from read(cypher.COMMUNITIES_OF, ids=list(start))
    return {row["id"]: sum(start[id_] for id_ in row["entities"]) for row in rows}


def _neighbours(near: Iterable[Mapping[str, Any]], start: Mapping[str, float]) -> dict[str, float]:
    """Return the entities that share most facts with *start*, each at a part of the best weight it was reached from."""
    shared: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for row in near:
        best = max((start[id_] for id_ in row["entities"] if id_ in start), default=0.0)
        for id_ in row["entities"]:
            if id_ not in start:
                shared[id_] += 1
                weights[id_] = max(weights.get(id_, 0.0), best * DECAY)
    closest = sorted(shared, key=lambda id_: (-shared[id_], id_))[:NEIGHBOURS]
    return {id_: weights[id_] for id_ in closest}
