"""Graphiti on the same synthetic memories: stored in its form, with its indices, searched by its recipes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

import numpy as np
from graphiti_core import Graphiti
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.models.edges.edge_db_queries import get_entity_edge_save_bulk_query
from graphiti_core.models.nodes.node_db_queries import get_entity_node_save_bulk_query, get_episode_node_save_bulk_query
from graphiti_core.search.search_config import EdgeSearchMethod, NodeSearchMethod
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF

from benchmarks.search_scale_data import Data, Prepared, Row, identifier, moment
from benchmarks.search_scale_load import Texts, blocks_of
from benchmarks.systems.graphiti import NoRanker, connect

GROUP = "scale"
BATCH = 500
COMMUNITIES = """
UNWIND $rows AS row
CREATE (c:Community)
SET c = row, c.name_embedding = vecf32(row.name_embedding)
"""
MENTIONS = """
UNWIND $rows AS row
MATCH (a:Episodic {uuid: row.from})
MATCH (b:Entity {uuid: row.to})
CREATE (a)-[e:MENTIONS]->(b)
SET e = row.told
"""
MEMBERS = MENTIONS.replace("Episodic", "Community").replace("MENTIONS", "HAS_MEMBER")
FOUR_KINDS = COMBINED_HYBRID_SEARCH_RRF.model_copy(deep=True)
"""Graphiti's recipe for all four kinds, with breadth-first search added."""
if FOUR_KINDS.edge_config and FOUR_KINDS.node_config:
    FOUR_KINDS.edge_config.search_methods.append(EdgeSearchMethod.bfs)
    FOUR_KINDS.node_config.search_methods.append(NodeSearchMethod.bfs)


class Beside:
    """A Graphiti on the server at *socket*, with an event loop of its own."""

    def __init__(self, socket: str, embeddings: Prepared) -> None:
        self.runner = asyncio.Runner()
        self.graphiti = self.runner.run(_open(socket, embeddings))

    def load(self, data: Data, texts: Texts, say: Callable[[str], None]) -> float:
        """Write *data* and return the seconds it took."""
        began = time.perf_counter()
        self.runner.run(self._load(data, texts, say))
        return time.perf_counter() - began

    def facts(self, question: str, groups: Sequence[str] | None = (GROUP,)) -> int:
        """Run Graphiti's default search (edges, by words and meaning); return the number of results.

        *groups* limits it to one group, like a namespace of kg-memory; None searches all groups.
        """
        asked = None if groups is None else list(groups)
        return len(self.runner.run(self.graphiti.search(question, num_results=10, group_ids=asked)))

    def four_kinds(self, question: str) -> int:
        """Search edges, nodes, episodes and communities by words, meaning and graph; return the number of results."""
        found = self.runner.run(self.graphiti.search_(question, config=FOUR_KINDS, group_ids=[GROUP]))
        return len(found.edges) + len(found.nodes) + len(found.episodes) + len(found.communities)

    def close(self) -> None:
        """Close the connections and the event loop."""
        self.runner.run(self.graphiti.close())
        self.runner.close()

    async def _load(self, data: Data, texts: Texts, say: Callable[[str], None]) -> None:
        vectors, driver = blocks_of(data), self.graphiti.driver
        numbers = [np.concatenate([*vectors(3, data.clusters[: len(data.names)])]), data.vectors]
        say("Graphiti's entities and episodes")
        node = get_entity_node_save_bulk_query(GraphProvider.FALKORDB, [{"labels": ["Entity"]}])[0][0]
        for rows in _batches(_nodes(data, texts, numbers[0])):
            await driver.execute_query(node, nodes=rows)
        for rows in _batches(_episodes(data)):
            await driver.execute_query(get_episode_node_save_bulk_query(GraphProvider.FALKORDB), episodes=rows)
        for rows in _batches(_links(data)):
            await driver.execute_query(MENTIONS, rows=rows)
        say("Graphiti's facts")
        for rows in _batches(_edges(data)):
            await driver.execute_query(get_entity_edge_save_bulk_query(GraphProvider.FALKORDB), entity_edges=rows)
        named = np.concatenate([*vectors(4, data.clusters[: len(data.communities)])])
        for rows in _batches(_communities(data, named)):
            await driver.execute_query(COMMUNITIES, rows=rows)
        for rows in _batches(_members(data)):
            await driver.execute_query(MEMBERS, rows=rows)


