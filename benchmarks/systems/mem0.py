"""Mem0 (open source) with its own vector store on disk: one `add` for each message, as for kg-memory.

Mem0 2.2 does not accept the time of a message (``timestamp`` is for its platform only), so the time is put into the
text, with an instruction. Mem0 itself keeps the last ten messages of a conversation in view.
"""

from __future__ import annotations

import os
import threading

os.environ.setdefault("MEM0_TELEMETRY", "False")

from mem0 import Memory

from benchmarks.systems.shared import Journal, dated, fill, key, model_of, role
from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, Tools

LIMIT = 50
"""The most memories of a search; as many as fit are put into a context."""
_TIMES = (
    "Each message begins with the time at which it was said, in brackets. Take that time as the Observation Date, "
    "and write the dates that follow from it into the memories."
)


class Mem0:
    """Mem0 with the LangChain model and embeddings of the evaluation."""

    name = "mem0"

    def __init__(self, tools: Tools) -> None:
        folder = tools.folder
        store = {
            "path": str(folder / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": len(tools.embeddings.embed_query("size")),
        }
        self._journal = Journal(folder)
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "langchain", "config": {"model": model_of(tools, self.name)}},
                "embedder": {"provider": "langchain", "config": {"model": tools.embeddings}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._lock = threading.Lock()  # the vector store on disk allows one thread at a time

    def ingest(self, conversation: Conversation) -> None:
        for episode in self._journal.unread(conversation):
            self._memory.add(
                [{"role": role(episode), "content": dated(episode)}],
                user_id=key(conversation),
                prompt=_TIMES,
                metadata={"source": episode.source_id},
            )

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        with self._lock:
            found = self._memory.search(question.text, filters={"user_id": key(conversation)}, top_k=LIMIT)["results"]
        return fill(((f"- {memory['memory']}", [memory["metadata"]["source"]]) for memory in found), max_tokens)

    def close(self) -> None:
        self._memory.close()
