"""Rerank by maximal marginal relevance (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Ranking, Scored, clamp, sort_scores, stack
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Share


class ByDiversity(Part):
    """Prefer what adds to those before it: greedy maximal marginal relevance (Zep 3.2)."""

    by: Literal["diversity"] = "diversity"
    balance: Share = 0.5
    """1 is relevance alone, 0 is difference alone."""
    depth: Annotated[int, Field(ge=1, le=200)] = 40

    @property
    def features(self) -> Needs:
        return Needs.of_all("similarity", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        similarity = {id_: feature.similarity for id_, feature in features.items()}
        return stack(mmr(ranking[: self.depth], similarity, self.balance), ranking[self.depth :])


def mmr(ranking: Ranking, similarity: Mapping[str, Mapping[str, float]], balance: float) -> list[Scored]:
    """Return *ranking* by greedy maximal marginal relevance (Zep 3.2); of equals the better first, then by id.

    The next is always the one with the most ``balance * relevance + (1 - balance) * novelty``, which is its new score.
    Relevance is the score divided by the best, novelty 1 less the largest *similarity* (0 to 1, by both ids) to one
    before it; a missing similarity is 0. As novelty can only shrink, the scores descend. A balance of 1 keeps the
    order.
    """
    left = [id_ for id_, _ in sort_scores(ranking)]
    relevance = {id_: clamp(score) for id_, score in ranking}
    best = max(relevance.values(), default=0.0) or 1.0
    likeness = dict.fromkeys(left, 0.0)

    def gain(id_: str) -> float:
        return balance * (relevance[id_] / best) + (1 - balance) * (1 - likeness[id_])

    chosen: list[Scored] = []
    while left:
        best_id = max(left, key=gain)
        chosen.append((best_id, gain(best_id)))
        left.remove(best_id)
        similar = similarity.get(best_id, {})
        for id_ in left:
            likeness[id_] = max(likeness[id_], clamp(similar.get(id_, 0.0)))
    return chosen
