"""Ranking, purely: lists of ids in, one list of ids and scores out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isnan

Scored = tuple[str, float]
Ranking = Sequence[Scored]


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], k: float = 10.0) -> list[Scored]:
    """Return weighted reciprocal rank fusion of *rankings*: ``sum(weight / (k + rank))``, best first.

    A ranking is ids with scores, higher is better, in any order; ids with the same score share the best of
    their ranks, and NaN is worst. An id that a ranking lacks gets nothing from it. Ties are in order of id.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for name, rank in ranks(ranking).items():
            fused[name] = fused.get(name, 0.0) + weight / (k + rank)
    return ordered(fused.items())


def ranks(ranking: Ranking) -> dict[str, int]:
    """Return the rank of each id, from 1; equal scores share one, and an id named twice counts once, at its best."""
    places: dict[str, int] = {}
    place, last = 0, None
    for position, (name, score) in enumerate(ordered(ranking), start=1):
        if score != last:
            place, last = position, score
        places.setdefault(name, place)
    return places


def ordered(scored: Iterable[Scored]) -> list[Scored]:
    """Return *scored* best first, ties in order of id, NaN last."""
    numbers = ((name, -inf if isnan(score) else score) for name, score in scored)
    return sorted(numbers, key=lambda one: (-one[1], one[0]))


def decayed(score: float, age_days: float, rate: float) -> float:
    """Return *score* raised by ``1 / (1 + age * rate)``, to twice itself at most: what is newer counts more (C33).

    An age below 0 is one of 0.
    """
    return min(score + 1 / (1 + max(age_days, 0.0) * rate), 2 * score)
