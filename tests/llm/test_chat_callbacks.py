"""Callbacks of a graph run receive its model calls, also the parallel ones."""

import asyncio
import json
import threading
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings

FOUND = {
    "entities": [{"name": "Ann", "type": "Person"}, {"name": "Oslo", "type": "Place"}],
    "missed": [], "unsupported": [], "resolutions": [], "facts": [], "verdicts": [], "predicates": [], "summaries": [],
}  # fmt: skip
CHUNK = 60
TEXT = "Ann lives in Oslo and likes it there. \n\n" * 8


class Same(BaseChatModel):
    """Returns the same answer to each prompt, and records the threads of the calls."""

    threads: set[int]

    @property
    def _llm_type(self) -> str:
        return "same"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.threads.add(threading.get_ident())
        return ChatResult(generations=[ChatGeneration(message=AIMessage(json.dumps(FOUND)))])


class Heard(BaseCallbackHandler):
    """Records the names of model calls and of their parent runs."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.calls: list[tuple[str, str]] = []

    def on_chain_start(self, _: Any, inputs: Any, *, run_id: UUID, name: str = "", **__: Any) -> None:
        self.names[run_id] = name

    def on_chat_model_start(
        self, _: Any, messages: Any, *, parent_run_id: UUID | None = None, name: str = "", **__: Any
    ) -> None:
        self.calls.append((self.names[parent_run_id] if parent_run_id else "", name))


@pytest.mark.parametrize("verb", ["invoke", "ainvoke"])
def test_callbacks_of_run_reach_parallel_model_calls(server, namespace, verb):
    heard, model = Heard(), Same(threads=set())
    settings = Settings(url=server.url, chunk_size=CHUNK, merge_threshold=0.98, ask_threshold=0.6, plan="thorough")
    with GraphMemory(settings, model=model, embeddings=HashEmbeddings()) as memory:
        arguments, config = {"content": TEXT, "kind": "text", "namespace": namespace}, {"callbacks": [heard]}
        if verb == "invoke":
            memory.graphs.ingestion.invoke(arguments, config)
        else:
            asyncio.run(memory.graphs.ingestion.ainvoke(arguments, config))
    assert len(model.threads) > 1
    assert heard.calls.count(("extract", "kg_memory.extract_text")) > 3
    assert {step for step, _ in heard.calls} >= {"extract", "reflect", "facts"}
