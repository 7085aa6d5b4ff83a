"""Graphiti as it is by itself, with a model and an embedding model over HTTP."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

from falkordb.asyncio import FalkorDB
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType

from kg_memory.model import EpisodeInput

GROUP = "cost"


class _NoRanker(CrossEncoderClient):
    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise NotImplementedError


async def opened(socket: str, model: str) -> Graphiti:
    """Return a Graphiti on the database at *socket* that asks the server at *model*."""
    logging.getLogger("graphiti_core").setLevel(logging.ERROR)
    driver = FalkorDriver(falkor_db=FalkorDB(unix_socket_path=socket), database=GROUP)
    if driver._init_task:  # noqa: SLF001 - it builds its indices in the background, and has no other way to wait for them
        await driver._init_task  # noqa: SLF001
    config = LLMConfig(api_key="none", model="scripted", small_model="scripted", base_url=model)
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(api_key="none", embedding_model="local", base_url=model))
    return Graphiti(
        graph_driver=driver, llm_client=OpenAIGenericClient(config), embedder=embedder, cross_encoder=_NoRanker()
    )


async def add(graphiti: Graphiti, episode: EpisodeInput) -> None:
    """Read one message."""
    await graphiti.add_episode(
        name=episode.source_id or "", episode_body=f"{episode.speaker}: {episode.content}", source_description="chat",
        reference_time=(episode.at or datetime.now(UTC)).astimezone(UTC), source=EpisodeType.message, group_id=GROUP,
    )  # fmt: skip


async def size(graphiti: Graphiti) -> str:
    """Return how much it has found."""
    counts = []
    for pattern in ("(n:Entity)", "()-[n:RELATES_TO]->()"):
        rows, _, _ = await graphiti.driver.execute_query(f"MATCH {pattern} RETURN count(n) AS n")
        counts.append(rows[0]["n"])
    return f"{counts[0]} entities, {counts[1]} facts"
