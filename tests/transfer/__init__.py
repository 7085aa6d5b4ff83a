"""Helpers of the tests of export and import."""

import io
from collections import Counter
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


def left_aside(database: Database) -> list[str]:
    """Return the shadow graphs that still exist."""
    return [key for key in database.client().execute_command("GRAPH.LIST") if key.startswith(PREFIX)]
