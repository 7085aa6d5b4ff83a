"""Rerank by the trust in the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from kg_memory.retrieval.fuse import Scored, scale
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Weight


class ByTrust(Part):
    """Prefer trusted sources: the score times ``trust ** weight``; a fact has the trust of its best source."""

    by: Literal["trust"] = "trust"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("trust",), episodes=("trust",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.trust**self.weight for id_, feature in features.items()})
