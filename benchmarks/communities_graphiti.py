"""Graphiti's communities on the same graph of 1,000 entities, with its calls of the model counted.

    python -m benchmarks.communities_graphiti SOCKET FACTS INSIDE

The model answers at once with a fixed text. The figures are printed as one line of JSON after each step.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

from graphiti_core import Graphiti
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.nodes import EntityNode
from graphiti_core.utils.maintenance.community_operations import update_community

from benchmarks.communities_data import name, planted, strangers
from benchmarks.systems.graphiti import NoRanker, connect

GROUP = "graphiti_communities"
SIZE = 20
ENTITIES = """
UNWIND $rows AS row
CREATE (n:Entity)
SET n = row, n.name_embedding = vecf32([1.0, 0.0])
"""
FACTS = """
UNWIND $rows AS row
MATCH (a:Entity {uuid: row.one})
MATCH (b:Entity {uuid: row.other})
CREATE (a)-[:RELATES_TO {uuid: row.uuid, group_id: row.group_id, name: 'KNOWS', fact: row.fact}]->(b)
"""


class Counting(LLMClient):
    """A model that gives the same answer to every prompt, and counts the prompts."""

    def __init__(self) -> None:
        super().__init__(LLMConfig(api_key="none", model="none", small_model="none"))
        self.asked = 0

    async def _generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked += 1
        return {"summary": "They know each other.", "description": "Friends"}


class Same(EmbedderClient):
    """An embedder that returns one and the same vector for every text."""

    async def create(self, input_data: Any) -> list[float]:  # noqa: ARG002 - Graphiti's interface
        return [1.0, 0.0]


async def main(socket: str, facts: int, inside: float) -> None:
    """Build all communities, rebuild them, rebuild them after one more fact, and then add one entity."""
    model = Counting()
    group = f"{GROUP}_{facts}"
    graphiti = Graphiti(
        graph_driver=await connect(socket, group), llm_client=model, embedder=Same(), cross_encoder=NoRanker()
    )
    data = planted(1_000, facts, SIZE, inside)
    one, other = strangers(data)
    told = {"summary": "One of many.", "group_id": group, "created_at": "2024-01-01T00:00:00Z"}
    people = [{"uuid": name(each), "name": name(each), **told} for each in range(1_000)]
    await graphiti.driver.execute_query(ENTITIES, rows=people)
    await graphiti.driver.execute_query(FACTS, rows=[_fact(*each, group) for each in data.facts])
    figures: dict[str, Any] = {}
    for step in ("first", "unchanged", "one more fact"):
        if step == "one more fact":
            await graphiti.driver.execute_query(FACTS, rows=[_fact(one, other, group)])
        model.asked = 0
        communities, _ = await graphiti.build_communities([group])
        figures |= {"communities": len(communities), step: model.asked}
        print(json.dumps(figures), flush=True)
    await graphiti.driver.execute_query(ENTITIES, rows=[{"uuid": "new", "name": "Newcomer", **told}])
    await graphiti.driver.execute_query(FACTS, rows=[{**_fact(other, one, group), "one": "new"}])
    model.asked = 0
    entity = await EntityNode.get_by_uuid(graphiti.driver, "new")
    await update_community(graphiti.driver, model, graphiti.embedder, entity)
    print(json.dumps({**figures, "one more entity": model.asked}), flush=True)
    await graphiti.close()


def _fact(one: int, other: int, group: str) -> dict[str, str]:
    ends = {"one": name(one), "other": name(other)}
    fact = f"{name(one)} knows {name(other)}"
    return {**ends, "uuid": f"{one} {other}", "group_id": group, "fact": fact}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
