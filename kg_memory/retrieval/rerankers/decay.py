"""Leave out what has faded (D23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.fuse import Scored, scale
from kg_memory.retrieval.plugins import Features, Needs, Part, Question, Share
from kg_memory.temporal.decay import DecaySpans, find_decay

Days = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


class ByDecay(Part):
    """Leave out what is forgotten, also softly, and lower what is dim (D23); see `temporal.decay`.

    Of a message only the time when it was said counts. The use of facts is noted by the reranker ``use``: with both, a
    fact that is served stays fresh.
    """

    by: Literal["decay"] = "decay"
    fresh_days: Days = 90
    dim_days: Days = 30
    soft_days: Days = 90
    dim_factor: Share = 0.5
    features: ClassVar[Needs] = Needs(facts=("stated_at", "used_at"), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:
        now, spans = question.instants.believed_at, DecaySpans(self.fresh_days, self.dim_days, self.soft_days)
        faded = {id_: find_decay(feature.stated_at, feature.used_at, now, spans) for id_, feature in features.items()}
        kept = [scored for scored in ranking if faded.get(scored[0]) not in ("soft_forgotten", "forgotten")]
        return scale(kept, {id_: self.dim_factor for id_, decay in faded.items() if decay == "dim"})
