"""LangMem with LangGraph's store in memory: a call for up to ten messages of a session, as it keeps none in view.

It does not say which message a memory comes from, so a context has no sources, and no recall is measured. A run that is
resumed reads its conversation again.
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
"""Memories that are searched for; as many as fit are in a context."""
MESSAGES = 10
"""Messages of a call, at most."""


class LangMem:
    """LangMem with the model, which must call tools, and the embeddings of LangChain that all systems have."""

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
        """Nothing is held."""


def _batches(episodes: list[EpisodeInput]) -> Iterator[list[EpisodeInput]]:
    for _, group in groupby(episodes, key=lambda episode: episode.thread):
        session = list(group)
        for start in range(0, len(session), MESSAGES):
            yield session[start : start + MESSAGES]


def _text(value: dict[str, Any]) -> str:
    """Return what a memory says: its content, or all of it where it is of another form."""
    content = value.get("content", value)
    return str(content.get("content", content)) if isinstance(content, dict) else str(content)
