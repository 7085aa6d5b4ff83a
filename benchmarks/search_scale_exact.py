"""Exact search results: every fact scored by cosine and by BM25, and both fused."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from benchmarks.search_scale_data import Data, Matrix, Question, number
from benchmarks.search_scale_load import Texts
from kg_memory.retrieval.ranking import Hits, Scored
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.retrievers import K1, B
from kg_memory.retrieval.search import DEPTH

FIRST = 10
"""The number of best facts that are compared."""
ALIKE = 1e-4
"""Scores with a smaller difference count as equal."""


class Exact:
    """Exact search over synthetic data: scores all facts that hold now, without an index."""

    def __init__(self, data: Data, texts: Texts) -> None:
        self.data = data
        self.holds = data.holds()
        self.lengths = np.asarray([each.total() for each in texts.facts], dtype=float)
        self.lengths /= self.lengths.mean()
        found: dict[str, tuple[array[int], array[float]]] = {}
        for place, counts in enumerate(texts.facts):
            for term, often in counts.items():
                places, frequencies = found.setdefault(term, (array("q"), array("d")))
                places.append(place)
                frequencies.append(often)
        self.postings = {term: (np.asarray(places), np.asarray(often)) for term, (places, often) in found.items()}

    def meaning(self, question: Question) -> Matrix:
        """Return the cosine of each fact and the question."""
        cosines: Matrix = self.data.vectors @ np.asarray(question.vector, dtype=np.float32)
        return np.where(self.holds, cosines, -np.inf)

    def words(self, question: Question) -> Matrix:
        """Return the BM25 score of each fact for the words of the question."""
        scores = np.zeros(self.data.count)
        for term in question.terms:
            if term in self.postings:
                where, often = self.postings[term]
                rarity = math.log(1 + (self.data.count - len(where) + 0.5) / (len(where) + 0.5))
                scores[where] += rarity * often / (often + K1 * (1 - B + B * self.lengths[where]))
        return np.where(self.holds & (scores > 0), scores, -np.inf)

    def recalls(self, question: Question, hits: Hits, fused: Sequence[Scored], recipe: Recipe) -> dict[str, float]:
        """Return the recall of the exact best facts among each retriever's *hits*, and among the *fused* ones."""
        exact = {"words": self.words(question), "meaning": self.meaning(question)}
        best = Hits(ranking(exact["words"]), ranking(exact["meaning"]), [])
        both = np.full(self.data.count, -np.inf)
        for place, score in recipe.fuse("facts", best):
            both[int(place)] = score
        return {
            "words": recall(exact["words"], hits.words),
            "meaning": recall(exact["meaning"], hits.meaning),
            "fused": recall(both, fused),
        }


def ranking(scores: Matrix) -> list[tuple[str, float]]:
    """Return (fact number as text, score) for as many of the best facts as a search fuses, best first."""
    depth = min(DEPTH["facts"], len(scores))
    best = sorted(np.argpartition(-scores, depth - 1)[:depth], key=lambda place: -scores[place])
    return [(str(place), round(float(scores[place]), 6)) for place in best if scores[place] > -np.inf]


def recall(scores: Matrix, found: Sequence[Scored]) -> float:
    """Return the share of the best facts among the first ones *found*; ties count as equal."""
    best = np.sort(scores)[::-1][:FIRST]
    best = best[best > -np.inf]
    right = sum(scores[number(id_)] >= best[-1] - ALIKE for id_, _ in found[:FIRST]) if len(best) else 0
    return float(min(right, len(best)) / len(best)) if len(best) else 1.0
