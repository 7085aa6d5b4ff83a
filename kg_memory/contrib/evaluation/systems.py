"""The systems of ``--system``: kg-memory by a plan, and baselines without a memory.

The baselines are the best messages by BM25, by vectors or by both, and the whole conversation. The text by which a
message is found is its day in words, its speaker, and its content. Words are those of `kg_memory.text.tokenise`.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from threading import Lock

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, System, Tools
from kg_memory.contrib.evaluation.results import COSTS
from kg_memory.errors import InputError, ModelError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult, Usage
from kg_memory.retrieval.question import TOKENS_A_LINE
from kg_memory.settings import OFFLINE, PLANS, Settings
from kg_memory.text.tokenise import estimate_tokens, terms

OWN_DEPTH = 20
"""Episodes that are asked for at least, for the retrieval figures."""
MAX_UNREAD = 0.05
"""The share of messages that may stay unread, as when a model declines to answer."""

log = logging.getLogger("kg_memory.contrib.evaluation")
K1, B = 0.9, 0.4
AT_ONCE = 32
DEPTH = 50
"""Sources that are reported for the retrieval figures."""

Scores = Callable[[str], Sequence[float]]
"""Gives the score of each episode for a question."""


class KGMemory:
    """A memory on an embedded database in the system's folder, or on the server that KG_MEMORY_URL names."""

    def __init__(self, name: str, memory: GraphMemory) -> None:
        self.name = name
        self._memory = memory

    def ingest(self, conversation: Conversation) -> None:
        """Add what is not there yet, and try again what could not be read before.

        Raises: `ModelError` if more than `MAX_UNREAD` of the episodes could not be read. They are saved and found by
        their words.
        """
        memory, namespace = self._memory, self._namespace(conversation)
        stats = memory.stats(namespace=namespace)
        added: list[AddResult] = []
        if stats.failed:
            added += memory.episodes.retry(namespace=namespace)
        if stats.episodes < len(conversation.episodes) or stats.waiting:
            added += memory.add_many(conversation.episodes, namespace=namespace)
            added += memory.episodes.resume(namespace=namespace)
        errors = [result.error for result in added if result.error]
        if errors:
            told = f"{len(errors)} messages of {conversation.name} are saved but could not be read: {errors[0]}"
            if len(errors) > MAX_UNREAD * len(conversation.episodes):
                raise ModelError(told)
            log.warning(told)

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the memory's context, and the episodes of its search."""
        found = self._memory.context(
            question.text,
            namespace=self._namespace(conversation),
            max_tokens=max_tokens,
            limit=max(OWN_DEPTH, max_tokens // TOKENS_A_LINE),
            asker=question.asker,
        )
        sources = tuple(episode.source_id for episode in found.results.episodes if episode.source_id)
        return Retrieved(str(found), sources, found.tokens)

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Usage, int]:
        """Return the likely cost of what is not read yet."""
        estimate = self._memory.usage.estimate(conversation.episodes, namespace=self._namespace(conversation))
        amounts = {name: round(getattr(estimate, name).likely) for name in COSTS}
        return Usage(**amounts), max_tokens

    def close(self) -> None:
        """Close the memory; the embedded server ends with its last client."""
        self._memory.close()

    def _namespace(self, conversation: Conversation) -> str:
        """Return the conversation's namespace; plans do not share one, as they may share a server."""
        return f"evaluation/{self.name}/{conversation.name}"


def open_ours(tools: Tools, plan: str | None = None) -> System:
    """Open the memory, which reads by *plan*: by default ``standard``, or offline without a model.

    Raises: `InputError` for an unknown plan, or one that needs a model if there is none.
    """
    if plan is not None and plan not in PLANS:
        raise InputError(f"unknown plan {plan!r} of the system ours: use one of {', '.join(PLANS)}")
    if plan not in (None, OFFLINE) and tools.model is None:
        raise InputError(f"ours:{plan} needs a model: name one with --model, or use ours:offline")
    reads = plan or (OFFLINE if tools.model is None else "standard")
    settings = Settings.from_env().with_(plan=None if reads == OFFLINE else reads)
    if settings.url is None:
        settings = settings.with_(data_dir=tools.folder / "database", idle_seconds=0)
    model = OFFLINE if reads == OFFLINE else tools.model
    memory = GraphMemory.open(settings=settings, model=model, embeddings=tools.embeddings)
    return KGMemory("ours" if plan is None else f"ours:{plan}", memory)


