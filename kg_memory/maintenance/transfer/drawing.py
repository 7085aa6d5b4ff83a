"""Export a namespace for graph viewers, as GraphML and Cytoscape JSON (D13).

Entities are nodes, and beliefs about them are edges. A fact about more than two entities is a node itself, with an edge
to each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.export import PAGE, ExportOptions, Progress
from kg_memory.maintenance.transfer.file import Target, compress, rewritable
from kg_memory.models.operations import ExportResult
from kg_memory.temporal.interval import OPEN_END, instant

Value = str | float | bool | list[str]
Data = Mapping[str, Value]

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


@dataclass(frozen=True, slots=True)
class Node:
    """An entity, or a fact about more than two of them."""

    id: str
    data: Data


@dataclass(frozen=True, slots=True)
class Edge:
    """A belief about a fact, or one end of it."""

    id: str
    source: str
    target: str
    data: Data


@dataclass(frozen=True, slots=True)
class Drawing:
    """The nodes and edges of the graph *key*, up to its internal id *last*."""

    database: Database
    key: str
    last: int

    def nodes(self) -> Iterator[Node]:
        """Yield the entities, and the facts that are nodes."""
        for row in self._read(ENTITIES):
            entity = row["entity"]
            data = _select(entity, "name", "type", "aliases", "summary", *_SEEN)
            yield Node(entity["id"], {"kind": "entity", **data})
        for row in self._read(FACTS):
            if len(row["objects"]) > 1:
                fact = row["fact"]
                yield Node(fact["id"], {"kind": "fact", "name": fact["sentence"], **_fact_data(row)})

    def edges(self) -> Iterator[Edge]:
        """Yield the present beliefs about every fact, one edge a belief, or one a belief and entity."""
        return chain.from_iterable(map(_to_edges, self._read(FACTS)))

    def _read(self, query: str) -> Iterator[Row]:
        for first in range(0, self.last + 1, PAGE):
            yield from self.database.query(self.key, query, {"first": first, "end": first + PAGE}, write=False)


def _to_edges(row: Row) -> Iterator[Edge]:
    fact, objects = row["fact"]["id"], row["objects"]
    for belief in row["beliefs"]:
        data = {**_fact_data(row), "reviewed": belief["reviewed"], **_select(belief, *_DATES, "precision")}
        if len(objects) == 1:
            yield Edge(belief["id"], row["subject"], objects[0], data)
            continue
        yield Edge(f"{belief['id']}/subject", row["subject"], fact, {**data, "role": "subject"})
        for place, entity in enumerate(objects):
            yield Edge(f"{belief['id']}/object/{place}", fact, entity, {**data, "role": "object"})


_SEEN = ("first_seen", "last_seen")
_DATES = ("valid_at", "invalid_at", "created_at")


def _fact_data(row: Row) -> dict[str, Value]:
    data = _select(row["fact"], "predicate", "sentence", "confidence", "edge_type")
    return {"fact": row["fact"]["id"], **data, "evidence": row["evidence"]}


def _select(properties: Row, *names: str) -> dict[str, Value]:
    """Return these properties, times as ISO 8601; unknown values and open ends are left out."""
    values = {name: properties.get(name) for name in names}
    for name in (*_SEEN, *_DATES):
        if values.get(name) is not None:
            moment = instant(values[name])
            values[name] = moment and moment.isoformat()
    return {name: value for name, value in values.items() if value is not None}


def _export_drawing(
    write: Callable[[Drawing, str, IO[bytes]], ExportResult],
    database: Database,
    options: ExportOptions,
    target: Target,
    progress: Progress | None = None,
) -> ExportResult:
    """Write the namespace into *target*, and return how many nodes and edges it has; *progress* is not called."""
    del progress
    namespace = options.namespace
    with rewritable(target) as file:

        def write_snapshot(key: str) -> ExportResult:
            with compress(file, target) as stream:
                rows = database.query(key, cypher.LAST, {}, write=False)
                if not rows or not database.query(key, cypher.META, {}, write=False):
                    raise InputError(f"namespace {namespace!r} is empty or does not exist; check its name")
                return write(Drawing(database, key, int(rows[0]["last"])), namespace, stream)

        return read_snapshot(database, graph_key(namespace), write_snapshot)


# GraphML, for Gephi, yEd and networkx

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may have, not even as a reference."""
_NODE = ("kind", "name", "type", "aliases", "summary", "first_seen", "last_seen")
_EDGE = ("role", "valid_at", "invalid_at", "precision", "created_at", "reviewed")
_FACT = ("fact", "predicate", "sentence", "edge_type", "confidence", "evidence")
_TYPES = {"confidence": "double", "reviewed": "boolean"}
_GRAPHML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def _write_graphml(drawing: Drawing, namespace: str, stream: IO[bytes]) -> ExportResult:
    counts = {"node": 0, "edge": 0}
    size = 0

    def put(text: str) -> None:
        nonlocal size
        size += stream.write(text.encode())

    put(_GRAPHML_HEAD + "".join(_graphml_keys()))
    put(f'<graph id={_quote(namespace)} edgedefault="directed">\n')
    for node in drawing.nodes():
        put(f"<node id={_quote(node.id)}>{_graphml_data('n', node.data)}</node>\n")
        counts["node"] += 1
    for edge in drawing.edges():
        ends = f"source={_quote(edge.source)} target={_quote(edge.target)}"
        put(f"<edge id={_quote(edge.id)} {ends}>{_graphml_data('e', edge.data)}</edge>\n")
        counts["edge"] += 1
    put("</graph>\n</graphml>\n")
    return ExportResult(namespace=namespace, records=counts, bytes=size)


