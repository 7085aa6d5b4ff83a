"""Exports of a namespace for graph viewers, as GraphML or Cytoscape JSON.

Entities are nodes. Each fact about two entities is an edge for each period in which it was true. A fact about more
entities is a node, with an edge to each of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from xml.sax.saxutils import escape, quoteattr

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.rows import list_pages
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.export import PAGE, ExportOptions, Progress
from kg_memory.maintenance.transfer.file import Target, compress, rewritable
from kg_memory.models.operations import ExportResult
from kg_memory.temporal.interval import OPEN_END, instant

Value = str | float | bool | list[str]
Data = dict[str, Value]
Element = tuple[dict[str, str], Data]
"""(identity, data) of a node or edge. The identity is its id and, for an edge, its source and target."""
Render = Callable[["Drawing", str], Iterator[str]]
"""A function that yields the text of an export file, in parts, for a drawing and its namespace."""

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


@dataclass(slots=True)
class Drawing:
    """Reads the nodes and edges of one graph for an export, and counts them in `counts`."""

    database: Database
    key: str
    last: int
    counts: Counter[str] = field(default_factory=lambda: Counter(node=0, edge=0))

    def nodes(self) -> Iterator[Element]:
        """Yield the nodes to export: all entities, and all facts about more than two entities."""
        for row in self._read(ENTITIES):
            entity = row["entity"]
            data = _select(entity, "name", "type", "aliases", "summary", *_SEEN)
            yield self._count("node", {"id": entity["id"]}, {"kind": "entity", **data})
        for row in self._read(FACTS):
            if len(row["objects"]) > 1:
                fact = row["fact"]
                data = {"kind": "fact", "name": fact["sentence"], **_fact_data(row)}
                yield self._count("node", {"id": fact["id"]}, data)

    def edges(self) -> Iterator[Element]:
        """Yield the edges to export: one for each period in which a fact about two entities is true."""
        for row in self._read(FACTS):
            yield from (self._count("edge", ends, data) for ends, data in _to_edges(row))

    def _count(self, kind: str, ends: dict[str, str], data: Data) -> Element:
        self.counts[kind] += 1
        return ends, data

    def _read(self, query: str) -> Iterator[Row]:
        for page in list_pages(self.last, PAGE):
            yield from self.database.query(self.key, query, page, write=False)


def _to_edges(row: Row) -> Iterator[Element]:
    """Yield (ids, properties) for each edge of one fact: ``{"id": ..., "source": ..., "target": ...}, {...}``."""
    fact, subject, objects = row["fact"]["id"], row["subject"], row["objects"]
    for belief in row["beliefs"]:
        id_ = belief["id"]
        data = {**_fact_data(row), "reviewed": belief["reviewed"], **_select(belief, *_DATES, "precision")}
        if len(objects) == 1:
            yield {"id": id_, "source": subject, "target": objects[0]}, data
            continue
        yield {"id": f"{id_}/subject", "source": subject, "target": fact}, {**data, "role": "subject"}
        for place, entity in enumerate(objects):
            yield {"id": f"{id_}/object/{place}", "source": fact, "target": entity}, {**data, "role": "object"}


_SEEN = ("first_seen", "last_seen")
_DATES = ("valid_at", "invalid_at", "created_at")


def _fact_data(row: Row) -> dict[str, Value]:
    data = _select(row["fact"], "predicate", "sentence", "confidence", "edge_type")
    return {"fact": row["fact"]["id"], **data, "evidence": row["evidence"]}


def _select(properties: Row, *names: str) -> dict[str, Value]:
    values = {name: properties.get(name) for name in names}
    for name in (*_SEEN, *_DATES):
        if values.get(name) is not None:
            moment = instant(values[name])
            values[name] = moment and moment.isoformat()
    return {name: value for name, value in values.items() if value is not None}


def _export_drawing(
    render: Render, database: Database, options: ExportOptions, target: Target, progress: Progress | None = None
) -> ExportResult:
    """Export a namespace as a graph file to *target*, and return the numbers of nodes and edges.

    Errors: `InputError`.
    """
    namespace = options.namespace
    with rewritable(target) as file:

        def write_snapshot(key: str) -> ExportResult:
            """Export the graph with the database key *key* to the file, and return the numbers of nodes and edges."""
            with compress(file, target) as stream:
                rows = database.query(key, cypher.LAST, {}, write=False)
                if not rows or not database.query(key, cypher.META, {}, write=False):
                    raise InputError(f"namespace {namespace!r} is empty or does not exist; check its name")
                drawing = Drawing(database, key, int(rows[0]["last"]))
                size = 0
                for count, part in enumerate(render(drawing, namespace), 1):
                    size += stream.write(part.encode())
                    if progress and not count % PAGE:
                        progress(count, 0)
                return ExportResult(namespace=namespace, records=dict(drawing.counts), bytes=size)

        return read_snapshot(database, graph_key(namespace), write_snapshot)


# GraphML, for Gephi, yEd and networkx

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even as references."""
_NODE = ("kind", "name", "type", "aliases", "summary", "first_seen", "last_seen")
_EDGE = ("role", "valid_at", "invalid_at", "precision", "created_at", "reviewed")
_FACT = ("fact", "predicate", "sentence", "edge_type", "confidence", "evidence")
_TYPES = {"confidence": "double", "reviewed": "boolean"}
_GRAPHML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def _render_graphml(drawing: Drawing, namespace: str) -> Iterator[str]:
    yield _GRAPHML_HEAD
    yield from _graphml_keys()
    yield f'<graph id={_quote(namespace)} edgedefault="directed">\n'
    for kind, elements in (("node", drawing.nodes()), ("edge", drawing.edges())):
        for ends, data in elements:
            attributes = " ".join(f"{name}={_quote(value)}" for name, value in ends.items())
            inner = (f'<data key="{kind[0]}.{key}">{_graphml_text(value)}</data>' for key, value in data.items())
            yield f"<{kind} {attributes}>{''.join(inner)}</{kind}>\n"
    yield "</graph>\n</graphml>\n"


def _graphml_keys() -> Iterator[str]:
    for short, element, names in (("n", "node", (*_NODE, *_FACT)), ("e", "edge", (*_FACT, *_EDGE))):
        for name in names:
            type_ = _TYPES.get(name, "string")
            yield f'<key id="{short}.{name}" for="{element}" attr.name="{name}" attr.type="{type_}"/>\n'


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


def _render_cytoscape(drawing: Drawing, namespace: str) -> Iterator[str]:
    head = json.dumps({**_CYTOSCAPE_HEAD, "data": {"name": namespace}})
    yield f'{head[:-1]}, "elements": {{\n"nodes": ['
    yield from _cytoscape_elements(({**ends, "value": ends["id"]}, data) for ends, data in drawing.nodes())
    yield '],\n"edges": ['
    yield from _cytoscape_elements(drawing.edges())
    yield "]\n}}\n"


def _cytoscape_elements(elements: Iterable[Element]) -> Iterator[str]:
    separator = "\n"
    for ends, data in elements:
        yield separator + json.dumps({"data": {**ends, **data}}, ensure_ascii=False)
        separator = ",\n"


export_graphml = partial(_export_drawing, _render_graphml)
export_cytoscape = partial(_export_drawing, _render_cytoscape)
