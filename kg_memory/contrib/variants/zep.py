"""The rerankers of the Zep paper: prefer search results by cross-encoder, distance, diversity or mentions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.ranking import (
    Features,
    Hops,
    Needs,
    Part,
    QuestionView,
    Ranking,
    Scored,
    Share,
    blend,
    clamp,
    log_shares,
    rescore,
    sort_scores,
    stack,
)


class ByCrossEncoder(Part):
    """Rank the best candidates by the memory's cross-encoder, a model that reads question and candidate together.

    It is accurate but slow.
    """

    by: Literal["cross_encoder"] = "cross_encoder"
    depth: Annotated[int, Field(ge=1, le=1000)] = 30
    """The number of candidates of each kind to read; the others follow in their old order."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("answer", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        answers = {id_: feature.answer for id_, feature in features.items() if feature.answer is not None}
        return rescore(ranking, answers)


class ByDistance(Part):
    """Prefer search results that are near an entity in the graph: the search's `center`, or one in the question."""

    by: Literal["distance"] = "distance"
    weight: Share = 0.5
    max_hops: Hops = 4
    """The longest path that counts; candidates beyond it count as not connected."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("hops", max_hops=self.max_hops)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        hops = ((id_, feature.hops) for id_, feature in features.items())
        near = {id_: 1 / (1 + far) for id_, far in hops if far is not None and far <= self.max_hops}
        return blend(ranking, near, self.weight)


class ByDiversity(Part):
    """Prefer search results that differ from those ranked before them, by greedy maximal marginal relevance."""

    by: Literal["diversity"] = "diversity"
    balance: Share = 0.5
    """1 counts only relevance, 0 only difference."""
    depth: Annotated[int, Field(ge=1, le=200)] = 40

    @property
    def features(self) -> Needs:
        return Needs.of_all("similarity", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        similarity = {id_: feature.similarity for id_, feature in features.items()}
        return stack(mmr(ranking[: self.depth], similarity, self.balance), ranking[self.depth :])


def mmr(ranking: Ranking, similarity: Mapping[str, Mapping[str, float]], balance: float) -> list[Scored]:
    """Return *ranking* reordered by greedy maximal marginal relevance, with the new scores: ``[("id1", 0.9), ...]``."""
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


class ByMentions(Part):
    """Prefer search results with many mentions: messages that state the fact, or name the entity."""

    by: Literal["mentions"] = "mentions"
    weight: Share = 0.5
    """The share of mentions in the new score; 1 ranks only by mentions."""
    features: ClassVar[Needs] = Needs.of_all("mentions")

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return blend(ranking, log_shares({id_: feature.mentions for id_, feature in features.items()}), self.weight)
