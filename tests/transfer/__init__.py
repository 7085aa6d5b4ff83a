"""What is shared by the tests of export and import."""

from __future__ import annotations

import io
import struct
from collections import Counter
from typing import Any

from kg_memory import GraphMemory
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import PREFIX
from tests.faults.whole import LINKS, NODES


def whole(memory: GraphMemory, namespace: str, *, vectors: bool = True) -> Counter[str]:
    """Return every node, relation and property of a namespace's graph; vectors to the last bit of a single."""

    def told(properties: dict[str, Any]) -> str:
        own = {
            name: _vector(value, exact=vectors) if name == "embedding" else value for name, value in properties.items()
        }
        return repr(sorted(own.items()))

    look = memory.driver.store.database.query
    found = Counter(f"{row['labels']} {told(row['p'])}" for row in look(graph_key(namespace), NODES, {}, write=False))
    for row in look(graph_key(namespace), LINKS, {}, write=False):
        ends = [{**row[end], "embedding": None} for end in ("a", "b")]
        found[f"{told(ends[0])} -{row['kind']} {told(row['p'])}-> {told(ends[1])}"] += 1
    return found


def _vector(value: Any, *, exact: bool) -> Any:
    if value is None:
        return None
    return struct.pack(f"<{len(value)}f", *value).hex() if exact else [round(number, 4) for number in value]


def exported(memory: GraphMemory, namespace: str = "default", **how: Any) -> bytes:
    """Return the export of a namespace."""
    file = io.BytesIO()
    memory.data.export(file, namespace=namespace, **how)
    return file.getvalue()


def left_aside(database: Database) -> list[str]:
    """Return the graphs that were made aside and are still there."""
    return [key for key in database.client().execute_command("GRAPH.LIST") if key.startswith(PREFIX)]
