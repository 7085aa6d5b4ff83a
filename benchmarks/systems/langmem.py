"""LangMem with LangGraph's in-memory store: one call for up to ten messages of a session.

LangMem does not say from which message a memory comes, so contexts have no sources and recall is not measured. A
resumed run reads its conversation again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager

from benchmarks.systems.shared import dated, fill, key, model_of, role
from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, Tools
from kg_memory.models.graph import EpisodeInput

LIMIT = 50
"""The most memories of a search; as many as fit are put into a context."""
MESSAGES = 10
"""The most messages of one call."""


class LangMem:
    """LangMem with the LangChain model, which must support tools, and the embeddings of the evaluation."""

    name = "langmem"

    def __init__(self, tools: Tools) -> None:
        dims = len(tools.embeddings.embed_query("size"))
        self._store = InMemoryStore(index={"dims": dims, "embed": tools.embeddings})
        self._manager = create_memory_store_manager(
            model_of(tools, self.name), namespace=("{conversation}",), store=self._store
        )
        self._read: set[str] = set()

    def ingest(self, conversation: Conversation) -> None:
        if conversation.name in self._read:
            return
        config: Any = {"configurable": {"conversation": key(conversation)}}
        for several in _batches(conversation.episodes):
            said = [{"role": role(message), "content": dated(message)} for message in several]
            self._manager.invoke({"messages": said}, config=config)
        self._read.add(conversation.name)

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        found = self._store.search((key(conversation),), query=question.text, limit=LIMIT)
        return fill(((f"- {_text(memory.value)}", ()) for memory in found), max_tokens)

    def close(self) -> None:
        """Do nothing, since there is nothing to close."""


def _batches(episodes: list[EpisodeInput]) -> Iterator[list[EpisodeInput]]:
    for _, group in groupby(episodes, key=lambda episode: episode.thread):
        session = list(group)
        for start in range(0, len(session), MESSAGES):
            yield session[start : start + MESSAGES]


def _text(value: dict[str, Any]) -> str:
    """Return the text of a memory: its content, or the whole value if it has another form."""
    content = value.get("content", value)
    return str(content.get("content", content)) if isinstance(content, dict) else str(content)