def _graphml_keys() -> Iterator[str]:
    for short, element, names in (("n", "node", (*_NODE, *_FACT)), ("e", "edge", (*_FACT, *_EDGE))):
        for name in names:
            type_ = _TYPES.get(name, "string")
            yield f'<key id="{short}.{name}" for="{element}" attr.name="{name}" attr.type="{type_}"/>\n'


def _graphml_data(short: str, data: Data) -> str:
    return "".join(f'<data key="{short}.{name}">{_graphml_text(value)}</data>' for name, value in data.items())


def _graphml_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = "\n".join(value) if isinstance(value, list) else str(value)
    return escape(_FORBIDDEN.sub("\ufffd", text), {"\r": "&#13;"})


def _quote(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text))


# Cytoscape JSON, for Cytoscape and cytoscape.js

_CYTOSCAPE_HEAD = {
    "format_version": "1.0",
    "generated_by": "kg-memory",
    "target_cytoscapejs_version": "~3",
    "directed": True,
    "multigraph": True,
}


def _write_cytoscape(drawing: Drawing, namespace: str, stream: IO[bytes]) -> ExportResult:
    head = json.dumps({**_CYTOSCAPE_HEAD, "data": {"name": namespace}})
    size = stream.write(f'{head[:-1]}, "elements": {{\n"nodes": ['.encode())
    node_data = ({"id": node.id, "value": node.id, **node.data} for node in drawing.nodes())
    nodes, written = _write_elements(stream, node_data)
    size += written + stream.write(b'],\n"edges": [')
    edge_data = ({"id": edge.id, "source": edge.source, "target": edge.target, **edge.data} for edge in drawing.edges())
    edges, written = _write_elements(stream, edge_data)
    size += written + stream.write(b"]\n}}\n")
    return ExportResult(namespace=namespace, records={"node": nodes, "edge": edges}, bytes=size)


def _write_elements(stream: IO[bytes], elements: Iterable[Data]) -> tuple[int, int]:
    """Write *elements* with commas between, and return how many there are, and their bytes."""
    count = size = 0
    for data in elements:
        text = json.dumps({"data": data}, ensure_ascii=False)
        size += stream.write(((",\n" if count else "\n") + text).encode())
        count += 1
    return count, size


export_graphml = partial(_export_drawing, _write_graphml)
export_cytoscape = partial(_export_drawing, _write_cytoscape)
