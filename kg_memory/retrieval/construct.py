"""Step 3, construct: the winners as values, and as a text for a prompt."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kg_memory.models import filters
from kg_memory.models.graph import KINDS, Fact, Kind
from kg_memory.models.results import Context, Explanation, Hit, SearchResults
from kg_memory.plugins import load_plugin
from kg_memory.retrieval.answerable import judge
from kg_memory.retrieval.context.lines import id_of, text_of
from kg_memory.retrieval.context.render import render
from kg_memory.retrieval.fuse import RETRIEVERS
from kg_memory.retrieval.plugins import ServedReranker
from kg_memory.retrieval.question import Found, Question, Ranked
from kg_memory.retrieval.winners import FURTHER, Winners, read_winners
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

BEFORE_ABSENT = 3
"""The facts that come before those that have ended with nothing in their place."""
GONE: Mapping[Kind, str] = {
    "facts": "it does not hold at the time that is asked about, or was not believed then",
    "entities": "not known then, or deleted meanwhile",
    "communities": "deleted meanwhile",
    "episodes": "not known then, or deleted meanwhile",
}
"""The reason why a candidate cannot be read any more."""
FILLER = "it says nothing by itself"
NOT_SELECTED = "the model did not select it"


def write(question: Question, found: Found, ranked: Ranked, settings: Settings) -> Flow[Context]:
    """Read the winners by id, and write the best of them within `max_tokens`, or that the memory does not know."""
    winners = yield from read_winners(question, found, ranked)
    everything = _make_results(question, found, winners, settings)
    results = everything
    if question.recipe.select:
        results = yield from load_plugin("stages", "select")(everything)
    context = Context(results=results)
    if question.max_tokens:
        context = render(results, question.max_tokens, question.template)
    if question.explain:
        dropped = {kind: _ids(everything, kind) - _ids(results, kind) for kind in KINDS}
        explanations = explain(context, winners, found, ranked, question.limit, dropped)
        results = results.model_copy(update={"explanations": explanations})
        context = Context(context, results, tokens=context.tokens, lines=context.lines, left_out=context.left_out)
    for reranker in question.recipe.rerankers:
        if isinstance(reranker, ServedReranker):
            yield from reranker.record(list(dict.fromkeys(fact.id for fact in results.facts)))
    return context


def _make_results(question: Question, found: Found, winners: Winners, settings: Settings) -> SearchResults:
    results = SearchResults(
        question=question.text,
        time=found.time,
        **{kind: tuple(values) for kind, values in winners.values.items()},
        relevance=found.relevance,
        answerable=judge(found.relevance, found.doubt, settings.abstain_below),
        skipped=question.recipe.skipped if question.recipe.route else (),
        degraded=found.degraded,
    )
    if found.past or _filters_episodes_or_facts(question):
        results = _without_summaries(results)
    return _with_absent(results, winners.absent)


def _with_absent(results: SearchResults, absent: Sequence[Fact]) -> SearchResults:
    facts = (*results.facts[:BEFORE_ABSENT], *absent, *results.facts[BEFORE_ABSENT:])
    return results.model_copy(update={"facts": facts}) if absent else results


def _filters_episodes_or_facts(question: Question) -> bool:
    """Return whether the filter is about more than kinds of entities: a summary also tells what other episodes say."""
    if question.where is None:
        return False
    return any(filters.field_of(comparison).of != "entity" for comparison in filters.comparisons(question.where))


def _without_summaries(results: SearchResults) -> SearchResults:
    """Leave the summaries out: they describe the present, by all that was ever said."""
    entities = tuple(entity.model_copy(update={"summary": ""}) for entity in results.entities)
    communities = tuple(community.model_copy(update={"summary": ""}) for community in results.communities)
    return results.model_copy(update={"entities": entities, "communities": communities})


def _ids(results: SearchResults, kind: Kind) -> set[str]:
    return {value.id for value in getattr(results, kind)}


# Explanations


def explain(
    context: Context,
    winners: Winners,
    found: Found,
    ranked: Ranked,
    limit: int,
    dropped: Mapping[Kind, set[str]] | None = None,
) -> tuple[Explanation, ...]:
    """Return why the results in *context* have their ranks, and why other candidates are not among the *limit* best.

    *dropped* are the ids of the results that the model did not select.
    """
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
            elif dropped and id_ in dropped[kind]:
                reason = NOT_SELECTED
            text = winners.texts[kind].get(id_, "")
            explanations.append(_explain_one(kind, id_, text, found, ranked, left_out=reason))
    return tuple(explanations)


def _explain_results(kind: Kind, context: Context, found: Found, ranked: Ranked) -> Iterator[Explanation]:
    """Yield the explanations of the results, in their order; each period of a fact has a line of its own."""
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
            yield _explain_one(kind, id_, text_of(value), found, ranked, rank=rank, left_out=reasons.get(id_))


def _explain_one(kind: Kind, id_: str, text: str, found: Found, ranked: Ranked, **rest: Any) -> Explanation:
    """Return by which retrievers a candidate was found, and its score after each stage of ranking."""
    stages = ranked.stages.get(kind, {}).get(id_, ())
    return Explanation(kind=kind, id=id_, text=text, hits=tuple(_hits(kind, id_, found)), scores=tuple(stages), **rest)


def _hits(kind: Kind, id_: str, found: Found) -> Iterator[Hit]:
    if kind in found.hits:
        for retriever in RETRIEVERS:
            for rank, (hit, score) in enumerate(found.hits[kind].of(retriever), start=1):
                if hit == id_:
                    yield Hit(retriever=retriever, rank=rank, score=score)
