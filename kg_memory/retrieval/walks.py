"""A breadth-first walk from the entities that a question is about (Zep 3.1), and the read that every walk takes.

A walk follows the facts that hold at the time of the question, both ways, and reaches each entity once. It takes one
read, whatever the size of the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from kg_memory.falkor.queries import links as cypher
from kg_memory.falkor.rows import Row
from kg_memory.retrieval.fuse import sort_scores
from kg_memory.retrieval.plugins import Activity, Hops, Instants, Link, Links, Part
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow

NEIGHBOURS = 10
"""The entities that each further step starts from: those that share most facts with the step before."""
FACTS_A_STEP = 50
"""The facts of one entity that are walked along, by default."""
LOOKED_THROUGH = 3
"""The latest facts that are checked for those that hold, for each that is walked along."""
HUB = 200
"""A start apart, an entity with more facts is not walked through: proximity to a hub carries no signal, and is slow."""
MOST_SORTED = 50_000
"""The facts of one entity that are sorted for the latest, at most: it takes the server 30 ms."""


Statements = Mapping[str, Mapping[str, str | None]]


class BreadthFirst(Part):
    """Walk step by step from the entities that the question is about (Zep 3.1, C16)."""

    method: Literal["bfs"] = "bfs"
    max_hops: Hops = 2
    facts_a_hop: Annotated[int, Field(ge=1, le=1000)] = FACTS_A_STEP
    """The facts of one entity that are walked along, the latest ones; half as many at each further hop."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        links, weights = yield from walk_breadth_first(start, instants, self.max_hops, self.facts_a_hop, NEIGHBOURS)
        return links, weights


def walk_breadth_first(
    start: Mapping[str, float], instants: Instants, hops: int, facts: int, neighbours: int
) -> Flow[tuple[Links, Activity]]:
    """Walk along the latest *facts* of each start, and half as many at each further step, from *neighbours* entities.

    An entity has the weight of the start that it was reached from times ``1 / (1 + hop)``.
    """
    row = yield from _read_walk(list(start), instants, hops, facts, neighbours)
    statements = parse_statements(row.get("statements", ""))
    links: Links = {}
    weights, origins = dict(start), dict(start)
    for hop in range(1, hops + 1):
        near = parse_links(row.get(f"links{hop}", ""), statements)
        links |= near
        origins = _neighbours(near, origins, weights, neighbours)
        weights |= {id_: weight / (1 + hop) for id_, weight in origins.items()}
    return links, weights


def read_near(ids: Sequence[str], instants: Instants, facts: int, most: int = MOST_SORTED) -> Flow[Links]:
    """Return the latest *facts* of each of *ids* that hold; of an entity with more than *most* facts, any of these."""
    row = yield from _read_walk(ids, instants, 1, facts, 0, most)
    return parse_links(row.get("links1", ""), parse_statements(row.get("statements", "")))


def _read_walk(
    ids: Sequence[str], instants: Instants, hops: int, facts: int, neighbours: int, most: int = MOST_SORTED
) -> Flow[Row]:
    limits = {f"limit{hop}": max(facts >> (hop - 1), 1) for hop in range(1, hops + 1)}
    depths = {name.replace("limit", "depth"): limit * LOOKED_THROUGH for name, limit in limits.items()}
    bounds = {"most": most, "hub": HUB, "neighbours": neighbours, **limits, **depths}
    rows = yield from read(cypher.walk(hops, unreviewed=instants.unreviewed), ids=ids, **bounds, **instants.params)
    return rows[0] if rows else {}


def _neighbours(near: Links, origins: Mapping[str, float], reached: Mapping[str, float], most: int) -> Activity:
    """Return the entities not yet *reached* that share most facts with *origins*, with the best weight of these."""
    shared = Counter([id_ for link in near.values() for id_ in link.entities if id_ not in reached])
    weights = {id_: 0.0 for id_, _ in sort_scores(shared.items())[:most]}
    for link in near.values():
        best = max((origins[id_] for id_ in link.entities if id_ in origins), default=0.0)
        for id_ in link.entities:
            if best > weights.get(id_, best):
                weights[id_] = best
    return weights


def parse_links(links: str, statements: Statements) -> Links:
    """Return the facts of a text of links, as `queries.links` makes it, with their *statements*."""
    types: dict[str, str] = {}
    entities: dict[str, dict[str, None]] = {}
    for line in links.split("\n"):
        match line.split("\t"):
            case [id_, type_, subject, object_]:  # an imported id may contain anything
                types[id_] = type_
                entities.setdefault(id_, {}).update({subject: None, object_: None})
    return {id_: Link(types[id_], tuple(ends), statements.get(id_, {})) for id_, ends in entities.items()}


def parse_statements(text: str) -> Statements:
    """Return the speakers of the episodes that state facts, by the ids of the facts and the episodes."""
    statements: dict[str, dict[str, str | None]] = {}
    for line in text.split("\n"):
        match line.split("\t", 2):
            case [id_, episode, speaker]:
                statements.setdefault(id_, {})[episode] = speaker or None
    return statements
