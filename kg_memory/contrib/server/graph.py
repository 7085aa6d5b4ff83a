"""Routes that return the graph of a namespace in Cytoscape's JSON format: all of it, or the part around an entity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import filterfalse
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from kg_memory.contrib.server.access import KnownKey, authorize
from kg_memory.contrib.server.answers import json_response
from kg_memory.contrib.server.endpoints import PathText, describe, to_argument
from kg_memory.contrib.server.limits import Job
from kg_memory.contrib.server.parameters import NAMES
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.rows import Row, to_entity
from kg_memory.models.graph import Fact
from kg_memory.runtime.effects import fetch, work
from kg_memory.runtime.flow import Flow
from kg_memory.text.sentences import is_quote
from kg_memory.validation import DEFAULT_NAMESPACE

MOST_FACTS = 10_000


class NodeData(BaseModel):
    """An entity as a node. `facts` are the sentences of its facts that have no object, so no edge."""

    id: str
    label: str
    type: str
    summary: str = ""
    mention_count: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    facts: list[str] = []


class EdgeData(BaseModel):
    """A fact as an edge. A fact with several objects has an edge to each of them, all with its id in `fact`."""

    id: str
    source: str
    target: str
    label: str
    fact: str
    kind: str
    sentence: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    known_from: datetime | None = None
    created_at: datetime
    expired_at: datetime | None = None
    confidence: float
    mark: str = ""


class Node(BaseModel):
    """A node in Cytoscape's format."""

    group: Literal["nodes"] = "nodes"
    data: NodeData


class Edge(BaseModel):
    """An edge in Cytoscape's format."""

    group: Literal["edges"] = "edges"
    data: EdgeData


class Elements(BaseModel):
    """The nodes and edges of a graph."""

    nodes: list[Node]
    edges: list[Edge]


class Graph(BaseModel):
    """A graph in Cytoscape's format. `more` is true if facts beyond the limit were left out."""

    elements: Elements
    more: bool = False


def _query(name: str) -> Any:
    return Query(description=NAMES[name].about)


AsOf = Annotated[str | None, _query("as_of")]
During = Annotated[str | None, _query("during")]
BelievedAt = Annotated[str | None, _query("believed_at")]
Where = Annotated[str | None, _query("where")]
Limit = Annotated[int, Query(ge=1, le=MOST_FACTS, description="The most facts; the latest come first.")]
Whose = Annotated[str, Query(description="The namespace.")]


Found = tuple[Sequence[Fact], list[str]]
"""The facts of a graph, and the ids of entities that belong to it even without facts."""


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the routes under ``/api/graph/`` to *router*."""
    facts, entities = service.memory.facts, service.memory.entities

    async def answer(request: Request, namespace: str, limit: int, find: Callable[[], Awaitable[Found]]) -> Response:
        """Return a graph of at most *limit* facts as JSON; *find* returns (facts, ids of further entities to show)."""

        async def draw(_: Job) -> Response:
            found, ids = await find()
            flow = read_graph(list(filterfalse(is_quote, found))[:limit], ids)
            graph = Graph(elements=await service.memory.driver.arun(flow, namespace), more=len(found) > limit)
            return json_response(request, await asyncio.to_thread(lambda: graph.model_dump_json().encode()))

        asked = str(request.url), request.headers.get("if-none-match")
        return await service.jobs.run(request, namespace, asked, draw, cancel=True)

    @router.get("/api/graph/global", response_model=Graph, **describe("graph.global"))
    async def read_all(
        request: Request,
        key: KnownKey,
        namespace: Whose = DEFAULT_NAMESPACE,
        as_of: AsOf = None,
        during: During = None,
        believed_at: BelievedAt = None,
        where: Where = None,
        limit: Limit = 1000,
    ) -> Response:
        """Return the graph of a namespace, as of a time or of all time; facts that only quote are left out."""
        authorize(key, "read", namespace)
        arguments = _to_arguments(as_of=as_of, during=during, believed_at=believed_at, where=where)

        async def find() -> Found:
            return await facts.alist(**arguments, namespace=namespace, limit=limit + 1), []

        return await answer(request, namespace, limit, find)

    @router.get("/api/graph/{entity_id}", response_model=Graph, **describe("graph.around"))
    async def read_around(
        request: Request,
        key: KnownKey,
        entity_id: Annotated[PathText, Path(description="The id or a name of an entity.")],
        namespace: Whose = DEFAULT_NAMESPACE,
        depth: Annotated[int, Query(ge=1, le=6, description="The most steps from the entity.")] = 2,
        as_of: AsOf = None,
        during: During = None,
        believed_at: BelievedAt = None,
        limit: Limit = 1000,
    ) -> Response:
        """Return the part of the graph within `depth` steps of an entity, which is given by id or name."""
        authorize(key, "read", namespace)
        times = _to_arguments(as_of=as_of, during=during, believed_at=believed_at)

        async def find() -> Found:
            near = await entities.aaround(entity_id, depth, **times, namespace=namespace, limit=limit + 1)
            if not near.entities:
                raise ProblemError(404, "entity not found in this namespace; check its id or name")
            return near.facts, [id_ for id_, steps in near.depths.items() if steps == 0]

        return await answer(request, namespace, limit, find)


def _to_arguments(**given: str | None) -> dict[str, Any]:
    return {name: to_argument(name, value) for name, value in given.items()}


def read_graph(facts: Sequence[Fact], ids: Iterable[str] = ()) -> Flow[Elements]:
    """Return *facts* as a graph in which entities are nodes and facts are edges."""
    ends = yield from fetch(queries.ENDS_OF_FACTS, ids=list({fact.id for fact in facts}))
    by_fact = {row["fact"]: row for row in ends}
    reached = {*ids, *(id_ for row in ends for id_ in (row["subject"], *row["objects"]))}
    stored = yield from fetch(queries.ENTITIES_WITH_MENTIONS, ids=sorted(reached))
    return (yield from work(lambda: _draw(facts, by_fact, stored)))


def _draw(facts: Sequence[Fact], by_fact: Mapping[str, Row], stored: Sequence[Row]) -> Elements:
    """Return a graph of *facts*: a node for each entity, and an edge from each subject to each object."""
    alone: dict[str, list[str]] = {}
    edges: list[Edge] = []
    for fact in facts:
        if fact.id not in by_fact:  # forgotten since it was read
            continue
        edges += _to_edges(fact, row := by_fact[fact.id])
        if not row["objects"]:
            alone.setdefault(row["subject"], []).append(fact.sentence)
    return Elements(nodes=[_to_node(row, alone) for row in stored], edges=edges)


def _to_node(row: Row, alone: Mapping[str, list[str]]) -> Node:
    """Convert the entity in *row* to a node. *alone* maps entity ids to the sentences of facts without an object."""
    entity = to_entity(row["entity"])
    common = entity.model_dump(include={"id", "type", "summary", "first_seen", "last_seen"})
    own = {"label": entity.name, "mention_count": row["mentions"], "facts": alone.get(entity.id, [])}
    return Node(data=NodeData(**common, **own))


def _to_edges(fact: Fact, row: Row) -> Iterator[Edge]:
    begun = fact.known_from.isoformat() if fact.known_from else ""
    common = fact.model_dump(include=set(EdgeData.model_fields) - {"id", "source", "target", "label", "fact", "mark"})
    for target in row["objects"]:
        ends = {"id": f"{fact.id}/{target}/{begun}", "source": row["subject"], "target": target}
        yield Edge(data=EdgeData(**common, **ends, label=fact.predicate, fact=fact.id, mark=fact.mark))
