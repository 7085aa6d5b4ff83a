"""The whole graph of a namespace as columns: what the page needs to show any moment of both clocks by itself."""

from __future__ import annotations

import gzip
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.falkor.rows import Row
from kg_memory.runtime.effects import in_step, now, read, work
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START

FAR = 8_640_000_000_000_000
"""Milliseconds that stand for an open end, negative for an open start: the last and the first date of JavaScript."""
CACHED = 8
"""The number of namespaces whose columns are kept in memory."""
KINDS = ("state", "event", "plan")
Columns = dict[str, Any]

REVISION = """
MATCH (e:Entity)
WITH count(e) AS entities, sum(coalesce(e.revision, 0)) AS revisions, count(e.evicted) AS evicted
OPTIONAL MATCH (m:Meta {id: 'schema'})
RETURN [entities, revisions, evicted, m.communities] AS revision
"""
COUNTS = tuple(
    f"MATCH {pattern} RETURN count(n) AS count"
    for pattern in ("(n:Fact)", "(n:Belief)", "(n:Verdict {ruling: 'waiting'})", "(n:Identity)", "()-[n:STATES]->()")
)
ENTITIES = """
MATCH (e:Entity)
WHERE e.evicted IS NULL
WITH e.type AS type, id(e) AS node, e.id AS id, e.name AS name, indegree(e, 'MENTIONS') AS mentions
RETURN type, collect(node) AS nodes, collect(id) AS ids, collect(name) AS names, collect(mentions) AS mentions
ORDER BY type
"""
FACTS = """
MATCH (f:Fact)
WHERE f.evicted IS NULL
RETURN f.predicate AS predicate, coalesce(f.kind, 'state') AS kind, collect(id(f)) AS nodes, collect(f.id) AS ids,
  collect(round(coalesce(f.confidence, 1.0) * 1000) / 1000) AS confidences
ORDER BY predicate, kind
"""
ENDS = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity)
RETURN collect(id(f)) AS facts, collect(id(s)) AS subjects, collect(id(o)) AS objects
"""
BELIEFS = """
MATCH (f:Fact)-[h:HELD|PROPOSED]->(b:Belief)
RETURN type(h) AS relation,
  collect([id(f), b.valid_at, b.known_from, b.invalid_at, b.created_at, b.expired_at]) AS beliefs
"""
SOURCES = """
MATCH (x:Episode)-[:STATES]->(f:Fact)
RETURN x.speaker AS speaker, x.thread AS thread, x.source AS source, coalesce(x.trust, 1.0) AS trust,
  collect(id(f)) AS facts
"""
PREMISES = """
MATCH (f:Fact)-[:RESTS_ON]->(p:Fact)
RETURN DISTINCT id(f) AS fact, id(p) AS premise
"""
DISPUTES = """
MATCH (v:Verdict {ruling: 'waiting'})
MATCH (f:Fact)-[:JUDGED]->(v)
RETURN collect(DISTINCT id(f)) AS facts
"""
COMMUNITIES = """
MATCH (c:Community)-[:HAS_MEMBER]->(e:Entity)
RETURN c.id AS id, c.name AS name, collect(id(e)) AS members
ORDER BY id
"""


class ColumnCache:
    """The columns of the namespaces that were read last, compressed; each is used while its graph stays as it is."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def read(self, namespace: str) -> Flow[tuple[str, bytes]]:
        """Return the revision of the graph of *namespace*, and its columns as compressed JSON."""
        revision = yield from read_revision()
        kept = self._kept.pop(namespace, None)
        if kept is None or kept[0] != revision:
            columns = yield from read_columns()
            kept = revision, (yield from work(lambda: compress(columns)))
        self._kept[namespace] = kept
        if len(self._kept) > CACHED:
            self._kept.popitem(last=False)
        return kept


def read_revision() -> Flow[str]:
    """Return a text that changes whenever the columns do."""
    first, *counts = yield from in_step(read(query) for query in (REVISION, *COUNTS))
    return json.dumps([first, counts])


def read_columns() -> Flow[Columns]:
    """Return the graph as columns; entities and facts are numbered by their places in these."""
    time = yield from now()
    queries = (ENTITIES, FACTS, ENDS, BELIEFS, SOURCES, PREMISES, DISPUTES, COMMUNITIES)
    answers = yield from in_step(read(query) for query in queries)
    return (yield from work(lambda: to_columns(answers, time)))


