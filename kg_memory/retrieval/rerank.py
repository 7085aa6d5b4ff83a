"""Step 2, rerank: one order a kind, by fusing all retrievers and then by the rerankers of the recipe (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from kg_memory.models.graph import Kind
from kg_memory.retrieval.fuse import DIGITS
from kg_memory.retrieval.plugins import Question, Rankings, Reranker
from kg_memory.retrieval.records import Ranked, Request, Search, Stage
from kg_memory.retrieval.rerankers import ByRecency
from kg_memory.retrieval.rerankers.features import FeatureTable, has_start, read_features, read_features_of_best
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings


def rank_candidates(request: Request, search: Search, settings: Settings) -> Flow[Ranked]:
    """Fuse the hits of each kind, apply the recipe's rerankers one after another, and keep the best.

    Scores are from 0 to 1 and descend. Candidates that turn out to be deleted are left out. A search that is to explain
    itself keeps all, and the score of each after each stage.
    Errors: `InputError` for an unknown center.
    """
    rankings: Rankings = {kind: request.recipe.fuse(kind, hits) for kind, hits in search.hits.items()}
    question = Question(
        request.question, search.instants, search.past, request.thread, request.center, tuple(search.named)
    )
    rerankers = _useful_rerankers(request, question, settings)
    features: FeatureTable = {}
    if rerankers:
        features = yield from read_features(rankings, rerankers, question)
        for kind, rows in features.items():
            rankings[kind] = [scored for scored in rankings[kind] if scored[0] in rows]
    stages = [("fused", rankings)]
    for reranker in rerankers:
        reranked = yield from _apply(reranker, rankings, features, question)
        rankings = rankings | reranked
        stages.append((reranker.by, reranked))
    if request.explain:
        return Ranked(_cut(rankings, None), _stages(stages))
    return Ranked(_cut(rankings, request.limit))


def _useful_rerankers(request: Request, question: Question, settings: Settings) -> tuple[Reranker, ...]:
    """Return the rerankers that can change anything, after the preference for newer facts of the settings."""
    rerankers = request.recipe.rerankers
    if not has_start(question):
        rerankers = tuple(reranker for reranker in rerankers if "hops" not in reranker.features.all)
    rate = settings.temporal_decay_rate
    if rate and not any(isinstance(reranker, ByRecency) for reranker in rerankers):
        return (ByRecency(rate=rate), *rerankers)
    return rerankers


def _apply(reranker: Reranker, rankings: Rankings, features: FeatureTable, question: Question) -> Flow[Rankings]:
    """Return the kinds that *reranker* goes by, in its order."""
    kinds = [kind for kind in rankings if rankings[kind] and kind in reranker.features.kinds]
    features = yield from read_features_of_best(features, rankings, reranker, question)
    return {kind: reranker.rerank(rankings[kind], features.get(kind, {}), question) for kind in kinds}


def _cut(rankings: Rankings, limit: int | None) -> Rankings:
    cut = {}
    for kind, ranking in rankings.items():
        cut[kind] = [(id_, round(score, DIGITS)) for id_, score in ranking[:limit]]
    return cut


def _stages(stages: Sequence[tuple[str, Rankings]]) -> dict[Kind, dict[str, list[Stage]]]:
    """Return the scores of each id after each of *stages*; the first has all kinds."""
    scores: dict[Kind, dict[str, list[Stage]]] = {kind: {} for kind in stages[0][1]}
    for stage, rankings in stages:
        for kind, ranking in rankings.items():
            for id_, score in ranking:
                scores[kind].setdefault(id_, []).append((stage, round(score, DIGITS)))
    return scores
