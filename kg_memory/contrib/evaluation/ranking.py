"""Rank the episodes of a conversation without a memory: by BM25, by vectors, and by both.

The text of an episode is its day in words, its speaker, and what is said. Words are those of `kg_memory.text.tokenise`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, pstdev

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_memory.models.graph import EpisodeInput
from kg_memory.text.tokenise import terms

K1, B = 0.9, 0.4
WORDS_OF_NEIGHBOURS: Mapping[int, int] = {0: 4, 1: 2, 2: 1}
"""The weight of an episode's words for one that is so many episodes away in the same thread."""
VECTORS_OF_NEIGHBOURS: Mapping[int, float] = {0: 1.0, 1: 0.5}
AT_ONCE = 32

Scores = Callable[[str], Sequence[float]]
"""Gives the score of each episode for a question."""


def words(episodes: Sequence[EpisodeInput], *, neighbours: bool = False, dates: bool = True) -> Scores:
    """Return BM25 over single episodes, or over episodes that carry their neighbours' words."""
    bags = [Counter(terms(episode_text(episode, dates=dates))) for episode in episodes]
    if not neighbours:
        return bm25(bags)
    joined = []
    for place in range(len(bags)):
        bag: Counter[str] = Counter()
        for other, weight in _neighbours(episodes, place, WORDS_OF_NEIGHBOURS):
            bag.update({word: int(weight) * times for word, times in bags[other].items()})
        joined.append(bag)
    return bm25(joined)


def meaning(
    episodes: Sequence[EpisodeInput], vectors: np.ndarray, embeddings: Embeddings, *, neighbours: bool = False
) -> Scores:
    """Return the cosine similarity of single episodes, or of episodes smoothed with those beside them."""
    if neighbours:
        near = [_neighbours(episodes, place, VECTORS_OF_NEIGHBOURS) for place in range(len(vectors))]
        vectors = np.array([_weighted(vectors, row) for row in near])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def scores(question: str) -> list[float]:
        found: list[float] = (vectors @ np.array(embeddings.embed_query(question))).tolist()
        return found

    return scores


def both(first: Scores, second: Scores) -> Scores:
    """Return half of each, standardised over the episodes."""

    def scores(question: str) -> list[float]:
        pairs = zip(_standardise(first(question)), _standardise(second(question)), strict=True)
        return [0.5 * one + 0.5 * other for one, other in pairs]

    return scores


def best(scores: Sequence[float], most: int | None = None) -> list[int]:
    """Return the places of the best scores, best first; of equal ones the earlier."""
    return sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:most]


def bm25(bags: Sequence[Mapping[str, int]]) -> Scores:
    """Return Okapi BM25 over bags of words."""
    postings: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for place, bag in enumerate(bags):
        for word, times in bag.items():
            postings[word][place] = times
    lengths = [sum(bag.values()) for bag in bags]
    average = (fmean(lengths) if lengths else 0) or 1.0
    norms = [K1 * (1 - B + B * length / average) for length in lengths]

    def scores(question: str) -> list[float]:
        found = [0.0] * len(bags)
        for word in dict.fromkeys(terms(question)):
            having = postings.get(word, {})
            rarity = math.log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
            for place, times in having.items():
                found[place] += rarity * times * (K1 + 1) / (times + norms[place])
        return found

    return scores


def episode_text(episode: EpisodeInput, *, dates: bool = True) -> str:
    """Return the text of an episode by which it is found."""
    day = f"{episode.at:%d %B %Y} " if episode.at and dates else ""
    return f"{day}{episode.speaker or ''}: {episode.content}"


def embed(episodes: Sequence[EpisodeInput], embeddings: Embeddings) -> np.ndarray:
    """Return the vectors of the episodes, of length 1, a row each."""
    texts = [episode_text(episode) for episode in episodes]
    vectors = np.array(list(_embed_in_parts(texts, embeddings)), dtype=float)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def _embed_in_parts(texts: list[str], embeddings: Embeddings) -> Iterator[list[float]]:
    for start in range(0, len(texts), AT_ONCE):
        yield from embeddings.embed_documents(texts[start : start + AT_ONCE])


def _neighbours(episodes: Sequence[EpisodeInput], place: int, weights: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return the places near *place* in the same thread, itself among them, with their weights."""
    widest = max(weights)
    near = range(max(place - widest, 0), min(place + widest + 1, len(episodes)))
    thread = episodes[place].thread
    return [(other, weights[abs(other - place)]) for other in near if episodes[other].thread == thread]


def _weighted(vectors: np.ndarray, weights: Sequence[tuple[int, float]]) -> np.ndarray:
    total = np.zeros(vectors.shape[1])
    for place, weight in weights:
        total += weight * vectors[place]
    return total


def _standardise(scores: Sequence[float]) -> list[float]:
    """Return the scores with a mean of 0 and a standard deviation of 1."""
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / (deviation or 1.0) for score in scores]
