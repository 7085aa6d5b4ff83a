"""Spreading activation (SYNAPSE): an alternative to the breadth-first graph traversal.

Activation is a number from 0 to 1. It starts at the entities of the question and spreads along facts, hop by hop. An
entity's activation is ``1 - product(1 - received)`` over its activated neighbours. It grows with each of them and
stays below 1, so an entity that is reached from several sides ranks above one that is reached from one side. The
maximum would ignore the number of sides, and a plain sum cut at 1 would give ties at the top. Of several facts between
the same two entities, the one with the highest conductance counts. An entity is reached once, at its nearest hop.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from math import prod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kg_memory.falkor.queries import features as cypher
from kg_memory.models.graph import Kind
from kg_memory.retrieval.ranking import Activity, Hits, Hops, Instants, Link, Links, Part, Scored, Share
from kg_memory.retrieval.traversal import FACTS_A_STEP, HIT_WEIGHT, MOST_SORTED, parse_links, read_near
from kg_memory.runtime.effects import fetch, in_step
from kg_memory.runtime.flow import Flow

ENTITIES_A_MS, FACTS_A_MS, SORTED_A_MS = 0.5, 5, 100
"""The entities and facts to read, and facts to sort, for each remaining millisecond of a server that is busy."""
WORD_SEEDS = 10
"""The number of best facts and of best episodes, found by words, whose entities are starting points."""
CONDUCTANCE = {"causal": 1.0, "semantic": 1.0, "temporal": 0.7, "hierarchical": 0.7, "co_occurrence": 0.4}

Received = dict[str, dict[str, float]]
"""The activation that each entity receives, by the entity that passes it on."""


class Synapse(Part):
    """Graph search by spreading activation: entities pass a number from 0 to 1 on to their neighbours.

    The number starts at the question's entities, and gets smaller with each hop along a fact.
    """

    method: Literal["synapse"] = "synapse"
    seed_structural_weight: Share = 0.4
    """The share of an entity's links, as opposed to its search score, in choosing starting points."""
    seed_community_cap: Annotated[int, Field(ge=0)] = 3
    """The most starting points in one community; 0 means no limit."""
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.85
    """The factor that activation is multiplied by at each hop."""
    max_hops: Hops = 3
    activation_threshold: Share = 0.1
    """Entities with less activation are not reached."""
    inhibition_threshold: Share = 0.8
    """Entities with more activation lower that of their neighbours."""
    max_activated_nodes: Annotated[int, Field(ge=1, le=10_000)] = 50
    timeout_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] = 500.0
    """The walk ends after this time with the entities that it has reached."""
    edge_types: Mapping[str, Share] = CONDUCTANCE
    """The conductance of each type of fact, from 0 to 1."""

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        if not self.activation_threshold < self.inhibition_threshold:
            raise ValueError("activation_threshold must be below inhibition_threshold; change one of them")
        return self

    def find_starts(self, hits: Mapping[Kind, Hits]) -> Flow[dict[str, float]]:
        """Return the entities of the best facts and messages that a word search found: ``{"entity id": 0.4}``."""
        facts, episodes = (_divide_by_best(hits[kind].words[:WORD_SEEDS]) for kind in ("facts", "episodes"))
        queries = (fetch(cypher.facts_with_links(), ids=list(facts)), fetch(cypher.MENTIONED_BY, ids=list(episodes)))
        linked, mentions = yield from in_step(queries)
        weights: Counter[str] = Counter()
        for id_, link in (parse_links(linked[0]["links"], {}) if linked else {}).items():
            weights.update(dict.fromkeys(link.entities, facts[id_]))
        for row in mentions:
            weights.update(dict.fromkeys(row["entities"], episodes[row["id"]]))
        most = max(weights.values(), default=1.0)
        return {id_: HIT_WEIGHT * weight / most for id_, weight in weights.items()}

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Return the facts around the entities *start*, and each entity's activation (relevance, 0 to 1), by id."""
        return (yield from activate(self, start, instants))


def _divide_by_best(hits: Sequence[Scored]) -> dict[str, float]:
    best = max((score for _, score in hits), default=0.0)
    return {id_: score / best for id_, score in hits} if best > 0 else {}


def activate(
    recipe: Synapse, weights: Mapping[str, float], instants: Instants, clock: Callable[[], float] = time.monotonic
) -> Flow[tuple[Links, Activity]]:
    """Spread activation (relevance, 0 to 1) from the best entities of *weights* along facts, hop by hop."""
    began = clock()
    end = began + recipe.timeout_ms / 1000
    near = yield from _read_links_within(sorted(weights, key=lambda id_: (-weights[id_], id_)), instants, end - began)
    fresh = dict.fromkeys((yield from _find_seeds(recipe, weights, near)), 1.0)
    links, active = dict(near), dict(fresh)
    for hop in range(1, recipe.max_hops + 1):
        took = clock() - began
        fresh = spread(fresh, active, takewhile(lambda _: clock() < end, near.values()), recipe)
        active |= fresh
        began = clock()
        if not fresh or hop == recipe.max_hops or began + took >= end:
            break
        near = yield from _read_links_within(list(fresh), instants, end - began)
        links |= near
    return links, active


