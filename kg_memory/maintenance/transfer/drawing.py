"""The graph for looking: entities as nodes, and what is believed of them as edges.

A fact over more than two entities is a node itself, with an edge to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import IO, Any, NamedTuple

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.export import PAGE, What
from kg_memory.maintenance.transfer.file import Target, rewritable, zipped
from kg_memory.models.transfers import ExportResult
from kg_memory.temporal.interval import OPEN_END, instant

Draws = Callable[[Database, str, str, IO[bytes]], ExportResult]
"""What writes the graph with that key, of that namespace, into a stream."""
Data = Mapping[str, str | float | bool | list[str]]

ENTITIES = """
MATCH (n:Entity)
WHERE id(n) >= $first AND id(n) < $end
RETURN n {.id, .name, .type, .aliases, .summary, .first_seen, .last_seen} AS entity
ORDER BY id(n)
"""

FACTS = f"""
MATCH (n:Fact)
WHERE id(n) >= $first AND id(n) < $end
WITH n
MATCH (s:Entity)-[:SUBJECT_OF]->(n)
WITH n, s.id AS subject
MATCH (n)-[:OBJECT_IS]->(o:Entity)
WITH n, subject, o ORDER BY id(o)
WITH n, subject, collect(o.id) AS objects
MATCH (n)-[h:HELD|PROPOSED]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
WITH n, subject, objects, b, h ORDER BY b.known_from, b.id
WITH n, subject, objects, collect(b {{.id, .valid_at, .invalid_at, .precision, .created_at,
  reviewed: type(h) = 'HELD'}}) AS beliefs
OPTIONAL MATCH (x:Episode)-[:STATES]->(n)
WITH n, subject, objects, beliefs, x ORDER BY x.at, x.id
WITH n, subject, objects, beliefs, collect(DISTINCT x.id) AS evidence
RETURN n {{.id, .predicate, .sentence, .confidence, .edge_type}} AS fact, subject, objects, beliefs, evidence
ORDER BY id(n)
"""


def draw(
    draws: Draws, database: Database, what: What, target: Target, progress: Callable[[int, int], None] | None = None
) -> ExportResult:  # fmt: skip
    """Draw the namespace into *target*, and return how many nodes and edges there are; *progress* is not told."""
    del progress
    with rewritable(target) as file:

        def drawn(key: str) -> ExportResult:
            with zipped(file, target) as stream:
                return draws(database, key, what.namespace, stream)

        return read_snapshot(database, graph_key(what.namespace), drawn)


class Node(NamedTuple):
    """An entity, or a fact over more than two of them."""

    id: str
    data: Data


class Edge(NamedTuple):
    """A fact as it is believed in one period, or one end of it."""

    id: str
    source: str
    target: str
    data: Data


def last_of(database: Database, key: str, namespace: str) -> int:
    """Return the last internal id of the graph.

    Errors: `InputError` where it holds nothing.
    """
    found = database.query(key, cypher.LAST, {}, write=False)
    if not found or not database.query(key, cypher.META, {}, write=False):
        raise InputError(f"the namespace {namespace!r} holds nothing: check its name")
    return int(found[0]["last"])


def nodes(database: Database, key: str, last: int) -> Iterator[Node]:
    """Yield the entities, and the facts that are nodes."""
    for row in _pages(database, key, ENTITIES, last):
        told = row["entity"]
        yield Node(told["id"], {"kind": "entity", **_plain(told, "name", "type", "aliases", "summary", *_SEEN)})
    for row in _pages(database, key, FACTS, last):
        if len(row["objects"]) > 1:
            told = row["fact"]
            yield Node(told["id"], {"kind": "fact", "name": told["sentence"], **_fact(row)})


def edges(database: Database, key: str, last: int) -> Iterator[Edge]:
    """Yield what is believed now of every fact, one edge a period, or one a period and entity."""
    return chain.from_iterable(map(_edges, _pages(database, key, FACTS, last)))


def _edges(row: Mapping[str, Any]) -> Iterator[Edge]:
    fact, objects = row["fact"]["id"], row["objects"]
    for belief in row["beliefs"]:
        data = {**_fact(row), "reviewed": belief["reviewed"], **_plain(belief, *_DATES, "precision")}
        if len(objects) == 1:
            yield Edge(belief["id"], row["subject"], objects[0], data)
            continue
        yield Edge(f"{belief['id']}/subject", row["subject"], fact, {**data, "role": "subject"})
        for place, each in enumerate(objects):
            yield Edge(f"{belief['id']}/object/{place}", fact, each, {**data, "role": "object"})


_SEEN = ("first_seen", "last_seen")
_DATES = ("valid_at", "invalid_at", "created_at")


def _fact(row: Mapping[str, Any]) -> dict[str, Any]:
    told = _plain(row["fact"], "predicate", "sentence", "confidence", "edge_type")
    return {"fact": row["fact"]["id"], **told, "evidence": row["evidence"]}


def _plain(told: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return these fields, times as ISO 8601; what is not known and open ends are left out."""
    found = {name: told.get(name) for name in names}
    for name in (*_SEEN, *_DATES):
        if found.get(name) is not None:
            moment = instant(found[name])
            found[name] = moment and moment.isoformat()
    return {name: value for name, value in found.items() if value is not None}


def _pages(database: Database, key: str, query: str, last: int) -> Iterator[dict[str, Any]]:
    for first in range(0, last + 1, PAGE):
        yield from database.query(key, query, {"first": first, "end": first + PAGE}, write=False)