# Baselines


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


def bags_of_words(episodes: Sequence[EpisodeInput], *, dates: bool = True) -> list[Counter[str]]:
    """Return how often each word stands in each episode."""
    return [Counter(terms(episode_text(episode, dates=dates))) for episode in episodes]


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


def cosine(vectors: np.ndarray, embeddings: Embeddings) -> Scores:
    """Return the cosine similarity of the rows of *vectors*, which have length 1."""

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


def _standardise(scores: Sequence[float]) -> list[float]:
    """Return the scores with a mean of 0 and a standard deviation of 1."""
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / (deviation or 1.0) for score in scores]


def best(scores: Sequence[float]) -> list[int]:
    """Return the places of the scores, best first; of equal ones the earlier."""
    return sorted(range(len(scores)), key=lambda place: (-scores[place], place))


def episode_text(episode: EpisodeInput, *, dates: bool = True) -> str:
    """Return the text of an episode by which it is found."""
    day = f"{episode.at:%d %B %Y} " if episode.at and dates else ""
    return f"{day}{episode.speaker or ''}: {episode.content}"


def embed(episodes: Sequence[EpisodeInput], embeddings: Embeddings) -> np.ndarray:
    """Return the vectors of the episodes, of length 1, a row each."""
    texts = [episode_text(episode) for episode in episodes]
    rows = []
    for start in range(0, len(texts), AT_ONCE):
        rows += embeddings.embed_documents(texts[start : start + AT_ONCE])
    vectors = np.array(rows, dtype=float)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


class Baseline:
    """Ranks episodes with *index*, which makes the scores of a conversation; without one, gives the whole conversation.

    Keeps the scores of the latest conversation.
    """

    def __init__(self, name: str, index: Callable[[Sequence[EpisodeInput]], Scores] | None) -> None:
        self.name = name
        self._index = index
        self._scores: dict[str, Scores] = {}
        self._lock = Lock()

    def ingest(self, conversation: Conversation) -> None:
        """Index the episodes."""
        with self._lock:
            if self._index is not None and conversation.name not in self._scores:
                self._scores = {conversation.name: self._index(conversation.episodes)}

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the best episodes that fit, in the order in which they were said; or all, whatever their length."""
        episodes, sources = conversation.episodes, tuple[str, ...]()
        if self._index is None:
            text = "\n".join(map(line, episodes))
        else:
            ranked = best(self._scores[conversation.name](question.text))
            sources = tuple(episodes[place].source_id or "" for place in ranked[:DEPTH])
            text = pack([episodes[place] for place in ranked], max_tokens)
        return Retrieved(text, sources, estimate_tokens(text))

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Usage, int]:
        """Return no cost, as only the embedding model is called, and the tokens of a context."""
        if self._index is None:
            max_tokens = sum(estimate_tokens(line(episode)) for episode in conversation.episodes)
        return Usage(), max_tokens

    def close(self) -> None:
        """Release nothing."""


def open_baseline(tools: Tools, name: str) -> System:
    """Open the baseline *name*: ``bm25``, ``dense``, ``hybrid`` or ``full``."""
    model = tools.embeddings

    def words(episodes: Sequence[EpisodeInput]) -> Scores:
        return bm25(bags_of_words(episodes))

    def vectors(episodes: Sequence[EpisodeInput]) -> Scores:
        return cosine(embed(episodes, model), model)

    def both_halves(episodes: Sequence[EpisodeInput]) -> Scores:
        return both(words(episodes), vectors(episodes))

    return Baseline(name, {"bm25": words, "dense": vectors, "hybrid": both_halves, "full": None}[name])
