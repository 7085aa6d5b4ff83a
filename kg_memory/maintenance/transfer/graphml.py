"""A namespace as GraphML, for Gephi, yEd and networkx (D13)."""

from __future__ import annotations

import re
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from kg_memory.falkor.connect import Database
from kg_memory.maintenance.transfer.drawing import Data, edges, last_of, nodes
from kg_memory.models.transfers import ExportResult

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may have, not even as a reference."""
_NODE = ("kind", "name", "type", "aliases", "summary", "first_seen", "last_seen")
_EDGE = ("role", "valid_at", "invalid_at", "precision", "created_at", "reviewed")
_FACT = ("fact", "predicate", "sentence", "edge_type", "confidence", "evidence")
_TYPES = {"confidence": "double", "reviewed": "boolean"}
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def graphml(database: Database, key: str, namespace: str, stream: IO[bytes]) -> ExportResult:
    """Write the graph *key* of *namespace* into *stream*, and return how many nodes and edges there are."""
    last = last_of(database, key, namespace)
    counts = {"node": 0, "edge": 0}
    size = 0

    def put(text: str) -> None:
        nonlocal size
        size += stream.write(text.encode())

    put(_HEAD + "".join(_keys()))
    put(f'<graph id={_quoted(namespace)} edgedefault="directed">\n')
    for node in nodes(database, key, last):
        put(f"<node id={_quoted(node.id)}>{_data('n', node.data)}</node>\n")
        counts["node"] += 1
    for edge in edges(database, key, last):
        ends = f"source={_quoted(edge.source)} target={_quoted(edge.target)}"
        put(f"<edge id={_quoted(edge.id)} {ends}>{_data('e', edge.data)}</edge>\n")
        counts["edge"] += 1
    put("</graph>\n</graphml>\n")
    return ExportResult(namespace=namespace, records=counts, bytes=size)


def _keys() -> list[str]:
    given = (("n", "node", (*_NODE, *_FACT)), ("e", "edge", (*_FACT, *_EDGE)))
    return [
        f'<key id="{short}.{name}" for="{of}" attr.name="{name}" attr.type="{_TYPES.get(name, "string")}"/>\n'
        for short, of, names in given
        for name in names
    ]


def _data(short: str, data: Data) -> str:
    return "".join(f'<data key="{short}.{name}">{_text(value)}</data>' for name, value in data.items())


def _text(value: str | float | bool | list[str]) -> str:  # noqa: FBT001 - a value, not a flag
    if isinstance(value, bool):
        return str(value).lower()
    text = "\n".join(value) if isinstance(value, list) else str(value)
    return escape(_FORBIDDEN.sub("\ufffd", text), {"\r": "&#13;"})


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text))