def _find_seeds(recipe: Synapse, weights: Mapping[str, float], links: Links) -> Flow[list[str]]:
    """Return the ids of the entities to start from: the best in *weights*, but only a few of each community."""
    scores = seed_scores(weights, links.values(), recipe.seed_structural_weight)
    groups: list[list[str]] = []
    if recipe.seed_community_cap:
        groups = [row["entities"] for row in (yield from fetch(cypher.COMMUNITIES_OF, ids=list(scores)))]
    return cap_seeds(scores, groups, recipe.seed_community_cap, recipe.max_activated_nodes)


def _read_links_within(ids: Sequence[str], instants: Instants, seconds: float) -> Flow[Links]:
    """Return the facts about the entities *ids* as links by fact id, read in at most about *seconds*.

    *ids* are best first: if the time is too short, only the first are read, and fewer facts of each.
    """
    left = max(seconds * 1000, 0.0)
    ids = ids[: max(int(left * ENTITIES_A_MS), 1)]
    facts = max(min(int(left * FACTS_A_MS / len(ids)), FACTS_A_STEP), 1)
    return (yield from read_near(ids, instants, facts, max(min(int(left * SORTED_A_MS / len(ids)), MOST_SORTED), 1)))


def seed_scores(weights: Mapping[str, float], links: Iterable[Link], structural: float) -> dict[str, float]:
    """Rate how suitable each entity is as a starting point, from 0 to 1: ``{"e1": 0.7}``."""
    best = max(weights.values(), default=0.0)
    structure = structures(weights, links)
    return {
        id_: (weight / best if best > 0 else 0.0) * (1 - structural) + structure[id_] * structural
        for id_, weight in weights.items()
    }


def structures(entities: Collection[str], links: Iterable[Link]) -> dict[str, float]:
    """Rate how well connected each of *entities* is by the facts *links*, from 0 to 1: ``{"e1": 0.5}``."""
    degrees: Counter[str] = Counter()
    types: defaultdict[str, set[str]] = defaultdict(set)
    for link in links:
        for id_ in link.entities:
            degrees[id_] += 1
            types[id_].add(link.type)
    most = max((degrees[id_] for id_ in entities), default=0) or 1
    widest = max((len(types[id_]) for id_ in entities), default=0) or 1
    return {id_: (degrees[id_] / most + len(types[id_]) / widest) / 2 for id_ in entities}


def cap_seeds(scores: Mapping[str, float], communities: Iterable[Collection[str]], cap: int, most: int) -> list[str]:
    """Return the ids of the *most* entities with the highest *scores*, at most *cap* of each community.

    They are ordered best first. A *cap* of 0 means no limit.
    """
    memberships: defaultdict[str, list[int]] = defaultdict(list)
    for number, members in enumerate(communities):
        for id_ in members:
            memberships[id_].append(number)
    counts: Counter[int] = Counter()
    chosen: list[str] = []
    for id_ in _best_first(scores):
        if cap and any(counts[number] >= cap for number in memberships[id_]):
            continue
        counts.update(memberships[id_])
        chosen.append(id_)
    return chosen[:most]


def spread(
    active: Mapping[str, float], reached: Collection[str], links: Iterable[Link], recipe: Synapse
) -> dict[str, float]:
    """Pass activation (0 to 1) from *active* entities over the facts *links*; return it by neighbour.

    The result is ordered best first. Entities in *reached* receive nothing.
    """
    received = _receive(active, reached, links, recipe)
    fresh = {id_: 1 - prod(1 - share for share in sorted(shares.values())) for id_, shares in received.items()}
    fresh = inhibit(fresh, received, recipe.inhibition_threshold)
    passed = {id_: share for id_, share in fresh.items() if share > 0 and share >= recipe.activation_threshold}
    return {id_: passed[id_] for id_ in _best_first(passed)[: max(recipe.max_activated_nodes - len(reached), 0)]}


def inhibit(fresh: Mapping[str, float], received: Received, threshold: float) -> dict[str, float]:
    """Return the activations *fresh*, lowered for each entity that has a stronger rival: ``{"e5": 0.3}``."""
    best: dict[str, float] = {}
    for id_, shares in received.items():
        for parent in shares:
            best[parent] = max(best.get(parent, 0.0), fresh[id_])
    kept = {}
    for id_, own in fresh.items():
        strongest = max(best[parent] for parent in received[id_])
        kept[id_] = own * (1 - (strongest - own)) if strongest > threshold else own
    return kept


def _receive(active: Mapping[str, float], reached: Collection[str], links: Iterable[Link], recipe: Synapse) -> Received:
    """Return the activation that each entity receives in one step: 0.4 from e1 in ``{"e5": {"e1": 0.4}}``.

    Entities in *reached* receive nothing.
    """
    received: Received = {}
    for link in links:
        flow = recipe.decay_lambda * recipe.edge_types.get(link.type, 0.0)
        parents: Sequence[str] = [id_ for id_ in link.entities if id_ in active] if flow else ()
        for parent in parents:
            for id_ in link.entities:
                if id_ not in reached and id_ not in active:
                    shares = received.setdefault(id_, {})
                    shares[parent] = max(shares.get(parent, 0.0), active[parent] * flow)
    return received


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda id_: (-scores[id_], id_))
