"""Baselines that find the turns of a conversation without a memory: BM25, embedding vectors, and both.

Each also exists with neighbours: turns include the words of adjacent turns, or are averaged with their vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.contrib.evaluation.systems import (
    Scores,
    bags_of_words,
    bm25_scores,
    cosine_scores,
    embed_episodes,
    mean_scores,
)
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.models.graph import EpisodeInput

WORDS_OF_NEIGHBOURS: Mapping[int, int] = {0: 4, 1: 2, 2: 1}
"""The weight of a turn's words for a turn at this distance in the same thread."""
VECTORS_OF_NEIGHBOURS: Mapping[int, float] = {0: 1.0, 1: 0.5}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The turns to search, the embedder, and the file that caches their vectors."""

    turns: Sequence[EpisodeInput]
    embeddings: LocalEmbeddings
    kept: Path


def corpus(conversation: Conversation, embeddings: LocalEmbeddings, folder: Path) -> Corpus:
    """Return the turns of a conversation; their vectors are cached in *folder*."""
    return Corpus(conversation.episodes, embeddings, folder / f"{conversation.name}.npy")


def meaning(of: Corpus, *, neighbours: bool = False) -> Scores:
    """Return a scorer of turns by cosine similarity; with *neighbours*, vectors of adjacent turns are averaged."""
    vectors = _vectors(of)
    if neighbours:
        near = [_neighbours(of.turns, place, VECTORS_OF_NEIGHBOURS) for place in range(len(vectors))]
        vectors = np.array([sum(weight * vectors[place] for place, weight in row) for row in near])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return cosine_scores(vectors, of.embeddings)


def words(turns: Sequence[EpisodeInput], *, neighbours: bool = False, dates: bool = True) -> Scores:
    """Return a BM25 scorer of turns; with *neighbours*, turns include the words of adjacent turns."""
    bags = bags_of_words(turns, dates=dates)
    if not neighbours:
        return bm25_scores(bags)
    joined = []
    for place in range(len(bags)):
        bag: Counter[str] = Counter()
        for other, weight in _neighbours(turns, place, WORDS_OF_NEIGHBOURS):
            bag.update({word: int(weight) * times for word, times in bags[other].items()})
        joined.append(bag)
    return bm25_scores(joined)


def _neighbours(turns: Sequence[EpisodeInput], place: int, weights: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return (index, weight) of the turns near index *place* in the same thread, including itself."""
    widest = max(weights)
    near = range(max(place - widest, 0), min(place + widest + 1, len(turns)))
    return [(other, weights[abs(other - place)]) for other in near if turns[other].thread == turns[place].thread]


BASELINES: Mapping[str, Callable[[Corpus], Scores]] = {
    "BM25 without dates": lambda of: words(of.turns, dates=False),
    "BM25": lambda of: words(of.turns),
    "BM25 with neighbours": lambda of: words(of.turns, neighbours=True),
    "dense": meaning,
    "dense with neighbours": lambda of: meaning(of, neighbours=True),
    "hybrid": lambda of: mean_scores(words(of.turns), meaning(of)),
    "hybrid with neighbours": lambda of: mean_scores(words(of.turns, neighbours=True), meaning(of, neighbours=True)),
}


def _vectors(of: Corpus) -> np.ndarray:
    if of.kept.exists():
        kept: np.ndarray = np.load(of.kept)
        if len(kept) == len(of.turns):
            return kept
    found = embed_episodes(of.turns, of.embeddings)
    of.kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(of.kept, found)
    return found
