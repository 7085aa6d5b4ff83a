"""Along the graph: from the entities that a question is about, to the facts and entities around them (Zep 3.1).

Every walk goes step by step over facts that hold at the asked instants, one read a step, whatever the size of the
graph; it goes along a fact both ways, and to each entity once. A fact counts what its entities count in all, so that
facts which other searches found compare with those that a walk reached, and one that tells of a start is found even
where it leads to nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.retrieval.activation import Link, seed_scores, seeds_within, spread
from kg_memory.retrieval.pagerank import pagerank
from kg_memory.retrieval.rank import ordered
from kg_memory.retrieval.recipe import BreadthFirst, PageRank, Synapse
from kg_memory.retrieval.records import Instants
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow

NEIGHBOURS = 10
"""How many entities are walked from at each further step of a breadth-first walk: those that share most facts."""
RANKED_NEIGHBOURS = 50
"""The same where a PageRank follows, for which the walk only cuts out a part of the graph."""
FACTS_A_STEP = 50
"""How many facts of an entity count where the recipe does not say."""
MOST_FACTS = 3000
"""How many facts one PageRank is about, at most."""
LOOKED_THROUGH = 3
"""How many times as many of the latest facts are looked through for those that hold."""
HUB = 200
"""An entity with more facts is not walked through: to lie near what joins everything says nothing, and takes long."""
NO_HUB = 1 << 40
"""More facts than an entity has."""
MOST_SORTED = 50_000
"""How many facts of one entity are sorted for the latest, at most: it takes the server 30 ms."""
ENTITIES_A_MS, FACTS_A_MS, SORTED_A_MS = 0.5, 5, 100
"""How many entities and facts are asked for, and facts sorted, for each millisecond that is left.

All three together take just that long where the server is three times as slow as an idle one.
"""

Links = dict[str, Link]
"""Facts by id."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a walk found, by id, and how much each has to do with where it started."""

    facts: dict[str, float]
    entities: dict[str, float]


def along(
    recipe: BreadthFirst | Synapse | PageRank,
    start: Mapping[str, float],
    instants: Instants,
    *,
    words: Mapping[str, float] = {},
) -> Flow[Reached]:
    """Return what lies around the entities *start*, which have weights, as *recipe* walks.

    Activation alone asks how well the question's *words* fit each of them; without these, their weights tell. It asks
    one query at a time, at most ``max_hops + 1``, so that it can go in step with other flows.
    """
    if not start:
        return Reached({}, {})
    match recipe:
        case BreadthFirst():
            links, weights = yield from _walked(start, instants, recipe.max_hops, recipe.facts_a_hop, NEIGHBOURS)
        case Synapse():
            links, weights = yield from _activated(
                recipe, {id_: words.get(id_, 0.0) for id_ in start} if words else start, instants
            )
        case PageRank():
            links, _ = yield from _walked(start, instants, recipe.max_hops, FACTS_A_STEP, RANKED_NEIGHBOURS)
            links = dict(list(links.items())[:MOST_FACTS])
            weights = pagerank((link.entities for link in links.values()), start, recipe.damping)
    return Reached(touching(links, weights), weights)


def fact_links(candidates: Sequence[str]) -> Flow[Links]:
    """Return the *candidates*, facts that other searches found, with their entities."""
    rows = yield from read(cypher.FACT_LINKS, ids=list(candidates))
    return _links(rows)