class _Embedder(EmbedderClient):
    def __init__(self, embeddings: Prepared) -> None:
        self.embeddings = embeddings

    async def create(self, input_data: Any) -> list[float]:
        return self.embeddings.embed_query(input_data if isinstance(input_data, str) else input_data[0])


class _NoModel(LLMClient):
    def __init__(self) -> None:
        super().__init__(LLMConfig(api_key="none", model="none", small_model="none"))

    async def _generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise NotImplementedError


async def _open(socket: str, embeddings: Prepared) -> Graphiti:
    return Graphiti(
        graph_driver=await connect(socket, GROUP),
        llm_client=_NoModel(),
        embedder=_Embedder(embeddings),
        cross_encoder=NoRanker(),
    )


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    given = iter(rows)
    while batch := list(islice(given, BATCH)):
        yield batch


def _nodes(data: Data, texts: Texts, vectors: Any) -> Iterator[Row]:
    created_at = _iso(data.episodes[0]["at"])
    for place, name in enumerate(data.names):
        yield {
            "uuid": identifier(3, place), "name": name, "group_id": GROUP, "summary": texts.summaries[place],
            "created_at": created_at, "name_embedding": vectors[place].tolist(),
        }  # fmt: skip


def _episodes(data: Data) -> Iterator[Row]:
    told: list[list[str]] = [[] for _ in data.episodes]
    for fact in data.facts:
        for place in fact["episodes"]:
            told[place].append(fact["id"])
    for each, edges in zip(data.episodes, told, strict=True):
        yield {
            "uuid": each["id"], "name": each["thread"], "group_id": GROUP, "source_description": "chat",
            "source": "message", "content": f"{each['speaker']}: {each['content']}", "entity_edges": edges,
            "created_at": _iso(each["at"]), "valid_at": _iso(each["at"]),
        }  # fmt: skip


def _links(data: Data) -> Iterator[Row]:
    for each in data.episodes:
        for entity in each["entities"]:
            uuid = identifier(5, each["number"] * len(data.names) + entity)
            told = {"uuid": uuid, "group_id": GROUP, "created_at": _iso(each["at"])}
            yield {"from": each["id"], "to": identifier(3, entity), "told": told}


def _edges(data: Data) -> Iterator[Row]:
    for fact in data.facts:
        valid_at, invalid_at, _, _ = fact["periods"][-1]
        ended = moment(invalid_at) is not None
        yield {
            "uuid": fact["id"], "source_node_uuid": identifier(3, fact["subject"]), "fact": fact["sentence"],
            "target_node_uuid": identifier(3, fact["object"]), "name": fact["predicate"], "group_id": GROUP,
            "episodes": [data.episodes[place]["id"] for place in fact["episodes"]], "created_at": _iso(fact["at"]),
            "expired_at": _iso(invalid_at) if ended else None, "valid_at": _iso(valid_at),
            "invalid_at": _iso(invalid_at) if ended else None, "reference_time": _iso(fact["at"]),
            "fact_embedding": data.vectors[fact["number"]].tolist(),
        }  # fmt: skip


def _communities(data: Data, vectors: Any) -> Iterator[Row]:
    for place, each in enumerate(data.communities):
        yield {
            "uuid": each["id"], "name": each["name"], "group_id": GROUP, "summary": each["summary"],
            "created_at": _iso(data.episodes[0]["at"]), "name_embedding": vectors[place].tolist(),
        }  # fmt: skip


def _members(data: Data) -> Iterator[Row]:
    for each in data.communities:
        for entity in each["members"]:
            told = {"uuid": identifier(6, entity), "group_id": GROUP, "created_at": _iso(data.episodes[0]["at"])}
            yield {"from": each["id"], "to": identifier(3, entity), "told": told}


def _iso(at: int) -> str | None:
    known = moment(at)
    return known.isoformat() if known else None
