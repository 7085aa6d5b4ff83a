"""Rerank by how often episodes mention a candidate (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import log1p
from typing import ClassVar, Literal

from kg_memory.retrieval.fuse import Scored, blend
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Share


class ByMentions(Part):
    """Prefer candidates with many mentions (Zep 3.2): episodes that state the fact, or name the entity."""

    by: Literal["mentions"] = "mentions"
    weight: Share = 0.5
    """The share of the mentions in the new score; 1 sorts by them alone."""
    features: ClassVar[Needs] = Needs.of_all("mentions")

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        mentions = {id_: feature.mentions for id_, feature in features.items()}
        return blend(ranking, log_shares(mentions), self.weight)


def log_shares(counts: Mapping[str, float]) -> dict[str, float]:
    """Return *counts* as shares of the largest, by their logarithms: ``log(1 + n) / log(1 + largest)``."""
    most = log1p(max(counts.values(), default=0.0)) or 1.0
    return {id_: log1p(count) / most for id_, count in counts.items()}
