"""Rerank by distance in the graph (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kg_memory.retrieval.fuse import Scored, blend
from kg_memory.retrieval.plugins import Features, Hops, Needs, Part, Question, Share


class ByDistance(Part):
    """Prefer what lies near an entity, by the shortest path (Zep 3.2): the search's `center`, else those it names."""

    by: Literal["distance"] = "distance"
    weight: Share = 0.5
    max_hops: Hops = 4
    """The longest path; beyond it counts as not connected."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("hops", max_hops=self.max_hops)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        hops = ((id_, feature.hops) for id_, feature in features.items())
        near = {id_: 1 / (1 + far) for id_, far in hops if far is not None and far <= self.max_hops}
        return blend(ranking, near, self.weight)
