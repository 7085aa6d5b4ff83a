"""Rerank by age, with a half-life (C61)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Scored, scale
from kg_memory.retrieval.plugins import Features, Needs, Part, Question
from kg_memory.temporal.interval import DAY


class ByHalfLife(Part):
    """Let old statements fade: the score halves each `days` since it was stated last (C61).

    `ByRecency` raises what is new and never hides what is old; this one does.
    """

    by: Literal["half_life"] = "half_life"
    days: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = 30.0
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:
        now = question.instants.believed_at
        ages = {id_: max(now - feature.stated_at, 0) / DAY for id_, feature in features.items()}
        return scale(ranking, {id_: 0.5 ** (age / self.days) for id_, age in ages.items()})
