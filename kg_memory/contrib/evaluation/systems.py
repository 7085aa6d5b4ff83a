"""The systems that can be evaluated: kg-memory with a reading plan, and baselines without a memory.

The contexts of the baselines are the whole conversation, or the best messages by BM25, embedding vectors or both. The
indexed text of a message has its date in words, its speaker and its content.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from threading import Lock

import numpy as np

from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, System, Tools
from kg_memory.contrib.evaluation.results import COSTS
from kg_memory.errors import InputError, ModelError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult, Usage
from kg_memory.retrieval.question import TOKENS_A_LINE
from kg_memory.runtime.effects import Embeddings
from kg_memory.settings import OFFLINE, PLANS, Settings
from kg_memory.text.tokenise import estimate_tokens, terms
from kg_memory.validation import validate_choice

OWN_DEPTH = 20
"""The least number of episodes that a search asks for, so that retrieval figures can be computed."""
MAX_UNREAD = 0.05
"""The largest share of messages that may stay unread, for instance because a model refuses to answer."""

log = logging.getLogger("kg_memory.contrib.evaluation")
K1, B = 0.9, 0.4
AT_ONCE = 32
DEPTH = 50
"""The number of sources that a baseline reports for the retrieval figures."""

Scores = Callable[[str], Sequence[float]]
"""Function from a question to the score of each episode."""


class KGMemory:
    """kg-memory as a system to evaluate, with the database server in ``KG_MEMORY_URL`` or an embedded server."""

    def __init__(self, name: str, memory: GraphMemory) -> None:
        self.name = name
        self._memory = memory

    def ingest(self, conversation: Conversation) -> None:
        """Store the missing messages of *conversation*, and extract the facts of all unread messages.

        Errors: `ModelError` if more than the share `MAX_UNREAD` of the messages fail.
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
        """Return the memory's context for *question*, with the ids of the episodes that the search found."""
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
        """Estimate the cost of extracting facts from the unread episodes, and the tokens of one context."""
        estimate = self._memory.usage.estimate(conversation.episodes, namespace=self._namespace(conversation))
        return Usage(**{name: round(getattr(estimate, name).likely) for name in COSTS}), max_tokens

    def close(self) -> None:
        """Close the memory. The embedded server stops with its last client."""
        self._memory.close()

    def _namespace(self, conversation: Conversation) -> str:
        return f"evaluation/{self.name}/{conversation.name}"  # several systems can share a database


def open_ours(tools: Tools, plan: str | None = None) -> System:
    """Open kg-memory as a system to evaluate; *plan*, such as ``economy``, sets how it extracts facts.

    None means ``standard``, or ``offline`` without a model. Errors: `InputError`.
    """
    reads = plan or (OFFLINE if tools.model is None else "standard")
    validate_choice("the plan of the system ours", reads, PLANS)
    if reads != OFFLINE and tools.model is None:
        raise InputError(f"ours:{plan} needs a model: name one with --model, or use ours:offline")
    settings = Settings.from_env().with_(plan=None if reads == OFFLINE else reads)
    if settings.url is None:
        settings = settings.with_(data_dir=tools.folder / "database", idle_seconds=0)
    model = OFFLINE if reads == OFFLINE else tools.model
    memory = GraphMemory.open(settings=settings, model=model, embeddings=tools.embeddings)
    return KGMemory("ours" if plan is None else f"ours:{plan}", memory)


# Baselines


def dated_line(episode: EpisodeInput) -> str:
    """Return an episode (a message) as a line of text, such as ``[2024-05-14 09:30] Ann: I moved to Oslo``."""
    time = f"[{episode.at:%Y-%m-%d %H:%M}] " if episode.at else ""
    return f"{time}{episode.speaker or 'user'}: {episode.content}"


def pack_episodes(ranked: Sequence[EpisodeInput], max_tokens: int) -> str:
    """Return the best episodes (messages) that fit into *max_tokens* tokens, as lines of text, sorted by time.

    *ranked* are the episodes, best first.
    """
    kept: list[EpisodeInput] = []
    size = 0
    for episode in ranked:
        tokens = estimate_tokens(dated_line(episode))
        if size + tokens <= max_tokens:
            kept.append(episode)
            size += tokens
    kept.sort(key=lambda episode: episode.at.timestamp() if episode.at else 0.0)
    return "\n".join(map(dated_line, kept))


