"""Counting that facts were served, for `ByUse` (C18, C19)."""

from __future__ import annotations

from collections.abc import Sequence

from kg_memory.falkor.queries import features as cypher
from kg_memory.retrieval.recipe import ByUse
from kg_memory.runtime.effects import now, write
from kg_memory.runtime.flow import Flow

SECOND = 1e6


def count_use(ids: Sequence[str], by: ByUse) -> Flow[None]:
    """Count that the facts *ids* were served now, once their counts so far have faded."""
    if not ids:
        return
    time = yield from now()
    yield from write(
        cypher.COUNT_USE, ids=list(ids), now=time, decay_lambda=by.decay_lambda, interval=by.interval * SECOND
    )
