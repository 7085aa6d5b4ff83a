"""One order from the hits of several ways of searching (Zep 3.2)."""

from __future__ import annotations

from kg_memory.models.graph import Kind
from kg_memory.retrieval.rank import Scored, ordered, relative_shares, rrf
from kg_memory.retrieval.recipe import WAYS, Recipe
from kg_memory.retrieval.records import Hits

DIGITS = 6
"""How exact scores are; what differs by less is a tie."""


def fused(recipe: Recipe, kind: Kind, hits: Hits) -> list[Scored]:
    """Return the ids that were found, with scores from 0 to 1; 1 is what is first in every way that counts."""
    counting = {way: weight for way in WAYS if (weight := getattr(recipe.weights(kind), way))}
    rankings = [hits[way] for way in counting]
    weights = list(counting.values())
    if recipe.fusion == "scores":
        shares = relative_shares(rankings, weights)
    else:
        most = sum(weights) / (recipe.rank_constant + 1)
        shares = {id_: score / most for id_, score in rrf(rankings, weights, recipe.rank_constant)}
    return ordered([(id_, round(score, DIGITS)) for id_, score in shares.items()])
