"""kg-memory by a plan: ``ours`` reads by ``standard``, or offline if no model is named; ``ours:economy`` and so on."""

from __future__ import annotations

import logging

from kg_memory.contrib.evaluation.records import Conversation, Cost, Question, Retrieved, System, Tools
from kg_memory.errors import InputError, ModelError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.operations import AddResult
from kg_memory.retrieval.question import TOKENS_A_LINE
from kg_memory.settings import OFFLINE, PLANS, Settings

DEPTH = 20
"""Episodes that are asked for at least, for the retrieval figures."""
MAX_UNREAD = 0.05
"""The share of messages that may stay unread, as when a model declines to answer."""

log = logging.getLogger("kg_memory.contrib.evaluation")


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
            limit=max(DEPTH, max_tokens // TOKENS_A_LINE),
            asker=question.asker,
        )
        sources = tuple(episode.source_id for episode in found.results.episodes if episode.source_id)
        return Retrieved(str(found), sources, found.tokens)

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Cost, int]:
        """Return the likely cost of what is not read yet."""
        estimate = self._memory.usage.estimate(conversation.episodes, namespace=self._namespace(conversation))
        amounts = (estimate.calls, estimate.input_tokens, estimate.output_tokens)
        return Cost(*(amount.likely for amount in amounts)), max_tokens

    def forget(self, conversation: Conversation) -> None:
        """Forget all of it, and keep no trace but the audit log."""
        self._memory.privacy.forget(everything=True, namespace=self._namespace(conversation))

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
