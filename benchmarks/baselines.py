"""How the turns of a conversation are found without a memory: BM25, the bundled embedder's vectors, and both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kg_memory.contrib.evaluation import ranking
from kg_memory.contrib.evaluation.ranking import Scores, both, words
from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.models.graph import EpisodeInput


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
    return ranking.meaning(of.turns, _vectors(of), of.embeddings, neighbours=neighbours)


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
    found = ranking.embed(of.turns, of.embeddings)
    of.kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(of.kept, found)
    return found
