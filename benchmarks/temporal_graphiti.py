"""Graphiti on the scenarios of `temporal`: fed by a scripted model without errors, judged by its own fields."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.nodes import EpisodeType

from benchmarks.graphiti_prompts import block
from benchmarks.systems.graphiti import connect
from tests.scripted import HashEmbeddings
from tests.time.reader import names
from tests.time.scenarios import Point, Said, Scenario, Told

EDGES = """MATCH (a:Entity {name: $subject})-[e:RELATES_TO]->(:Entity)
RETURN e.fact AS fact, e.valid_at AS valid_at, e.invalid_at AS invalid_at, e.created_at AS created_at,
  e.expired_at AS expired_at, e.reference_time AS said_at"""
SURE = 0.85
"""The confidence from which a verdict takes effect at once, in both systems."""
ENDED, SINCE = "it is no longer so: ", ", this since "


class Reader(LLMClient):
    """A model that returns the facts, dates and verdicts of one scenario.

    A fact that retracts or re-dates the same words gets another wording, since Graphiti would merge them without asking
    the model. With *dated*, an undated fact begins when it was said, as Graphiti's prompts demand.
    """

    def __init__(self, scenario: Scenario, *, dated: bool) -> None:
        super().__init__(LLMConfig(api_key="none", model="scripted", small_model="scripted"))
        self.scenario = scenario
        self.dated = dated
        self.said = scenario.said[0]

    async def generate_response(self, messages: Any, response_model: Any = None, *_: Any, **__: Any) -> dict[str, Any]:
        asked = messages[-1].content
        match response_model.__name__ if response_model else "":
            case "ExtractedEntities":
                return {"extracted_entities": [{"name": each, "entity_type_id": 0} for each in names(self.said)]}
            case "ExtractedEdges":
                return {"edges": [self._edge(told) for told in self.said.facts]}
            case "NodeResolutions":
                return {"entity_resolutions": _same_names(asked)}
            case "EdgeDuplicate":
                return self._judge(asked)
            case "EdgeTimestamps":
                return {"valid_at": None, "invalid_at": None}
            case "SummarizedEntities":
                return {"summaries": []}
            case other:
                message = f"no answer is scripted for {other!r}: add one for this version of Graphiti"
                raise NotImplementedError(message)

    async def _generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _edge(self, told: Told) -> dict[str, Any]:
        since, until = self.said.interval(told)
        fact = wording(self.scenario, self.said, told)
        if ends_another(self.scenario, self.said, told):
            since, until = until, None
        if self.dated and since is None and until is None:
            since = self.said.moment
        return {
            "source_entity_name": told.subject, "target_entity_name": told.object, "relation_type": told.predicate,
            "fact": fact, "valid_at": since and since.isoformat(), "invalid_at": until and until.isoformat(),
            "episode_indices": [0],
        }  # fmt: skip

    def _judge(self, asked: str) -> dict[str, Any]:
        known = ast.literal_eval(block(asked, "EXISTING FACTS"))
        others = ast.literal_eval(block(asked, "FACT INVALIDATION CANDIDATES"))
        new = block(asked, "NEW FACT")
        kinds = {each["idx"]: self._kind(new, each["fact"]) for each in (*known, *others)}
        same = [each["idx"] for each in known if kinds[each["idx"]] == "duplicate"]
        return {
            "duplicate_facts": same,
            "contradicted_facts": [i for i, kind in kinds.items() if kind == "contradicts"],
        }

    def _kind(self, new: str, known: str) -> str | None:
        one, other = plain(new), plain(known)
        verdict = self.scenario.verdict(one, other)
        if self.scenario.same(one, other):
            over = ended(self.scenario)
            taken_back = (new in over) != (known in over) or (verdict and verdict.kind == "conflicts")
            return "contradicts" if taken_back else "duplicate"
        if verdict and verdict.confidence >= SURE and verdict.kind in ("supersedes", "conflicts"):
            return "contradicts"
        return None


class GraphitiEmbedder(EmbedderClient):
    """The tests' embeddings behind Graphiti's interface."""

    def __init__(self, embeddings: HashEmbeddings) -> None:
        self.embeddings = embeddings

    async def create(self, input_data: Any) -> list[float]:
        return self.embeddings.embed_query(
            input_data if isinstance(input_data, str) else " ".join(map(str, input_data))
        )

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        return self.embeddings.embed_documents(input_data_list)


class _Ranker(CrossEncoderClient):
    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:  # noqa: ARG002 - its interface
        return [(each, 1.0) for each in passages]


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact as Graphiti stores it, with its sentence in the scenario."""

    sentence: str
    valid_at: datetime | None
    invalid_at: datetime | None
    created_at: datetime
    expired_at: datetime | None
    said_at: datetime | None


