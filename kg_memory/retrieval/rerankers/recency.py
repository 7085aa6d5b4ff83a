"""Rerank by how recently something was stated (C33)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Ranking, Scored, clamp, sort_scores
from kg_memory.retrieval.plugins import Features, Needs, Part, Question
from kg_memory.temporal.interval import DAY


class ByRecency(Part):
    """Prefer recent statements: the score grows by ``1 / (1 + age in days * rate)``, to twice itself at most (C33)."""

    by: Literal["recency"] = "recency"
    rate: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:
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