def bags_of_words(episodes: Sequence[EpisodeInput], *, dates: bool = True) -> list[Counter[str]]:
    """Count the words of each episode (message): ``[Counter({"oslo": 1})]``.

    With *dates*, the words of its date are counted, too.
    """
    return [Counter(terms(episode_text(episode, dates=dates))) for episode in episodes]


def bm25_scores(bags: Sequence[Mapping[str, int]]) -> Scores:
    """Return a function from a question to a score for each episode (message), computed with Okapi BM25.

    *bags* are the word counts of the episodes.
    """
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


def cosine_scores(vectors: np.ndarray, embeddings: Embeddings) -> Scores:
    """Return a function from a question to a score for each episode: the cosine similarity of embeddings."""
    return lambda question: (vectors @ np.array(embeddings.embed_query(question))).tolist()


def mean_scores(first: Scores, second: Scores) -> Scores:
    """Return a function that scores messages by the mean of two scoring functions."""

    def scores(question: str) -> list[float]:
        pairs = zip(_standardise(first(question)), _standardise(second(question)), strict=True)
        return [0.5 * one + 0.5 * other for one, other in pairs]

    return scores


def _standardise(scores: Sequence[float]) -> list[float]:
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / (deviation or 1.0) for score in scores]


def best(scores: Sequence[float]) -> list[int]:
    """Return the indexes of *scores*, best first: ``[0.1, 0.9]`` -> ``[1, 0]``; equal scores keep their order."""
    return sorted(range(len(scores)), key=lambda place: (-scores[place], place))


def episode_text(episode: EpisodeInput, *, dates: bool = True) -> str:
    """Return the text by which an episode (a message) is found: ``14 May 2024 Ann: I moved to Oslo``.

    Without *dates*, the date is left out.
    """
    day = f"{episode.at:%d %B %Y} " if episode.at and dates else ""
    return f"{day}{episode.speaker or ''}: {episode.content}"


def embed_episodes(episodes: Sequence[EpisodeInput], embeddings: Embeddings) -> np.ndarray:
    """Return the embedding vectors of *episodes* as rows of length 1."""
    texts = [episode_text(episode) for episode in episodes]
    batches = (texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE))
    vectors = np.array([row for batch in batches for row in embeddings.embed_documents(batch)], dtype=float)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


class Baseline:
    """A retrieval system without a memory, for comparison: its context has the best matching messages."""

    def __init__(self, name: str, index: Callable[[Sequence[EpisodeInput]], Scores] | None) -> None:
        self.name = name
        self._index = index
        self._scores: dict[str, Scores] = {}
        self._lock = Lock()

    def ingest(self, conversation: Conversation) -> None:
        """Index the episodes of *conversation*, unless they are already indexed."""
        with self._lock:
            if self._index is not None and conversation.name not in self._scores:
                self._scores = {conversation.name: self._index(conversation.episodes)}

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the episodes with the highest scores that fit into *max_tokens*, sorted by time.

        The baseline "full" has no scores, and returns all episodes, whatever *max_tokens* is.
        """
        episodes, sources = conversation.episodes, tuple[str, ...]()
        if self._index is None:
            text = "\n".join(map(dated_line, episodes))
        else:
            ranked = best(self._scores[conversation.name](question.text))
            sources = tuple(episodes[place].source_id or "" for place in ranked[:DEPTH])
            text = pack_episodes([episodes[place] for place in ranked], max_tokens)
        return Retrieved(text, sources, estimate_tokens(text))

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Usage, int]:
        """Return a cost of zero, because no chat model is called, and the expected number of tokens in a context."""
        if self._index is None:
            max_tokens = sum(estimate_tokens(dated_line(episode)) for episode in conversation.episodes)
        return Usage(), max_tokens

    def close(self) -> None:
        """Do nothing: a baseline holds no resources."""


def open_baseline(tools: Tools, name: str) -> System:
    """Open the baseline *name*: ``bm25`` (words), ``dense`` (embeddings), ``hybrid`` (both) or ``full`` (all text)."""
    model = tools.embeddings

    def words(episodes: Sequence[EpisodeInput]) -> Scores:
        return bm25_scores(bags_of_words(episodes))

    def vectors(episodes: Sequence[EpisodeInput]) -> Scores:
        return cosine_scores(embed_episodes(episodes, model), model)

    def both_halves(episodes: Sequence[EpisodeInput]) -> Scores:
        return mean_scores(words(episodes), vectors(episodes))

    return Baseline(name, {"bm25": words, "dense": vectors, "hybrid": both_halves, "full": None}[name])
