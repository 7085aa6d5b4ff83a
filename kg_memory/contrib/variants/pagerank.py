"""Personalised PageRank: where a walker mostly is who starts over at the entities that the question is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kg_memory.retrieval.ranking import Activity, Hops, Instants, Links, Part
from kg_memory.retrieval.traversal import FACTS_A_STEP, walk_breadth_first
from kg_memory.runtime.flow import Flow

NEIGHBOURS = 50
"""The entities that each further step starts from: more than in a plain walk, as this one only cuts out a subgraph."""
MOST_FACTS = 3000
"""The facts that one PageRank is computed over, at most."""
MOST_ROUNDS = 100
TOLERANCE = 1e-6
"""It ends when a round moves less than this in all."""


class PageRank(Part):
    """Rank by where a walker mostly is who starts over at the entities that the question is about."""

    method: Literal["pagerank"] = "pagerank"
    damping: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The probability that the walker goes on rather than starts over."""
    max_hops: Hops = 2
    """The size of the subgraph: it lies within so many steps of the starts."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        links, _ = yield from walk_breadth_first(start, instants, self.max_hops, FACTS_A_STEP, NEIGHBOURS)
        links = dict(list(links.items())[:MOST_FACTS])
        return links, pagerank((link.entities for link in links.values()), start, self.damping)


def pagerank(facts: Iterable[Collection[str]], start: Mapping[str, float], damping: float) -> Activity:
    """Return the share of time that the walker spends at each entity; it sums to 1.

    *facts* are the entities of each fact. The walker goes on with the probability *damping*: it takes any fact of the
    entity, then any other entity of it. Else, and where no fact leads on, it starts over, by the weights of *start*;
    where none is above 0, they count alike. Without a start there is no walk.
    """
    restart = _shares(start)
    if not restart:
        return {}
    paths = [sorted(ends) for ends in map(set, facts) if len(ends) > 1]
    degrees = Counter(id_ for path in paths for id_ in path)
    ranks = dict.fromkeys(sorted({*restart, *degrees}), 0.0) | restart
    for _ in range(MOST_ROUNDS):
        moved = _move(ranks, paths, degrees, restart, damping)
        change = sum(abs(moved[id_] - rank) for id_, rank in ranks.items())
        ranks = moved
        if change < TOLERANCE:
            break
    return _shares(ranks)


def _move(
    ranks: Mapping[str, float],
    paths: Iterable[list[str]],
    degrees: Mapping[str, int],
    restart: Mapping[str, float],
    damping: float,
) -> Activity:
    """Return where the walker is one step later."""
    moved = dict.fromkeys(ranks, 0.0)
    for path in paths:
        brought = [ranks[id_] / degrees[id_] for id_ in path]
        total = sum(brought)
        for id_, own in zip(path, brought, strict=True):
            moved[id_] += damping * (total - own) / (len(path) - 1)
    over = 1 - sum(moved.values())
    for id_, share in restart.items():
        moved[id_] += over * share
    return moved


def _shares(weights: Mapping[str, float]) -> Activity:
    """Return *weights* in order of id, as parts of 1; alike where none is above 0."""
    total = sum(weights.values())
    if total > 0:
        return {id_: weights[id_] / total for id_ in sorted(weights)}
    return {id_: 1 / len(weights) for id_ in sorted(weights)}