def to_columns(answers: Sequence[Sequence[Row]], time: int) -> Columns:
    """Return the columns of the *answers* to the queries of `read_columns`."""
    entities, facts, ends, beliefs, sources, premises, disputes, communities = answers
    nodes, places = _number(entities), _number(facts)
    subjects, objects = _read_ends(ends, places, nodes)
    predicates = list(dict.fromkeys(row["predicate"] for row in facts))
    kinds = [KINDS.index(row["kind"]) for row in facts]
    return {
        "now": time // 1000,
        "types": [row["type"] or "Entity" for row in entities],
        "predicates": predicates,
        "entities": {
            "id": _flatten(entities, "ids"),
            "name": _flatten(entities, "names"),
            "type": _repeat(range(len(entities)), entities),
            "mentions": _flatten(entities, "mentions"),
        },
        "facts": {
            "id": _flatten(facts, "ids"),
            "confidence": _flatten(facts, "confidences"),
            "predicate": _repeat(_number_predicates(facts, predicates), facts),
            "kind": _repeat(kinds, facts),
            "subject": subjects,
            "object": objects,
        },
        "beliefs": _to_beliefs(beliefs, places),
        "sources": _place(sources, "facts", places),
        "premises": _read_premises(premises, places),
        "disputed": _places_of(_flatten(disputes, "facts"), places),
        "communities": _place(communities, "members", nodes),
    }


def compress(columns: Columns) -> bytes:
    """Return *columns* as compressed JSON."""
    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "replace"), 1, mtime=0)


def _flatten(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of *name* in grouped *rows*."""
    return [value for row in rows for value in row[name]]


def _repeat(values: Iterable[int], rows: Iterable[Row]) -> list[int]:
    """Return the values of grouped *rows*, each as often as its row has nodes."""
    return [value for value, row in zip(values, rows, strict=True) for _ in row["nodes"]]


def _number(rows: Iterable[Row]) -> dict[int, int]:
    """Return the place of each node of grouped *rows*."""
    return {node: place for place, node in enumerate(_flatten(rows, "nodes"))}


def _number_predicates(facts: Iterable[Row], predicates: Sequence[str]) -> list[int]:
    numbers = {predicate: place for place, predicate in enumerate(predicates)}
    return [numbers[row["predicate"]] for row in facts]


def _places_of(nodes: Iterable[int], places: Mapping[int, int]) -> list[int]:
    return [places[node] for node in nodes if node in places]


def _place(rows: Iterable[Row], name: str, places: Mapping[int, int]) -> list[Row]:
    """Return *rows* with the places of the nodes that are their *name*."""
    return [{**row, name: _places_of(row[name], places)} for row in rows]


def _read_premises(rows: Iterable[Row], places: Mapping[int, int]) -> list[list[int]]:
    pairs = (_places_of((row["fact"], row["premise"]), places) for row in rows)
    return [pair for pair in pairs if len(pair) == 2]


def _read_ends(
    ends: Sequence[Row], places: Mapping[int, int], nodes: Mapping[int, int]
) -> tuple[list[int], list[list[int]]]:
    """Return the subject of each fact, and its objects; -1 is an entity that is not there."""
    subjects = [-1] * len(places)
    objects = [list[int]() for _ in places]
    for row in ends:
        for fact, subject, object_ in zip(row["facts"], row["subjects"], row["objects"], strict=True):
            place = places.get(fact)
            if place is None:
                continue
            subjects[place] = nodes.get(subject, -1)
            if object_ != subject and object_ in nodes:
                objects[place].append(nodes[object_])
    return subjects, objects


def _to_beliefs(rows: Iterable[Row], places: Mapping[int, int]) -> Columns:
    names = ("fact", "valid", "from", "until", "created", "expired")
    columns: Columns = {name: [] for name in (*names, "proposed")}
    for row in rows:
        held = [belief for belief in row["beliefs"] if belief[0] in places]
        columns["fact"] += [places[belief[0]] for belief in held]
        for place, name in enumerate(names[1:], 1):
            columns[name] += [_milliseconds(belief[place]) for belief in held]
        columns["proposed"] += [int(row["relation"] == "PROPOSED")] * len(held)
    return columns


def _milliseconds(time: int) -> int:
    return FAR if time >= OPEN_END else -FAR if time <= OPEN_START else time // 1000
