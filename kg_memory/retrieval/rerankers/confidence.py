"""Rerank by the confidence in a fact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from kg_memory.retrieval.fuse import Scored, scale
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Weight


class ByConfidence(Part):
    """Prefer certain facts: the score times ``confidence ** weight``."""

    by: Literal["confidence"] = "confidence"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("confidence",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.confidence**self.weight for id_, feature in features.items()})
