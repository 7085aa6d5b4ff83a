"""Ranking, purely: lists of ids with scores in, one list of ids with scores out, best first, ties in order of id.

Whatever follows a fusion, from `mmr` on, returns a permutation of what it was given and takes scores from 0 to 1,
which they stay; NaN counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, isnan, log1p
from operator import itemgetter
from typing import Any

Scored = tuple[str, float]
Ranking = Sequence[Scored] | Sequence[list[Any]]
"""Pairs of an id and its score, as tuples, or as lists, which JSON has."""
LAST = 0.01
"""What the last that a way of searching found is worth beside its best: more than what it did not find."""
BELOW = 0.01
"""The most that is scored by what stands below a part that was ranked anew."""


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


def relative_shares(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of the relative scores of *rankings*: 1 is the best of each, `LAST` its last.

    An id that a ranking lacks, or has no finite score in, gets 0 from it: it was cut off below its last. Equal scores
    are all 1.
    """
    fused = {name: 0.0 for ranking in rankings for name, _ in ranking}
    total = sum(weights) or 1.0
    for ranking, weight in zip(rankings, weights, strict=True):
        finite: dict[str, float] = {}
        for name, score in ranking:
            if isfinite(score) and score > finite.get(name, -inf):
                finite[name] = score
        lowest, highest = min(finite.values(), default=0.0), max(finite.values(), default=0.0)
        part = weight / total
        wide, least = (highest - lowest, LAST) if highest > lowest else (1.0, 1.0)
        base, rise = part * least, part * (1 - least)
        for name, score in finite.items():
            fused[name] += base + rise * ((score - lowest) / wide)
    return fused


def ranks(ranking: Ranking) -> dict[str, int]:
    """Return the rank of each id, from 1; equal scores share one, and an id named twice counts once, at its best."""
    places: dict[str, int] = {}
    place, last = 0, None
    for position, (name, score) in enumerate(ordered(ranking), start=1):
        if score != last:
            place, last = position, score
        places.setdefault(name, place)
    return places


def ordered(scored: Iterable[Scored] | Ranking) -> list[Scored]:
    """Return *scored* best first, ties in order of id, NaN last."""
    numbers = [(name, -inf if isnan(score) else score) for name, score in scored]
    numbers.sort(key=itemgetter(0))
    numbers.sort(key=itemgetter(1), reverse=True)  # which leaves equals as they are
    return numbers


def decayed(score: float, age_days: float, rate: float) -> float:
    """Return *score* raised by ``1 / (1 + age * rate)``, to twice itself at most: what is newer counts more (C33).

    An age below 0 is one of 0.
    """
    return min(score + 1 / (1 + max(age_days, 0.0) * rate), 2 * score)


def mmr(ranking: Ranking, similarity: Mapping[tuple[str, str], float], balance: float) -> list[Scored]:
    """Return *ranking* by greedy maximal marginal relevance (Zep 3.2); of equals the better first, then by id.

    The next is always the one with the most ``balance * relevance + (1 - balance) * novelty``, which is its new score.
    Relevance is the score divided by the best, novelty 1 less the largest *similarity* (0 to 1, both ways round) to
    one before it; two that have none are not similar. As novelty can only shrink, the scores descend. A balance of 1
    keeps the order.
    """
    left = [name for name, _ in ordered(ranking)]
    relevance = {name: _share(score) for name, score in ranking}
    best = max(relevance.values(), default=0.0) or 1.0
    likeness = dict.fromkeys(left, 0.0)

    def gain(name: str) -> float:
        return balance * (relevance[name] / best) + (1 - balance) * (1 - likeness[name])

    chosen: list[Scored] = []
    while left:
        name = max(left, key=gain)
        chosen.append((name, gain(name)))
        left.remove(name)
        for other in left:
            likeness[other] = max(likeness[other], _share(similarity.get((name, other), 0.0)))
    return chosen


def blended(ranking: Ranking, shares: Mapping[str, float], weight: float) -> list[Scored]:
    """Return *ranking* by ``(1 - weight) * score + weight * share``; the share of what has none is 0."""
    return ordered(
        (name, (1 - weight) * _share(score) + weight * _share(shares.get(name, 0.0))) for name, score in ranking
    )


def scaled(ranking: Ranking, factors: Mapping[str, float]) -> list[Scored]:
    """Return *ranking* by each score times its factor, from 0 to 1; what has none keeps its score."""
    return ordered((name, _share(score) * _share(factors.get(name, 1.0))) for name, score in ranking)


def newest(ranking: Ranking, ages: Mapping[str, float], rate: float) -> list[Scored]:
    """Return *ranking* by the scores `decayed` by age in days, and halved to stay within 1.

    What has no age is not raised.
    """
    scores = {name: _share(score) for name, score in ranking}
    raised = {name: decayed(scores[name], age, rate) for name, age in ages.items() if name in scores}
    return ordered((name, score / 2) for name, score in (scores | raised).items())


def reread(ranking: Ranking, anew: Mapping[str, float]) -> list[Scored]:
    """Return what of *ranking* was scored *anew* by that, then the rest as it was, its scores brought below."""
    head = ordered((name, _share(anew[name])) for name, _ in ranking if name in anew)
    return above(head, [(name, score) for name, score in ordered(ranking) if name not in anew])


def above(head: Ranking, tail: Ranking) -> list[Scored]:
    """Return *head* and then *tail*, both in their order, the scores of the tail brought below those of the head."""
    if not head or not tail:
        return [(name, _share(score)) for name, score in (*head, *tail)]
    raised = [(name, BELOW + (1 - BELOW) * score) for name, score in head]
    return raised + [(name, BELOW * _share(score)) for name, score in tail]


def frequent(counts: Mapping[str, float]) -> dict[str, float]:
    """Return *counts* as shares of the largest, by their logarithms: ``log(1 + n) / log(1 + largest)``."""
    most = log1p(max(counts.values(), default=0.0)) or 1.0
    return {name: log1p(count) / most for name, count in counts.items()}


def evolved(count: float, confidence: float) -> float:
    """Return the weight of a fact that was served *count* times: ``confidence * (1 + 0.2 ln(1 + count))``, at most 1.

    It is the product that 1 limits (C18); were it the factor, serving would never raise it.
    """
    return min(1.0, confidence * (1 + 0.2 * log1p(max(count, 0.0))))


def faded(count: float, elapsed_seconds: float, decay_lambda: float, interval: float) -> float:
    """Return what is left of *count*: the part *decay_lambda* after each whole *interval* elapsed (C19)."""
    return count * float(decay_lambda ** (max(elapsed_seconds, 0.0) // interval))


def _share(number: float) -> float:
    """Return *number* from 0 to 1, NaN as 0."""
    return min(max(0.0, number), 1.0)
