"""BM25 and cosine similarity, half each; an embedding model only."""

from __future__ import annotations

from collections.abc import Sequence

from kg_memory.contrib.evaluation import ranking
from kg_memory.contrib.evaluation.ranking import Scores
from kg_memory.contrib.evaluation.records import System, Tools
from kg_memory.contrib.evaluation.systems._turns import TurnSearch
from kg_memory.models.graph import EpisodeInput


def open_system(tools: Tools, variant: str | None = None) -> System:
    """Return the search; it takes no variant."""
    del variant
    model = tools.embeddings

    def index(episodes: Sequence[EpisodeInput]) -> Scores:
        vectors = ranking.embed(episodes, model)
        return ranking.both(ranking.words(episodes), ranking.meaning(episodes, vectors, model))

    return TurnSearch("hybrid", index)
