"""Reranking by what each adds to those before it; how alike two are is computed in the database (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.falkor.queries import features as cypher
from kg_memory.models.graph import Kind
from kg_memory.retrieval.rank import Scored, above, mmr
from kg_memory.retrieval.recipe import ByDiversity
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow

ALIKE: Mapping[Kind, str] = {
    "facts": cypher.FACTS_ALIKE,
    "entities": cypher.ENTITIES_ALIKE,
    "communities": cypher.COMMUNITIES_ALIKE,
    "episodes": cypher.EPISODES_ALIKE,
}


def diversified(ranked: Mapping[Kind, Sequence[Scored]], by: ByDiversity) -> Flow[dict[Kind, list[Scored]]]:
    """Return the best of each kind by marginal relevance, the rest below them; what has no vector is like nothing."""
    heads = {kind: ranking[: by.depth] for kind, ranking in ranked.items() if ranking}
    rows = yield from in_step(read(ALIKE[kind], ids=[id_ for id_, _ in head]) for kind, head in heads.items())
    anew: dict[Kind, list[Scored]] = {}
    for (kind, head), alike in zip(heads.items(), rows, strict=True):
        chosen = mmr(head, _pairs(alike), by.balance)
        anew[kind] = above(chosen, ranked[kind][by.depth :])
    return anew


def _pairs(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the similarity of each two, both ways round; each row has those to the rows after it."""
    pairs = {}
    for place, row in enumerate(rows, start=1):
        for other, number in zip(rows[place:], row["alike"].split(), strict=True):
            pairs[row["id"], other["id"]] = pairs[other["id"], row["id"]] = float(number)
    return pairs
