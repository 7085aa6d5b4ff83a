"""Rerank by how much hangs together with something in the graph (C60)."""

from __future__ import annotations

from collections.abc import Mapping
from math import log1p
from typing import ClassVar, Literal

from kg_memory.retrieval.fuse import Scored, blend
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Share


class ByImportance(Part):
    """Prefer what much hangs together with: ``(1 - weight) * score + weight * log(1 + n) / log(1 + most)`` (C60).

    n is the number of links: of an episode the facts that it states, of a fact the episodes that state it and the
    facts that rest on it, of an entity its facts. Zeph has a model judge each message instead, which costs a call.
    """

    by: Literal["importance"] = "importance"
    weight: Share = 0.15
    features: ClassVar[Needs] = Needs(facts=("links",), entities=("links",), episodes=("links",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        most = log1p(max((feature.links for feature in features.values()), default=0)) or 1.0
        shares = {id_: log1p(feature.links) / most for id_, feature in features.items()}
        return blend(ranking, shares, self.weight)
