"""Graphiti in its default configuration, with a model and an embedding model over HTTP."""

from __future__ import annotations

import os
from datetime import UTC, datetime

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

from graphiti_core import Graphiti
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType

from benchmarks.systems.graphiti import NoRanker, connect
from kg_memory.models.graph import EpisodeInput


async def opened(socket: str, model: str, group: str) -> Graphiti:
    """Return a Graphiti for *group* on the database at *socket*, using the model server at the URL *model*."""
    config = LLMConfig(api_key="none", model="scripted", small_model="scripted", base_url=model)
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(api_key="none", embedding_model="local", base_url=model))
    return Graphiti(
        graph_driver=await connect(socket, group),
        llm_client=OpenAIGenericClient(config),
        embedder=embedder,
        cross_encoder=NoRanker(),
    )


async def add(graphiti: Graphiti, episode: EpisodeInput, group: str) -> None:
    """Ingest one message into *group*."""
    await graphiti.add_episode(
        name=episode.source_id or "", episode_body=f"{episode.speaker}: {episode.content}", source_description="chat",
        reference_time=(episode.at or datetime.now(UTC)).astimezone(UTC), source=EpisodeType.message, group_id=group,
    )  # fmt: skip


async def size(graphiti: Graphiti) -> str:
    """Return a text with the numbers of entities and facts in the graph."""
    counts = []
    for pattern in ("(n:Entity)", "()-[n:RELATES_TO]->()"):
        rows, _, _ = await graphiti.driver.execute_query(f"MATCH {pattern} RETURN count(n) AS n")
        counts.append(rows[0]["n"])
    return f"{counts[0]} entities, {counts[1]} facts"