def touching(links: Links, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the facts that have an entity among *weights*, each with what its entities count in all."""
    scores = {id_: sum(weights.get(each, 0.0) for each in link.entities) for id_, link in links.items()}
    return {id_: score for id_, score in scores.items() if score > 0}


def _walked(
    start: Mapping[str, float], instants: Instants, hops: int, facts: int, neighbours: int
) -> Flow[tuple[Links, dict[str, float]]]:
    """Walk breadth-first: the latest *facts* of each start, and half as many at each further step.

    An entity counts the weight of the start that it was reached from times ``1 / (1 + hop)`` (C17).
    """
    links: Links = {}
    weights = dict(start)
    origins = dict(start)
    for hop in range(1, hops + 1):
        near = yield from _near(list(origins), instants, max(facts >> (hop - 1), 1), hub=NO_HUB if hop == 1 else HUB)
        links |= near
        origins = _neighbours(near, origins, weights, neighbours)
        weights |= {id_: weight / (1 + hop) for id_, weight in origins.items()}
        if not origins:
            break
    return links, weights


def _neighbours(near: Links, origins: Mapping[str, float], known: Mapping[str, float], most: int) -> dict[str, float]:
    """Return the entities not yet *known* that share most facts with *origins*, each with the best weight of these."""
    shared = Counter([id_ for link in near.values() for id_ in link.entities if id_ not in known])
    weights = {id_: 0.0 for id_, _ in ordered(shared.items())[:most]}
    for link in near.values():
        best = max((origins[id_] for id_ in link.entities if id_ in origins), default=0.0)
        for id_ in link.entities:
            if best > weights.get(id_, best):
                weights[id_] = best
    return weights


def _activated(
    recipe: Synapse, words: Mapping[str, float], instants: Instants, clock: Callable[[], float] = time.monotonic
) -> Flow[tuple[Links, dict[str, float]]]:
    """Let activation spread (C21 to C29): each start is fully active, however it came to be one.

    It ends within ``timeout_ms`` with what it has: a read is as large as the time left allows, and none is begun where
    less is left than the one before took.
    """
    began = clock()
    end = began + recipe.timeout_ms / 1000
    starts = sorted(words, key=lambda id_: (-words[id_], id_))
    near = yield from _near_within(starts, instants, end - began)
    seeds = yield from _seeds(recipe, words, near)
    links, fresh = dict(near), dict.fromkeys(seeds, 1.0)
    active = dict(fresh)
    for hop in range(1, recipe.max_hops + 1):
        took = clock() - began
        fresh = spread(fresh, active, near.values(), recipe, partial(_is_past, end, clock))
        active |= fresh
        began = clock()
        if not fresh or hop == recipe.max_hops or began + took >= end:
            break
        near = yield from _near_within(list(fresh), instants, end - began)
        links |= near
    return links, active


def _seeds(recipe: Synapse, words: Mapping[str, float], links: Links) -> Flow[list[str]]:
    scores = seed_scores(words, links.values(), recipe.seed_structural_weight)
    groups: list[list[str]] = []
    if recipe.seed_community_cap:
        rows = yield from read(cypher.COMMUNITIES_OF, ids=list(scores))
        groups = [row["entities"] for row in rows]
    return seeds_within(scores, groups, recipe.seed_community_cap, recipe.max_activated_nodes)


def _is_past(end: float, clock: Callable[[], float]) -> bool:
    return clock() >= end


def _near_within(ids: Sequence[str], instants: Instants, seconds: float) -> Flow[Links]:
    """Read as many facts of as many of *ids*, best first, as *seconds* allow."""
    left = max(seconds * 1000, 0.0)
    asked = ids[: max(int(left * ENTITIES_A_MS), 1)]
    facts = max(min(int(left * FACTS_A_MS / len(asked)), FACTS_A_STEP), 1)
    links = yield from _near(asked, instants, facts, max(min(int(left * SORTED_A_MS / len(asked)), MOST_SORTED), 1))
    return links


def _near(
    ids: Sequence[str], instants: Instants, facts: int, most: int = MOST_SORTED, hub: int = NO_HUB
) -> Flow[Links]:
    """Return the latest *facts* of each of *ids* that hold; of those that have *hub* at most."""
    depth = facts * LOOKED_THROUGH
    rows = yield from read(cypher.FACTS_NEAR, ids=ids, limit=facts, depth=depth, most=most, hub=hub, **instants)
    return _links(rows)


def _links(rows: Iterable[Mapping[str, Any]]) -> Links:
    return {row["id"]: Link(row["type"], tuple(dict.fromkeys((row["subject"], *row["objects"])))) for row in rows}
