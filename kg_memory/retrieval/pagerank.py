"""Personalised PageRank, purely: where a walker mostly is who starts over at the entities a question is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

MOST_ROUNDS = 100
TOLERANCE = 1e-6
"""It ends when a round moves less than this in all."""


def pagerank(facts: Iterable[Collection[str]], start: Mapping[str, float], damping: float) -> dict[str, float]:
    """Return how much of the time the walker is at each entity; it sums to 1.

    *facts* are the entities of each fact. The walker goes on with the probability *damping*: it takes any fact of the
    entity, then any other entity of it. Else, and where no fact leads on, it starts over, by the weights of *start*;
    where none is above 0, they count alike. Without a start there is no walk.
    """
    restart = _shares(start)
    if not restart:
        return {}
    ways = [sorted(each) for each in map(set, facts) if len(each) > 1]
    degrees = Counter(id_ for way in ways for id_ in way)
    ranks = dict.fromkeys(sorted({*restart, *degrees}), 0.0) | restart
    for _ in range(MOST_ROUNDS):
        moved = _round(ranks, ways, degrees, restart, damping)
        change = sum(abs(moved[id_] - rank) for id_, rank in ranks.items())
        ranks = moved
        if change < TOLERANCE:
            break
    return _shares(ranks)


def _round(
    ranks: Mapping[str, float],
    ways: Iterable[list[str]],
    degrees: Mapping[str, int],
    restart: Mapping[str, float],
    damping: float,
) -> dict[str, float]:
    """Return where the walker is one step later."""
    moved = dict.fromkeys(ranks, 0.0)
    for way in ways:
        brought = [ranks[id_] / degrees[id_] for id_ in way]
        total = sum(brought)
        for id_, own in zip(way, brought, strict=True):
            moved[id_] += damping * (total - own) / (len(way) - 1)
    over = 1 - sum(moved.values())
    for id_, share in restart.items():
        moved[id_] += over * share
    return moved


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Return *weights* in order of id, as parts of 1; alike where none is above 0."""
    total = sum(weights.values())
    if total > 0:
        return {id_: weights[id_] / total for id_ in sorted(weights)}
    return {id_: 1 / len(weights) for id_ in sorted(weights)}
