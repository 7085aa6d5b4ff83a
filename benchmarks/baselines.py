"""How the turns of a conversation are found without a memory: BM25, the bundled embedder's vectors, and both.

Each also with neighbours: turns carry the words of the turns beside them, or are smoothed with their vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.contrib.evaluation.systems import Scores, bags_of_words, bm25, both, cosine, embed
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.models.graph import EpisodeInput

WORDS_OF_NEIGHBOURS: Mapping[int, int] = {0: 4, 1: 2, 2: 1}
"""The weight of a turn's words for one that is so many turns away in the same thread."""
VECTORS_OF_NEIGHBOURS: Mapping[int, float] = {0: 1.0, 1: 0.5}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The turns to be found, and the file in which their vectors are kept."""

    turns: Sequence[EpisodeInput]
    embeddings: LocalEmbeddings
    kept: Path


def corpus(conversation: Conversation, embeddings: LocalEmbeddings, folder: Path) -> Corpus:
    """Return the turns of a conversation; their vectors are kept in *folder*."""
    return Corpus(conversation.episodes, embeddings, folder / f"{conversation.name}.npy")


def meaning(of: Corpus, *, neighbours: bool = False) -> Scores:
    """Return the cosine similarity of single turns, or of turns smoothed with those beside them."""
    vectors = _vectors(of)
    if neighbours:
        near = [_neighbours(of.turns, place, VECTORS_OF_NEIGHBOURS) for place in range(len(vectors))]
        vectors = np.array([sum(weight * vectors[place] for place, weight in row) for row in near])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return cosine(vectors, of.embeddings)


def words(turns: Sequence[EpisodeInput], *, neighbours: bool = False, dates: bool = True) -> Scores:
    """Return BM25 over single turns, or over turns that carry their neighbours' words."""
    bags = bags_of_words(turns, dates=dates)
    if not neighbours:
        return bm25(bags)
    joined = []
    for place in range(len(bags)):
        bag: Counter[str] = Counter()
        for other, weight in _neighbours(turns, place, WORDS_OF_NEIGHBOURS):
            bag.update({word: int(weight) * times for word, times in bags[other].items()})
        joined.append(bag)
    return bm25(joined)


def _neighbours(turns: Sequence[EpisodeInput], place: int, weights: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return the places near *place* in the same thread, itself among them, with their weights."""
    widest = max(weights)
    near = range(max(place - widest, 0), min(place + widest + 1, len(turns)))
    return [(other, weights[abs(other - place)]) for other in near if turns[other].thread == turns[place].thread]


BASELINES: Mapping[str, Callable[[Corpus], Scores]] = {
    "BM25 without dates": lambda of: words(of.turns, dates=False),
    "BM25": lambda of: words(of.turns),
    "BM25 with neighbours": lambda of: words(of.turns, neighbours=True),
    "dense": meaning,
    "dense with neighbours": lambda of: meaning(of, neighbours=True),
    "hybrid": lambda of: both(words(of.turns), meaning(of)),
    "hybrid with neighbours": lambda of: both(words(of.turns, neighbours=True), meaning(of, neighbours=True)),
}


def _vectors(of: Corpus) -> np.ndarray:
    if of.kept.exists():
        kept: np.ndarray = np.load(of.kept)
        if len(kept) == len(of.turns):
            return kept
    found = embed(of.turns, of.embeddings)
    of.kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(of.kept, found)
    return found
