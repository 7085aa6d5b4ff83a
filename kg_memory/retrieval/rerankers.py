"""The rerankers, each a value that may stand in a recipe, or be one by its name (`by`)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import log1p
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Ranking, Scored, blend, clamp, ids_of, rescore, sort_scores, stack
from kg_memory.retrieval.plugins import Features, Hops, Instants, Needs, Part, QuestionView, Share
from kg_memory.temporal.interval import DAY

UNSURE = 0.5
"""The share of what may have been so at that time: its start is unknown."""
SPREAD = 3
"""The first, second and third without the preference stay among the first 3, 6 and 9."""


class ByCrossEncoder(Part):
    """Let the memory's cross-encoder read the question with each of the best candidates (Zep 3.2): exact, and slow."""

    by: Literal["cross_encoder"] = "cross_encoder"
    depth: Annotated[int, Field(ge=1, le=1000)] = 30
    """The number of candidates of each kind that are read; the others keep their order behind them."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("answer", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        answers = {id_: feature.answer for id_, feature in features.items() if feature.answer is not None}
        return rescore(ranking, answers)


class ByDistance(Part):
    """Prefer what lies near an entity, by the shortest path (Zep 3.2): the search's `center`, else those it names."""

    by: Literal["distance"] = "distance"
    weight: Share = 0.5
    max_hops: Hops = 4
    """The longest path; beyond it counts as not connected."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("hops", max_hops=self.max_hops)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        hops = ((id_, feature.hops) for id_, feature in features.items())
        near = {id_: 1 / (1 + far) for id_, far in hops if far is not None and far <= self.max_hops}
        return blend(ranking, near, self.weight)


class ByDiversity(Part):
    """Prefer what adds to those before it: greedy maximal marginal relevance (Zep 3.2)."""

    by: Literal["diversity"] = "diversity"
    balance: Share = 0.5
    """1 is relevance alone, 0 is difference alone."""
    depth: Annotated[int, Field(ge=1, le=200)] = 40

    @property
    def features(self) -> Needs:
        return Needs.of_all("similarity", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
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


class ByMentions(Part):
    """Prefer candidates with many mentions (Zep 3.2): episodes that state the fact, or name the entity."""

    by: Literal["mentions"] = "mentions"
    weight: Share = 0.5
    """The share of the mentions in the new score; 1 sorts by them alone."""
    features: ClassVar[Needs] = Needs.of_all("mentions")

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        mentions = {id_: feature.mentions for id_, feature in features.items()}
        return blend(ranking, log_shares(mentions), self.weight)


def log_shares(counts: Mapping[str, float]) -> dict[str, float]:
    """Return *counts* as shares of the largest, by their logarithms: ``log(1 + n) / log(1 + largest)``."""
    most = log1p(max(counts.values(), default=0.0)) or 1.0
    return {id_: log1p(count) / most for id_, count in counts.items()}


class ByRecency(Part):
    """Prefer recent statements: the score grows by ``1 / (1 + age in days * rate)``, to twice itself at most (C33)."""

    by: Literal["recency"] = "recency"
    rate: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now = question.instants.believed_at
        ages = {id_: (now - feature.stated_at) / DAY for id_, feature in features.items()}
        return prefer_newer(ranking, ages, self.rate)


def prefer_newer(ranking: Ranking, ages: Mapping[str, float], rate: float) -> list[Scored]:
    """Return *ranking* by the scores raised by age in days, and halved to stay within 1; no age raises nothing."""
    scores = {id_: clamp(score) for id_, score in ranking}
    raised = {id_: raise_by_age(scores[id_], age, rate) for id_, age in ages.items() if id_ in scores}
    return sort_scores((id_, score / 2) for id_, score in (scores | raised).items())


def raise_by_age(score: float, age_days: float, rate: float) -> float:
    """Return *score* raised by ``1 / (1 + age * rate)``, to twice itself at most (C33); an age below 0 is one of 0."""
    return min(score + 1 / (1 + max(age_days, 0.0) * rate), 2 * score)


class ByTime(Part):
    """Prefer what was so, or was said, at the time that the question names: ``(1 - w) * score + w * nearness``.

    Nearness is 1 at that time, and falls to 0 within the vagueness of its words: a day beside "on 4 May", a month
    beside "in May". Nothing falls far behind: see `hold`. Every search whose question names a time ends with this.
    """

    by: Literal["time"] = "time"
    facts: Share = 0.5
    """The weight of nearness for facts."""
    episodes: Share = 0.2
    """Less: what happened in May is often told in June."""
    features: ClassVar[Needs] = Needs(facts=("periods",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        shares = {id_: _nearness(feature, question.instants) for id_, feature in features.items()}
        are_facts = any(feature.periods for feature in features.values())
        return hold(blend(ranking, shares, self.facts if are_facts else self.episodes), ranking)


def _nearness(feature: Features, instants: Instants) -> float:
    """Return how near a fact, by the best of its periods, or an episode is to the time of the question, 0 to 1."""
    periods = feature.periods or [(feature.stated_at, feature.stated_at, feature.stated_at + 1)]
    return max(
        max(instants.nearness(known, until), UNSURE * instants.nearness(since, until))
        for since, known, until in periods
    )


def hold(ranking: Ranking, before: Ranking) -> list[Scored]:
    """Return *ranking* with the n-th of *before* among the first ``SPREAD * n``, and scores that still descend."""
    scores, former = dict(ranking), ids_of(sort_scores(before))
    order: dict[str, None] = {}
    for id_ in scores:
        place, left = divmod(len(order) + 1, SPREAD)
        if place and not left:
            order.setdefault(former[place - 1])
        order.setdefault(id_)
    raised = list(accumulate(reversed([scores[id_] for id_ in order]), max))
    return list(zip(order, reversed(raised), strict=True))


RERANKERS = (
    ByCrossEncoder,
    ByDistance,
    ByDiversity,
    ByMentions,
    ByRecency,
    ByTime,
)
"""The rerankers of the core; plug-ins of the kind ``rerankers`` stand beside them in `kg_memory.retrieval.recipe`."""
