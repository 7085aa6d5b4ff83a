"""Figures of retrieval, and bootstrap intervals of means and of differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

DEPTHS = (1, 5, 10, 20)
RESAMPLES = 2000


def recall(sources: Sequence[str], evidence: frozenset[str], depth: int) -> float:
    """Return the share of the *evidence* among the first *depth* sources."""
    return len(evidence.intersection(sources[:depth])) / len(evidence)


def all_found(sources: Sequence[str], evidence: frozenset[str], depth: int) -> float:
    """Return 1 if all *evidence* is among the first *depth* sources, else 0."""
    return float(evidence <= set(sources[:depth]))


def ndcg(sources: Sequence[str], evidence: frozenset[str], depth: int = 10) -> float:
    """Return the normalised discounted cumulative gain; each piece of evidence gains 1, once (Järvelin 2002)."""
    seen: set[str] = set()
    gained = 0.0
    for place, source in enumerate(sources[:depth]):
        if source in evidence and source not in seen:
            seen.add(source)
            gained += 1 / math.log2(place + 2)
    best = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), depth)))
    return gained / best


def retrieval(sources: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    """Return all figures of retrieval for a question with *evidence*."""
    figures = {f"recall@{depth}": recall(sources, evidence, depth) for depth in DEPTHS}
    figures |= {f"all@{depth}": all_found(sources, evidence, depth) for depth in DEPTHS[1:]}
    return {**figures, "nDCG@10": ndcg(sources, evidence)}


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(values: Sequence[float], seed: int = 0) -> Interval:
    """Return the mean of *values* with the percentile bootstrap interval; questions are resampled."""
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    sample = np.array(values, dtype=float)
    draw = np.random.default_rng(seed)
    means = np.array([sample[draw.integers(0, len(sample), len(sample))].mean() for _ in range(RESAMPLES)])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(sample.mean()), float(low), float(high))


def kendall(order: Sequence[int]) -> float:
    """Return Kendall's tau of *order* against ascending order, -1 to 1; 0 for fewer than two."""
    pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    return sum((other > one) - (other < one) for one, other in pairs) / len(pairs) if pairs else 0.0
