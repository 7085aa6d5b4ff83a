"""Run the stories of `benchmarks.consequences` on Graphiti; see there how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.nodes import EpisodeType

from benchmarks.consequences import moment
from benchmarks.consequences_stories import Asked, Story
from benchmarks.systems.graphiti import NoRanker, connect
from benchmarks.temporal_graphiti import READINGS, Edge, GraphitiEmbedder, Reader, Reading, ended, to_edge
from tests.scripted import HashEmbeddings

EDGES = """MATCH (a:Entity)-[e:RELATES_TO]->(:Entity)
RETURN a.name AS subject, e.name AS relation, e.fact AS fact, e.valid_at AS valid_at, e.invalid_at AS invalid_at,
  e.created_at AS created_at, e.expired_at AS expired_at, e.reference_time AS said_at"""


@dataclass(frozen=True, slots=True)
class Stated:
    """A Graphiti edge with its subject and its relation."""

    subject: str
    relation: str
    edge: Edge


async def run(story: Story, place: int, socket: str, embeddings: HashEmbeddings) -> list[bool]:
    """Return whether Graphiti answers each question correctly, with or without the dates in its prompts."""
    told = [
        await _ingest(story, f"story_{place}_{int(dated)}", socket, embeddings, dated=dated) for dated in (False, True)
    ]
    return [any(_is_right(asked, edges) for edges in told) for asked in story.questions]


async def _ingest(story: Story, group: str, socket: str, embeddings: HashEmbeddings, *, dated: bool) -> list[Stated]:
    driver = await connect(socket, group)
    model = Reader(story.scenario, dated=dated)
    graphiti = Graphiti(
        graph_driver=driver, llm_client=model, embedder=GraphitiEmbedder(embeddings), cross_encoder=NoRanker()
    )
    episodes: list[str] = []
    for said in story.scenario.said:
        model.said = said
        added: Any = await graphiti.add_episode(
            name=said.at, episode_body=said.content, source_description="chat", reference_time=said.moment,
            source=EpisodeType.text, group_id=group,
        )  # fmt: skip
        episodes.append(added.episode.uuid)
    for number in story.forgotten:
        await graphiti.remove_episode(episodes[number])
    rows, _, _ = await driver.execute_query(EDGES)
    await graphiti.close()
    over = ended(story.scenario)
    return [Stated(row["subject"], row["relation"], to_edge(row)) for row in rows if row["fact"] not in over]


def _is_right(asked: Asked, edges: Sequence[Stated]) -> bool:
    own = [each for each in edges if each.edge.sentence == asked.sentence]
    if not own:
        return asked.answer == "unknown"
    return any(_agrees(asked, own, edges, reading, moment(asked)) for reading in READINGS)


def _agrees(asked: Asked, own: Sequence[Stated], edges: Sequence[Stated], reading: Reading, time: datetime) -> bool:
    holds = any(reading.holds(each.edge, time, None) for each in own)
    if asked.answer != "absent":
        return holds == (asked.answer == "holds") and asked.answer != "unknown"
    kinds = {(each.subject, each.relation) for each in own}
    others = [each for each in edges if (each.subject, each.relation) in kinds]
    return not holds and not any(reading.holds(each.edge, time, None) for each in others)
