"""Rerank by a cross-encoder (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Scored, rescore
from kg_memory.retrieval.plugins import Features, Needs, Part, Question


class ByCrossEncoder(Part):
    """Let the memory's cross-encoder read the question with each of the best candidates (Zep 3.2): exact, and slow."""

    by: Literal["cross_encoder"] = "cross_encoder"
    depth: Annotated[int, Field(ge=1, le=1000)] = 30
    """The number of candidates of each kind that are read; the others keep their order behind them."""

    @property
    def features(self) -> Needs:
        return Needs.of_all("answer", depth=self.depth)

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:  # noqa: ARG002 - a protocol's
        answers = {id_: feature.answer for id_, feature in features.items() if feature.answer is not None}
        return rescore(ranking, answers)
