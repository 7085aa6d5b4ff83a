"""Rerank by how often a fact was served (C17 to C19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log1p
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.falkor.queries import features as cypher
from kg_memory.retrieval.fuse import Scored, scale
from kg_memory.retrieval.plugins import Features, Needs, Part, Question
from kg_memory.runtime.effects import now, write
from kg_memory.runtime.flow import Flow

SECOND = 1_000_000


class ByUse(Part):
    """Prefer facts that were served before: ``confidence * (1 + 0.2 ln(1 + count))``, 1 at most (C17 to C19).

    Each search counts the facts that it serves, which is a write; a count fades by `decay_lambda` each `interval`.
    """

    by: Literal["use"] = "use"
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.95
    interval: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 86_400.0
    """In seconds."""
    features: ClassVar[Needs] = Needs(facts=("used", "used_at", "confidence"))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:
        now = question.instants.believed_at
        return scale(ranking, {id_: self._weight(feature, now) for id_, feature in features.items()})

    def _weight(self, feature: Features, now: int) -> float:
        count = fade(feature.used, (now - feature.used_at) / SECOND, self.decay_lambda, self.interval)
        return use_weight(count, feature.confidence)

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Count that the *facts* were served now, once their counts so far have faded."""
        if not facts:
            return
        decay, interval = self.decay_lambda, self.interval * SECOND
        time = yield from now()
        yield from write(cypher.COUNT_USE, ids=list(facts), now=time, decay_lambda=decay, interval=interval)


def use_weight(count: float, confidence: float) -> float:
    """Return the weight of a fact that was served *count* times: ``confidence * (1 + 0.2 ln(1 + count))``, at most 1.

    The product is limited (C18), not the factor: else serving would never raise it.
    """
    return min(1.0, confidence * (1 + 0.2 * log1p(max(count, 0.0))))


def fade(count: float, elapsed_seconds: float, decay_lambda: float, interval: float) -> float:
    """Return the rest of *count*: the part *decay_lambda* after each whole *interval* elapsed (C19)."""
    return count * float(decay_lambda ** (max(elapsed_seconds, 0.0) // interval))
