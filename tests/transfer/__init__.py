"""Helpers of the tests of export and import."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

from kg_memory import GraphMemory
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import PREFIX
from tests.whole_graph import every_property


def whole(memory: GraphMemory, namespace: str, *, vectors: bool = True) -> Counter[str]:
    """Return every node, relation and property of a namespace's graph."""
    return every_property(memory.driver.store.database, graph_key(namespace), vectors=vectors)


def exported(memory: GraphMemory, namespace: str = "default", **how: Any) -> bytes:
    """Return the export of a namespace."""
    file = io.BytesIO()
    memory.data.export(file, namespace=namespace, **how)
    return file.getvalue()


def put(path: Path, told: Any, *, a_line_each: bool = False) -> Path:
    """Write *told* as JSON, or each of its records on a line of its own, and return *path*."""
    rows = told if a_line_each else [told]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    return path


def left_aside(database: Database) -> list[str]:
    """Return the shadow graphs that still exist."""
    return [key for key in database.client().execute_command("GRAPH.LIST") if key.startswith(PREFIX)]
