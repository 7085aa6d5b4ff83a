"""Reranking by a model that reads the question together with each candidate (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.falkor.queries import features as cypher
from kg_memory.models.graph import Kind
from kg_memory.retrieval.rank import Scored, reread
from kg_memory.retrieval.recipe import ByCrossEncoder
from kg_memory.retrieval.records import RetrievalState
from kg_memory.runtime.effects import in_step, read, score
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import replace_unstorable

SAY: Mapping[Kind, str] = {
    "facts": cypher.FACTS_SAY,
    "entities": cypher.ENTITIES_SAY,
    "communities": cypher.COMMUNITIES_SAY,
    "episodes": cypher.EPISODES_SAY,
}
OF_NOW: tuple[Kind, ...] = ("entities", "communities")
"""The kinds whose texts tell of now, so that they do not answer a question about the past."""
LONGEST = 2000
"""Characters of the question, and of a text, that are read."""


def cross_encoded(
    ranked: Mapping[Kind, Sequence[Scored]], by: ByCrossEncoder, state: RetrievalState
) -> Flow[dict[Kind, list[Scored]]]:
    """Return the best of each kind in the order in which they answer the question, the rest below them."""
    heads = {kind: [id_ for id_, _ in ranking[: by.depth]] for kind, ranking in ranked.items() if ranking}
    rows = yield from in_step(read(SAY[kind], ids=ids, length=LONGEST) for kind, ids in heads.items())
    past = bool(state.get("past"))
    texts = {
        row["id"]: _text(row, only_name=past and kind in OF_NOW)
        for kind, found in zip(heads, rows, strict=True)
        for row in found
    }
    scores = yield from score(replace_unstorable(state["question"])[:LONGEST], list(texts.values()))
    anew = dict(zip(texts, scores, strict=True))
    return {kind: reread(ranked[kind], {id_: anew[id_] for id_ in ids if id_ in anew}) for kind, ids in heads.items()}


def _text(row: Mapping[str, Any], *, only_name: bool) -> str:
    parts = (row["name"], None if only_name else row["text"])
    return ": ".join(each for each in parts if each)[:LONGEST]
