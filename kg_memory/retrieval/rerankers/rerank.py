"""Step 2, rerank: one order a kind from all ways of searching, as the recipe says (Zep 3.2)."""

from __future__ import annotations

from typing import Any

from kg_memory.models.graph import Kind
from kg_memory.retrieval.fuse import DIGITS, fused
from kg_memory.retrieval.recipe import ByCrossEncoder, ByDistance, ByDiversity, ByRecency, Recipe, Reranker, recipe
from kg_memory.retrieval.records import DEFAULT_LIMIT, RetrievalState
from kg_memory.retrieval.rerankers.cross_encoder import cross_encoded
from kg_memory.retrieval.rerankers.features import TOLD_BY, Features, Ranked, by_features, features, starts
from kg_memory.retrieval.rerankers.mmr import diversified
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings


def rerank(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:
    """Fuse the hits of each kind, apply the recipe's rerankers one after another, and keep the best.

    Scores are from 0 to 1 and descend. What is found to be deleted by now is left out. A search that is to explain
    itself keeps all, and what each score was after each step.
    Errors: `InputError` when the recipe is none, or its center is not known.
    """
    chosen = recipe(state.get("recipe"))
    rerankers = _rerankers(chosen, state, settings)
    ranked: Ranked = {kind: fused(chosen, kind, hits) for kind, hits in state["hits"].items()}
    told = yield from features(ranked, rerankers, state)
    ranked |= {kind: [one for one in ranked[kind] if one[0] in rows] for kind, rows in told.items()}
    steps = [("fused", ranked)]
    for each in rerankers:
        changed = yield from _changed(each, ranked, told, state)
        ranked = ranked | changed
        steps.append((each.by, changed))
    if state.get("explain"):
        return {"ranked": _rounded(ranked, None), "parts": _parts(steps)}
    given = state.get("limit")
    return {"ranked": _rounded(ranked, DEFAULT_LIMIT if given is None else max(given, 0))}


def _rerankers(chosen: Recipe, state: RetrievalState, settings: Settings) -> tuple[Reranker, ...]:
    """Return the rerankers that are of use here, after the preference for what is newer that is set."""
    rerankers = tuple(each for each in chosen.rerank if starts(state) or not isinstance(each, ByDistance))
    if settings.temporal_decay_rate and not any(isinstance(each, ByRecency) for each in rerankers):
        return (ByRecency(rate=settings.temporal_decay_rate), *rerankers)
    return rerankers


def _changed(each: Reranker, ranked: Ranked, told: Features, state: RetrievalState) -> Flow[Ranked]:
    """Return the kinds that the reranker *each* goes by, in its order."""
    match each:
        case ByCrossEncoder():
            changed = yield from cross_encoded(ranked, each, state)
        case ByDiversity():
            changed = yield from diversified(ranked, each)
        case _:
            now = state["instants"]["believed_at"]
            changed = {
                kind: by_features(each, ranked[kind], rows, now)
                for kind, rows in told.items()
                if (each.by, kind) in TOLD_BY
            }
    return changed


def _rounded(ranked: Ranked, limit: int | None) -> dict[Kind, list[list[Any]]]:
    return {kind: [[id_, round(score, DIGITS)] for id_, score in ranking[:limit]] for kind, ranking in ranked.items()}


def _parts(steps: list[tuple[str, Ranked]]) -> dict[Kind, dict[str, list[list[Any]]]]:
    """Return the scores of each id after each of *steps*, of the first of which all kinds are."""
    parts: dict[Kind, dict[str, list[list[Any]]]] = {kind: {} for kind in steps[0][1]}
    for step, ranked in steps:
        for kind, ranking in ranked.items():
            for id_, score in ranking:
                parts[kind].setdefault(id_, []).append([step, round(score, DIGITS)])
    return parts
