"""Graphiti (Zep) on an embedded FalkorDB: one episode for each message, as for kg-memory.

A context consists of the facts that its hybrid search finds, with their times, and then the summaries of entities. The
recipe is Graphiti's own, by reciprocal rank fusion, without a cross-encoder.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

import openai
from falkordb.asyncio import FalkorDB
from graphiti_core import Graphiti as Library
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError
from graphiti_core.nodes import EpisodeType, EpisodicNode
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from benchmarks.systems.shared import Journal, fill, key, model_of, spoken
from kg_memory.contrib.embedded import binaries, join
from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, Tools

LIMIT = 20
"""The most facts, and the most entities, of a context, as in the Zep paper."""
T = TypeVar("T")


class Graphiti:
    """Graphiti with the LangChain model and embeddings of the evaluation; each conversation has its own graph."""

    name = "graphiti"

    def __init__(self, tools: Tools) -> None:
        self._chat, self._embedder = _Chat(model_of(tools, self.name)), _Embedder(tools.embeddings)
        self._journal = Journal(tools.folder)
        self._open: dict[str, Library] = {}
        # Graphiti's connections belong to one event loop, but several threads call this system.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = join(tools.folder / "database", binaries.download_missing(), idle_seconds=0)

    def ingest(self, conversation: Conversation) -> None:
        graphiti = self._run(self._graphiti(conversation))
        for episode in self._journal.unread(conversation):
            added = graphiti.add_episode(
                name=str(episode.source_id),
                episode_body=spoken(episode),
                source_description="chat",
                reference_time=episode.at or datetime.now(UTC),
                source=EpisodeType.message,
                group_id=key(conversation),
            )
            self._run(added)

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        return self._run(self._context(question, conversation, max_tokens))

    async def _context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        graphiti = await self._graphiti(conversation)
        recipe = COMBINED_HYBRID_SEARCH_RRF.model_copy(update={"limit": LIMIT})
        found = await graphiti.search_(question.text, config=recipe, group_ids=[key(conversation)])
        ids = {episode for edge in found.edges for episode in edge.episodes}
        sources = {node.uuid: node.name for node in await EpisodicNode.get_by_uuids(graphiti.driver, list(ids))}
        lines: list[tuple[str, list[str]]] = []
        for edge in found.edges:
            told = [sources[episode] for episode in edge.episodes if episode in sources]
            lines.append((f"- {edge.fact} ({_day(edge.valid_at)} to {_day(edge.invalid_at)})", told))
        lines += [(f"- {node.name}: {node.summary}", []) for node in found.nodes if node.summary]
        return fill(lines, max_tokens)

    def close(self) -> None:
        for graphiti in self._open.values():
            self._run(graphiti.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._server.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _graphiti(self, conversation: Conversation) -> Library:
        """Return a Graphiti on the graph of a conversation, with its indices built."""
        group = key(conversation)
        if group not in self._open:
            driver = await connect(self._server.socket, group)
            self._open[group] = Library(
                graph_driver=driver, llm_client=self._chat, embedder=self._embedder, cross_encoder=NoRanker()
            )
        return self._open[group]


class _Chat(LLMClient):
    """A LangChain chat model behind Graphiti's interface."""

    def __init__(self, chat: BaseChatModel) -> None:
        super().__init__(None)
        self._chat = chat

    async def _generate_response(
        self, messages: list[Any], response_model: type[BaseModel] | None = None, *_: Any, **__: Any
    ) -> dict[str, Any]:
        asked = [(message.role, message.content) for message in messages]
        try:
            if response_model is None:
                return dict(json.loads((await self._chat.ainvoke(asked)).text))
            answer = await self._chat.with_structured_output(response_model).ainvoke(asked)
        except openai.RateLimitError as error:
            raise RateLimitError from error  # Graphiti waits and retries
        except ValueError as error:
            raise EmptyResponseError(f"the answer is not of the form that was asked for: {error}") from error
        if not isinstance(answer, BaseModel):
            raise EmptyResponseError("the model gave no answer")
        return answer.model_dump()


class _Embedder(EmbedderClient):
    """LangChain embeddings behind Graphiti's interface."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings

    async def create(self, input_data: Any) -> list[float]:
        text = input_data if isinstance(input_data, str) else " ".join(map(str, input_data))
        return await self._embeddings.aembed_query(text)

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        return await self._embeddings.aembed_documents(input_data_list)


class NoRanker(CrossEncoderClient):
    """A cross-encoder that is never called; without one, Graphiti would open OpenAI's."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise NotImplementedError


async def connect(socket: str, group: str) -> FalkorDriver:
    """Return a driver for *group* on the database at *socket*, with its indices built.

    From then on Graphiti logs only errors.
    """
    logging.getLogger("graphiti_core").setLevel(logging.ERROR)
    driver = FalkorDriver(falkor_db=FalkorDB(unix_socket_path=socket), database=group)
    if driver._init_task:  # noqa: SLF001 - the only way to wait for its indices, which are built in the background
        await driver._init_task  # noqa: SLF001
    return driver


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d}" if at else "unknown"
