"""Explanations: why a result has its rank, and why another candidate or line is left out; pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from kg_memory.models.graph import KINDS, Kind, Value
from kg_memory.models.results import Context, Explanation, Hit
from kg_memory.retrieval.context.lines import id_of, text_of
from kg_memory.retrieval.fuse import RETRIEVERS
from kg_memory.retrieval.records import Ranked, Search

FURTHER = 50
"""The candidates of each kind behind the results that are explained, at most."""
GONE: Mapping[Kind, str] = {
    "facts": "it does not hold at the time that is asked about, or was not believed then",
    "entities": "not known then, or deleted meanwhile",
    "communities": "deleted meanwhile",
    "episodes": "not known then, or deleted meanwhile",
}
"""The reason why a candidate cannot be read any more."""
Texts = Mapping[Kind, Mapping[str, str]]
"""The text of what is stored, by kind and id."""


def explain(context: Context, texts: Texts, search: Search, ranked: Ranked, limit: int) -> tuple[Explanation, ...]:
    """Return why the results in *context* have their ranks, and why other candidates are not among the *limit* best."""
    explanations: list[Explanation] = []
    for kind in KINDS:
        explanations += _explain_results(kind, context, search, ranked)
        explanations += _explain_others(kind, context, texts, search, ranked, limit)
    return tuple(explanations)


def _explain_results(kind: Kind, context: Context, search: Search, ranked: Ranked) -> Iterator[Explanation]:
    """Yield the explanations of the results, in their order; each period of a fact has a line of its own."""
    lines: defaultdict[str, deque[str]] = defaultdict(deque)
    for line in context.lines:
        if line.kind == kind:
            lines[line.id].append(line.text)
    reasons = {skipped.id: skipped.left_out for skipped in context.left_out if skipped.kind == kind}
    for rank, value in enumerate(_results(kind, context), start=1):
        id_ = id_of(value)
        has_line = bool(lines[id_])
        text = lines[id_].popleft() if has_line else text_of(value)
        update = {"rank": rank} if has_line else {"rank": rank, "left_out": reasons.get(id_)}
        yield _explain_one(kind, id_, text, search, ranked).model_copy(update=update)


def _explain_others(
    kind: Kind, context: Context, texts: Texts, search: Search, ranked: Ranked, limit: int
) -> Iterator[Explanation]:
    """Yield the explanations of the candidates that are no results, best first."""
    results = {id_of(value) for value in _results(kind, context)}
    for id_, _ in ranked.ranked.get(kind, [])[: limit + FURTHER]:
        if id_ not in results:
            reason = f"not among the first {limit}" if id_ in texts[kind] else GONE[kind]
            explanation = _explain_one(kind, id_, texts[kind].get(id_, ""), search, ranked)
            yield explanation.model_copy(update={"left_out": reason})


def _explain_one(kind: Kind, id_: str, text: str, search: Search, ranked: Ranked) -> Explanation:
    """Return by which retrievers a candidate was found, and its score after each stage of ranking."""
    stages = ranked.stages.get(kind, {}).get(id_, ())
    return Explanation(kind=kind, id=id_, text=text, hits=tuple(_hits(kind, id_, search)), scores=tuple(stages))


def _hits(kind: Kind, id_: str, search: Search) -> Iterator[Hit]:
    if kind in search.hits:
        for retriever in RETRIEVERS:
            for rank, (hit, score) in enumerate(search.hits[kind].of(retriever), start=1):
                if hit == id_:
                    yield Hit(retriever=retriever, rank=rank, score=score)


def _results(kind: Kind, context: Context) -> Sequence[Value]:
    results: Sequence[Value] = getattr(context.results, kind)
    return results
