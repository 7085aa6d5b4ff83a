"""How the turns of a conversation are found without a memory: BM25, the bundled embedder's vectors, and both.

The text of a turn is its day in words, its speaker, and what is said. Words are those of `kg_memory.text.tokenise`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
from conversations import Conversation

from kg_memory.models.graph import EpisodeInput
from kg_memory.offline.embeddings import LocalEmbeddings
from kg_memory.text.tokenise import terms

K1, B = 0.9, 0.4
WORDS_OF_NEIGHBOURS: Mapping[int, int] = {0: 4, 1: 2, 2: 1}
"""How often a turn's words count for one that is so many turns away in the same session."""
VECTORS_OF_NEIGHBOURS: Mapping[int, float] = {0: 1.0, 1: 0.5}
AT_ONCE = 32

Scores = Callable[[str], Sequence[float]]
"""Gives the score of each turn for a question."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The turns to be found, and the file in which their vectors are kept."""

    turns: Sequence[EpisodeInput]
    embeddings: LocalEmbeddings
    kept: Path


def corpus(conversation: Conversation, embeddings: LocalEmbeddings, folder: Path) -> Corpus:
    """Return the turns of a conversation; their vectors are kept in *folder*."""
    return Corpus(conversation.episodes, embeddings, folder / f"{conversation.name}.npy")


def words(turns: Sequence[EpisodeInput], *, neighbours: bool = False, dates: bool = True) -> Scores:
    """Return BM25 over single turns, or over turns that carry their neighbours' words."""
    bags = [Counter(terms(said(each, dates=dates))) for each in turns]
    if not neighbours:
        return bm25(bags)
    joined = []
    for place in range(len(bags)):
        bag: Counter[str] = Counter()
        for other, weight in beside(turns, place, WORDS_OF_NEIGHBOURS):
            bag.update({word: int(weight) * times for word, times in bags[other].items()})
        joined.append(bag)
    return bm25(joined)


def meaning(of: Corpus, *, neighbours: bool = False) -> Scores:
    """Return the cosine similarity of single turns, or of turns smoothed with those beside them."""
    vectors = _vectors(of)
    if neighbours:
        near = [beside(of.turns, place, VECTORS_OF_NEIGHBOURS) for place in range(len(vectors))]
        vectors = np.array([sum(weight * vectors[other] for other, weight in each) for each in near])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return lambda question: (vectors @ np.array(of.embeddings.embed_query(question))).tolist()


def both(first: Scores, second: Scores) -> Scores:
    """Return half of each, standardised over the turns."""

    def scores(question: str) -> list[float]:
        pairs = zip(standardised(first(question)), standardised(second(question)), strict=True)
        return [0.5 * one + 0.5 * other for one, other in pairs]

    return scores


BASELINES: Mapping[str, Callable[[Corpus], Scores]] = {
    "BM25 without dates": lambda of: words(of.turns, dates=False),
    "BM25": lambda of: words(of.turns),
    "BM25 with neighbours": lambda of: words(of.turns, neighbours=True),
    "dense": meaning,
    "dense with neighbours": lambda of: meaning(of, neighbours=True),
    "hybrid": lambda of: both(words(of.turns), meaning(of)),
    "hybrid with neighbours": lambda of: both(words(of.turns, neighbours=True), meaning(of, neighbours=True)),
}


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
    average = fmean(lengths) or 1.0
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


def said(turn: EpisodeInput, *, dates: bool = True) -> str:
    """Return the text of a turn by which it is found."""
    day = f"{turn.at:%d %B %Y} " if turn.at and dates else ""
    return f"{day}{turn.speaker or ''}: {turn.content}"


def beside(turns: Sequence[EpisodeInput], place: int, weights: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return the places near *place* in the same session, itself among them, with their weights."""
    widest = max(weights)
    near = range(max(place - widest, 0), min(place + widest + 1, len(turns)))
    return [(other, weights[abs(other - place)]) for other in near if turns[other].thread == turns[place].thread]


def standardised(scores: Sequence[float]) -> list[float]:
    """Return the scores with a mean of 0 and a standard deviation of 1."""
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / (deviation or 1.0) for score in scores]


def _vectors(of: Corpus) -> np.ndarray:
    if of.kept.exists():
        kept: np.ndarray = np.load(of.kept)
        if len(kept) == len(of.turns):
            return kept
    texts = [said(each) for each in of.turns]
    found = np.array(list(_embedded(texts, of.embeddings)))
    of.kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(of.kept, found)
    return found


def _embedded(texts: list[str], embeddings: LocalEmbeddings) -> Iterator[list[float]]:
    for start in range(0, len(texts), AT_ONCE):
        yield from embeddings.embed_documents(texts[start : start + AT_ONCE])
