"""A namespace as Cytoscape JSON, for Cytoscape and cytoscape.js (D13)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import IO, Any

from kg_memory.falkor.connect import Database
from kg_memory.maintenance.transfer.drawing import edges, last_of, nodes
from kg_memory.models.transfers import ExportResult

HEAD = {"format_version": "1.0", "generated_by": "kg-memory", "target_cytoscapejs_version": "~3", "directed": True}


def cytoscape(database: Database, key: str, namespace: str, stream: IO[bytes]) -> ExportResult:
    """Write the graph *key* of *namespace* into *stream*, and return how many nodes and edges there are."""
    last = last_of(database, key, namespace)
    head = json.dumps({**HEAD, "multigraph": True, "data": {"name": namespace}})
    size = stream.write(f'{head[:-1]}, "elements": {{\n"nodes": ['.encode())
    drawn = ({"id": each.id, "value": each.id, **each.data} for each in nodes(database, key, last))
    count, more = _put(stream, drawn)
    size += more + stream.write(b'],\n"edges": [')
    joined = ({"id": each.id, "source": each.source, "target": each.target, **each.data}
              for each in edges(database, key, last))  # fmt: skip
    counted, more = _put(stream, joined)
    size += more + stream.write(b"]\n}}\n")
    return ExportResult(namespace=namespace, records={"node": count, "edge": counted}, bytes=size)


def _put(stream: IO[bytes], elements: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Write *elements* between commas, and return how many they are, and their bytes."""
    count = size = 0
    for comma, data in zip(chain(("\n",), iter(lambda: ",\n", "")), elements, strict=False):
        size += stream.write((comma + json.dumps({"data": data}, ensure_ascii=False)).encode())
        count += 1
    return count, size
