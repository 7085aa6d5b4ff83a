"""Fusion of rankings, pure: lists of ids with scores become one list, best first, ties in order of id (Zep 3.2).

The functions from `blend` on are for rerankers: each returns a permutation of its ranking, with scores from 0 to 1. NaN
counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from operator import itemgetter
from typing import Literal

Scored = tuple[str, float]
"""An id and its score."""
Ranking = Sequence[Scored]
Retriever = Literal["words", "meaning", "graph"]
"""By words (BM25), by meaning (cosine similarity), along the graph."""
RETRIEVERS: tuple[Retriever, ...] = ("words", "meaning", "graph")

DIGITS = 6
"""The digits of a score: a smaller difference is a tie."""
LAST = 0.01
"""The share of the last hit of a retriever, whose best has 1: more than that of an id it did not return."""
BELOW = 0.01
"""The highest score below a part that was ranked anew."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The results of each retriever for one kind, best first."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]

    def of(self, retriever: Retriever) -> list[Scored]:
        """Return the results of *retriever*."""
        scores: list[Scored] = getattr(self, retriever)
        return scores

    @property
    def searched(self) -> list[str]:
        """The ids that were found by words or by meaning, each once."""
        return list(dict.fromkeys(id_ for id_, _ in (*self.words, *self.meaning)))


NO_HITS = Hits([], [], [])


def fuse(
    rankings: Sequence[Ranking], weights: Sequence[float], method: Literal["scores", "rrf"], rank_constant: float
) -> list[Scored]:
    """Return the ids of all *rankings* with scores from 0 to 1; an id that is first in each of them has 1."""
    if method == "scores":
        shares = relative_shares(rankings, weights)
    else:
        most = sum(weights) / (rank_constant + 1)
        shares = {id_: score / most for id_, score in rrf(rankings, weights, rank_constant)}
    return sort_scores((id_, round(score, DIGITS)) for id_, score in shares.items())


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], k: float = 10.0) -> list[Scored]:
    """Return the weighted reciprocal rank fusion of *rankings*: ``sum(weight / (k + rank))``, best first.

    A ranking may be in any order. Ids with the same score share the best of their ranks, and NaN is worst. An id gets
    nothing from a ranking that lacks it.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for id_, rank in ranks(ranking).items():
            fused[id_] = fused.get(id_, 0.0) + weight / (k + rank)
    return sort_scores(fused.items())


def relative_shares(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of relative scores: in each of *rankings* the best has 1, and the last has `LAST`.

    An id gets 0 from a ranking that lacks it or has no finite score for it. Equal scores are all 1.
    """
    fused = {id_: 0.0 for ranking in rankings for id_, _ in ranking}
    total = sum(weights) or 1.0
    for ranking, weight in zip(rankings, weights, strict=True):
        finite: dict[str, float] = {}
        for id_, score in ranking:
            if isfinite(score) and score > finite.get(id_, -inf):
                finite[id_] = score
        lowest, highest = min(finite.values(), default=0.0), max(finite.values(), default=0.0)
        part = weight / total
        wide, least = (highest - lowest, LAST) if highest > lowest else (1.0, 1.0)
        base, rise = part * least, part * (1 - least)
        for id_, score in finite.items():
            fused[id_] += base + rise * ((score - lowest) / wide)
    return fused


def ranks(ranking: Ranking) -> dict[str, int]:
    """Return the rank of each id, from 1; equal scores share a rank, and a repeated id has its best one."""
    places: dict[str, int] = {}
    place, last = 0, None
    for position, (id_, score) in enumerate(sort_scores(ranking), start=1):
        if score != last:
            place, last = position, score
        places.setdefault(id_, place)
    return places


def sort_scores(scores: Iterable[Scored]) -> list[Scored]:
    """Return *scores* best first, ties in order of id, NaN last."""
    numbers = [(id_, -inf if isnan(score) else score) for id_, score in scores]
    numbers.sort(key=itemgetter(0))
    numbers.sort(key=itemgetter(1), reverse=True)  # stable: ties stay in order of id
    return numbers


def positive(scores: Mapping[str, float]) -> list[Scored]:
    """Return the *scores* above 0, best first, ties in order of id."""
    return [(id_, round(score, DIGITS)) for id_, score in sort_scores(scores.items()) if score > 0]


def ids_of(ranking: Ranking) -> list[str]:
    """Return the ids of *ranking*."""
    return [id_ for id_, _ in ranking]


def clamp(number: float) -> float:
    """Return *number* from 0 to 1, NaN as 0."""
    return min(max(0.0, number), 1.0)


def blend(ranking: Ranking, shares: Mapping[str, float], weight: float) -> list[Scored]:
    """Return *ranking* by ``(1 - weight) * score + weight * share``; an id without a share has 0."""
    return sort_scores(
        (id_, (1 - weight) * clamp(score) + weight * clamp(shares.get(id_, 0.0))) for id_, score in ranking
    )


def scale(ranking: Ranking, factors: Mapping[str, float]) -> list[Scored]:
    """Return *ranking* by each score times its factor, from 0 to 1; an id without a factor keeps its score."""
    return sort_scores((id_, clamp(score) * clamp(factors.get(id_, 1.0))) for id_, score in ranking)


def rescore(ranking: Ranking, scores: Mapping[str, float]) -> list[Scored]:
    """Return the ids that have new *scores* by these, then the others in their order, with scores below."""
    head = sort_scores((id_, clamp(scores[id_])) for id_, _ in ranking if id_ in scores)
    return stack(head, [(id_, score) for id_, score in sort_scores(ranking) if id_ not in scores])


def stack(head: Ranking, tail: Ranking) -> list[Scored]:
    """Return *head*, then *tail*, both in their order; the scores of the tail end up below those of the head."""
    if not head or not tail:
        return [(id_, clamp(score)) for id_, score in (*head, *tail)]
    raised = [(id_, BELOW + (1 - BELOW) * score) for id_, score in head]
    return raised + [(id_, BELOW * clamp(score)) for id_, score in tail]
