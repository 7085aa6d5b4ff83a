"""Systems that give the reader the best episodes as they were said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from kg_memory.contrib.evaluation.ranking import Scores, best
from kg_memory.contrib.evaluation.records import Conversation, Cost, Question, Retrieved
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.tokenise import estimate_tokens

DEPTH = 50
"""Sources that are reported for the retrieval figures."""


class TurnSearch:
    """Ranks episodes with *index*, which makes the scores of a conversation; keeps those of the latest."""

    def __init__(self, name: str, index: Callable[[Sequence[EpisodeInput]], Scores]) -> None:
        self.name = name
        self._index = index
        self._scores: dict[str, Scores] = {}
        self._lock = Lock()

    def ingest(self, conversation: Conversation) -> None:
        """Index the episodes."""
        with self._lock:
            if conversation.name not in self._scores:
                self._scores = {conversation.name: self._index(conversation.episodes)}

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the best episodes that fit, in the order in which they were said."""
        ranked = best(self._scores[conversation.name](question.text))
        sources = tuple(conversation.episodes[place].source_id or "" for place in ranked[:DEPTH])
        text = pack([conversation.episodes[place] for place in ranked], max_tokens)
        return Retrieved(text, sources, estimate_tokens(text))

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Cost, int]:
        """Return no cost: only embeddings are asked for."""
        del conversation
        return Cost(), max_tokens

    def forget(self, conversation: Conversation) -> None:
        """Drop the index."""
        self._scores.pop(conversation.name, None)

    def close(self) -> None:
        """Release nothing."""


def line(episode: EpisodeInput) -> str:
    """Return an episode as a line with its time and speaker."""
    time = f"[{episode.at:%Y-%m-%d %H:%M}] " if episode.at else ""
    return f"{time}{episode.speaker or 'user'}: {episode.content}"


def pack(ranked: Sequence[EpisodeInput], max_tokens: int) -> str:
    """Return the best of the *ranked* episodes that fit into *max_tokens* together, by time."""
    kept: list[EpisodeInput] = []
    size = 0
    for episode in ranked:
        tokens = estimate_tokens(line(episode))
        if size + tokens <= max_tokens:
            kept.append(episode)
            size += tokens
    kept.sort(key=lambda episode: episode.at.timestamp() if episode.at else 0.0)
    return "\n".join(map(line, kept))