@dataclass(frozen=True, slots=True)
class Reading:
    """One interpretation of fields that Graphiti leaves open: a missing start, and what was known before an expiry."""

    open_start: bool
    expired_counts: bool
    end_unknown_before_expiry: bool

    def holds(self, edge: Edge, as_of: datetime, believed_at: datetime | None) -> bool:
        end = edge.invalid_at
        if believed_at is None:
            if edge.expired_at and not self.expired_counts:
                return False
        elif edge.created_at > believed_at:
            return False
        elif edge.expired_at and edge.expired_at <= believed_at:
            if not self.expired_counts:
                return False
        elif edge.expired_at and self.end_unknown_before_expiry:
            end = None
        start = edge.valid_at if edge.valid_at or self.open_start else edge.said_at
        return (start is None or start <= as_of) and (end is None or as_of < end)


READINGS = tuple(Reading(*choice) for choice in product((True, False), repeat=3))


async def run(scenario: Scenario, place: int, socket: str, embeddings: HashEmbeddings) -> list[frozenset[int]]:
    """Return the readings for which Graphiti's answer is right, for each point of *scenario*.

    There are two sets of `READINGS`: for undated and for dated facts.
    """
    found = []
    for dated in (False, True):
        group, model = f"scenario_{place}_{int(dated)}", Reader(scenario, dated=dated)
        edges, clock = await _ingest(scenario, model, group, socket, embeddings)
        found.append([_readings(scenario, edges, point, clock) for point in scenario.points])
    return [told | {len(READINGS) + reading for reading in dated} for told, dated in zip(*found, strict=True)]


async def _ingest(
    scenario: Scenario, model: Reader, group: str, socket: str, embeddings: HashEmbeddings
) -> tuple[list[Edge], list[datetime]]:
    """Return the edges about the subject of *scenario*, and the times between the arrivals of its messages."""
    driver = await connect(socket, group)
    embedder = GraphitiEmbedder(embeddings)
    graphiti = Graphiti(graph_driver=driver, llm_client=model, embedder=embedder, cross_encoder=_Ranker())
    clock = [datetime.now(UTC)]
    for each in scenario.said:
        model.said = each
        await graphiti.add_episode(
            name=each.at, episode_body=each.content, source_description="chat", reference_time=each.moment,
            source=EpisodeType.text, group_id=group,
        )  # fmt: skip
        clock.append(datetime.now(UTC))
    rows, _, _ = await driver.execute_query(EDGES, subject=scenario.subject)
    await graphiti.close()
    return [to_edge(row) for row in rows if row["fact"] not in ended(scenario)], clock


def ends_another(scenario: Scenario, said: Said, told: Told) -> bool:
    """Return whether *told* only states the end of a fact that another episode states."""
    since, until = said.dates(told)
    same = [each for each in scenario.facts if scenario.same(each.sentence, told.sentence)]
    return since is None and until is not None and len(same) > 1


def wording(scenario: Scenario, said: Said, told: Told) -> str:
    """Return the text that the scripted model gives to the Graphiti edge for *told*."""
    if ends_another(scenario, said, told):
        same = [each for each in scenario.facts if each.sentence == told.sentence]
        return f"{ENDED}{told.sentence}" if len(same) > 1 else told.sentence
    since, _ = said.interval(told)
    if scenario.verdict(told.sentence, told.sentence) and since:
        return f"{told.sentence}{SINCE}{since.date()}"
    return told.sentence


def ended(scenario: Scenario) -> set[str]:
    """Return the texts of the Graphiti edges that only state the end of another fact."""
    told = ((said, each) for said in scenario.said for each in said.facts)
    return {wording(scenario, said, each) for said, each in told if ends_another(scenario, said, each)}


def plain(fact: str) -> str:
    """Return the sentence of the scenario from which the Graphiti edge *fact* was made."""
    return fact.removeprefix(ENDED).split(SINCE)[0]


def _readings(scenario: Scenario, edges: list[Edge], point: Point, clock: list[datetime]) -> frozenset[int]:
    believed_at = None if point.believed_after is None else clock[point.believed_after]
    as_of, right = point.instant or datetime.now(UTC), set(_right(scenario, point))
    served = (
        scenario.plain(frozenset(each.sentence for each in edges if reading.holds(each, as_of, believed_at)))
        for reading in READINGS
    )
    return frozenset(place for place, sentences in enumerate(served) if sentences in right)


def _right(scenario: Scenario, point: Point) -> Iterator[frozenset[str]]:
    """Yield the right answers; there are two if random ids of episodes decide."""
    yield point.expect
    first, second = scenario.tie or ("", "")
    if scenario.tie:
        yield frozenset({first: second, second: first}.get(each, each) for each in point.expect)


def to_edge(row: dict[str, Any]) -> Edge:
    """Return a row of `EDGES` as an edge."""
    times = (_moment(row[name]) for name in ("valid_at", "invalid_at", "created_at", "expired_at", "said_at"))
    valid_at, invalid_at, created_at, expired_at, said_at = times
    return Edge(
        plain(row["fact"]), valid_at, invalid_at, created_at or datetime.min.replace(tzinfo=UTC), expired_at, said_at
    )


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _same_names(asked: str) -> list[dict[str, Any]]:
    known = {each["name"]: each["candidate_id"] for each in json.loads(block(asked, "EXISTING ENTITIES"))}
    return [
        {"id": each["id"], "name": each["name"], "duplicate_candidate_id": known.get(each["name"], -1)}
        for each in json.loads(block(asked, "ENTITIES"))
    ]
