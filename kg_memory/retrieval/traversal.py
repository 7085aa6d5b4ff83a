"""Along the graph: what lies near the entities of a question, and what states the facts that fit it (Zep 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.falkor.queries import search
from kg_memory.models.graph import Kind
from kg_memory.retrieval.bm25 import rarity
from kg_memory.retrieval.fuse import DIGITS, fused
from kg_memory.retrieval.rank import ordered
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.records import Hits, Scored
from kg_memory.retrieval.scope import Scope, left
from kg_memory.retrieval.walk import along, fact_links, touching
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key

FOUND_SEEDS = 3
"""How many of the entities that each search found are walked from."""
FOUND_WEIGHT = 0.25
"""What an entity counts that was found or recently spoken of, one that is named counting 1."""
STATED_SHARE = 0.5
"""How much of an episode's score is how well the best fact that it states fits; the rest is whom it is by or about."""
MENTIONED = 0.25
"""What an episode counts that mentions a named entity, one that the entity itself spoke counting 1."""

Rows = Sequence[Mapping[str, Any]]


def along_the_graph(
    hits: dict[Kind, Hits], chosen: Recipe, scopes: Mapping[Kind, Scope], named: Rows, recent: Rows, episodes: int
) -> Flow[None]:
    """Add to *hits* what the graph tells of *named*, *recent* and found entities, among so many *episodes*."""
    counting = [kind for kind in scopes if chosen.weights(kind).graph]
    if not counting:
        return
    rare = {row["id"]: rarity(row["mentions"], episodes) for row in (*recent, *named)}
    start = seeds(rare, [row["id"] for row in named], hits["entities"])
    instants = next(iter(scopes.values())).instants
    reached, links, groups = yield from in_step(
        (along(chosen.along, start, instants), fact_links(ids_of(hits["facts"])), communities_of(start))
    )
    near = {
        "facts": reached.facts | touching(links, reached.entities), "entities": reached.entities, "communities": groups,
    }  # fmt: skip
    found = {kind: best(near[kind]) for kind in counting if kind in near}
    found = yield from left(scopes, found)
    for kind, scored in found.items():
        hits[kind]["graph"] = scored
    if "episodes" in counting:
        facts = dict(fused(chosen, "facts", hits["facts"])[: scopes["episodes"].wanted])
        told = yield from episodes_of(facts, {row["id"]: row["keys"] for row in named}, ids_of(hits["episodes"]))
        passed = yield from left(scopes, {"episodes": best(told)})
        hits["episodes"]["graph"] = passed["episodes"]


def seeds(rare: Mapping[str, float], named: Iterable[str], entities: Hits) -> dict[str, float]:
    """Return where to start, with weights: entities named (by their rarity), spoken of, and found."""
    named = set(named)
    weights = {id_: weight * (1.0 if id_ in named else FOUND_WEIGHT) for id_, weight in rare.items()}
    for way in (entities["words"], entities["meaning"]):
        for id_, _ in way[:FOUND_SEEDS]:
            weights.setdefault(id_, FOUND_WEIGHT)
    return weights


def communities_of(start: Mapping[str, float]) -> Flow[dict[str, float]]:
    """Return the communities that have members among *start*."""
    rows = yield from read(search.COMMUNITIES_OF, ids=list(start))
    return {row["id"]: sum(start[id_] for id_ in row["entities"]) for row in rows}


def episodes_of(
    facts: Mapping[str, float], named: Mapping[str, Sequence[str]], candidates: Sequence[str]
) -> Flow[dict[str, float]]:
    """Return the episodes that state *facts*, and which *candidates* the entities *named* spoke, or are mentioned in.

    *facts* have scores from 0 to 1, *named* the alias keys of each entity.
    """
    about = (
        read(search.SPEAKERS, ids=list(candidates)),
        read(search.MENTIONING, ids=list(candidates), entities=list(named)),
    ) if named else ()  # fmt: skip
    stating, *told = yield from in_step((read(search.STATING, ids=list(facts)), *about))
    speakers, mentions = told or ([], [])
    keys = {key for own in named.values() for key in own}
    shares: dict[str, float] = {}
    for row in stating:
        shares[row["id"]] = max(shares.get(row["id"], 0.0), facts[row["fact"]])
    mentioning = {row["id"] for row in mentions}
    lines = {row["id"]: row["speaker"] for row in (*stating, *speakers)}
    ours = {speaker for speaker in set(lines.values()) if keys and speaker and alias_key(speaker) in keys}
    spoken = {id_ for id_, speaker in lines.items() if speaker in ours}
    scores = {}
    for id_ in {*shares, *mentioning, *spoken}:
        by = 1.0 if id_ in spoken else MENTIONED if id_ in mentioning else 0.0
        scores[id_] = STATED_SHARE * shares.get(id_, 0.0) + (1 - STATED_SHARE) * by
    return scores


def ids_of(hits: Hits) -> list[str]:
    """Return what was found by words or by meaning."""
    return list(dict.fromkeys(id_ for way in (hits["words"], hits["meaning"]) for id_, _ in way))


def best(scores: Mapping[str, float]) -> list[Scored]:
    """Return the *scores* above 0, best first, ties in order of id."""
    return [[id_, round(score, DIGITS)] for id_, score in ordered(scores.items()) if score > 0]
