"""Explains search results (``explain=True``): what found each result, with ranks and scores, and what was left out."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from kg_memory.models.graph import KINDS, Kind
from kg_memory.models.results import Context, Explanation, Hit
from kg_memory.retrieval.construct import FURTHER, Winners
from kg_memory.retrieval.context.lines import id_of, result_text
from kg_memory.retrieval.question import Found, Ranked
from kg_memory.retrieval.ranking import RETRIEVERS

GONE: Mapping[Kind, str] = {
    "facts": "does not hold at the time of the question, or was not believed then",
    "entities": "not known then, or deleted meanwhile",
    "communities": "deleted meanwhile",
    "episodes": "not known then, or deleted meanwhile",
}
"""Why a candidate could not be read from the database any more, by kind."""
FILLER = "a filler without content, such as 'Sure!'"


def explain(context: Context, winners: Winners, found: Found, ranked: Ranked, limit: int) -> tuple[Explanation, ...]:
    """Explain why each result in *context* was found, and why the best other candidates were left out."""
    explanations: list[Explanation] = []
    for kind in KINDS:
        explanations += _explain_results(kind, context, found, ranked)
        results = {id_of(value) for value in getattr(context.results, kind)}
        for id_, _ in ranked.ranked.get(kind, [])[: limit + FURTHER]:
            if id_ in results:
                continue
            reason = FILLER if id_ in winners.fillers else f"not among the first {limit}"
            if id_ not in winners.texts[kind]:
                reason = GONE[kind]
            text = winners.texts[kind].get(id_, "")
            explanations.append(_explain_one(kind, id_, text, found, ranked, left_out=reason))
    return tuple(explanations)


def _explain_results(kind: Kind, context: Context, found: Found, ranked: Ranked) -> Iterator[Explanation]:
    """Yield an explanation of each search result of *kind*, best first."""
    lines: defaultdict[str, deque[str]] = defaultdict(deque)
    for line in context.lines:
        if line.kind == kind:
            lines[line.id].append(line.text)
    reasons = {skipped.id: skipped.left_out for skipped in context.left_out if skipped.kind == kind}
    for rank, value in enumerate(getattr(context.results, kind), start=1):
        id_ = id_of(value)
        if lines[id_]:
            yield _explain_one(kind, id_, lines[id_].popleft(), found, ranked, rank=rank)
        else:
            yield _explain_one(kind, id_, result_text(value), found, ranked, rank=rank, left_out=reasons.get(id_))


def _explain_one(kind: Kind, id_: str, text: str, found: Found, ranked: Ranked, **rest: Any) -> Explanation:
    stages = ranked.stages.get(kind, {}).get(id_, ())
    return Explanation(kind=kind, id=id_, text=text, hits=tuple(_hits(kind, id_, found)), scores=tuple(stages), **rest)


def _hits(kind: Kind, id_: str, found: Found) -> Iterator[Hit]:
    if kind in found.hits:
        for retriever in RETRIEVERS:
            for rank, (hit, score) in enumerate(found.hits[kind].of(retriever), start=1):
                if hit == id_:
                    yield Hit(retriever=retriever, rank=rank, score=score)
