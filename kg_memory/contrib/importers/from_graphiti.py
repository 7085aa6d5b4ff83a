"""Import a graph of Graphiti, Zep's library, from its FalkorDB or a Neo4j dump (``apoc.export.json.all``).

Edges, nodes and episodes are converted to the fields of Zep's API, and then imported by `from_zep`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kg_memory.contrib.importers.from_zep import read_source
from kg_memory.contrib.importers.moving import Reading, read_json_records
from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.rows import list_pages
from kg_memory.falkor.servers import SCHEMES
from kg_memory.falkor.wire import Row
from kg_memory.memory.open import NamedServer
from kg_memory.text.identity import replace_unstorable

SOURCE, NOUN = "graphiti", "group"
GRAPH = "default_db"
"""The default name of Graphiti's graph."""
PAGE = 2_000
ENTITIES, EPISODES = (
    f"""
MATCH (n:{label})
WHERE id(n) >= $first AND id(n) < $end
RETURN n {{.*, name_embedding: NULL, labels: labels(n)}} AS row
ORDER BY id(n)
"""
    for label in ("Entity", "Episodic")
)
EDGES = """
MATCH (n:Entity)
WHERE id(n) >= $first AND id(n) < $end
WITH n
MATCH (n)-[r:RELATES_TO]->(m:Entity)
RETURN r {.*, fact_embedding: NULL, source_node_uuid: n.uuid, target_node_uuid: m.uuid} AS row
ORDER BY id(n), id(m), id(r)
"""
LAST = "MATCH (n) RETURN max(id(n)) AS last"
_TIMES = frozenset({"created_at", "valid_at", "invalid_at", "expired_at", "reference_time"})
_ZONE = re.compile(r"\[[^\]]*\]$")
_SPEAKER = re.compile(r"([^:\n]{1,60}): (.+)", re.DOTALL)


def read_graphiti(source: str | Path, group: str | None = None) -> Reading:
    """Return a function that yields the facts and messages of Graphiti, from a Neo4j dump or a database.

    Errors: `InputError`, `DatabaseError`.
    """
    url, _, name = str(source).partition("#")
    rows = list(_read_database(url, name or GRAPH) if url.startswith(SCHEMES) else _read_dump(Path(source)))
    if not rows:
        raise InputError("no entities or episodes of Graphiti found; check that the file is a dump of a Graphiti graph")
    return read_source(lambda: rows, group, SOURCE, NOUN)


def _read_database(url: str, name: str) -> Iterator[tuple[str, Row]]:
    """Yield (place, record) for all entities, episodes and edges of the graph *name* at *url*."""
    database = Database(NamedServer(url), allow_old=True)

    def read(key: str) -> list[tuple[str, Row]]:
        """Return all records of the graph with the database key *key*, each as (place for error messages, record)."""
        [row] = database.query(key, LAST, {}, write=False) or [{"last": None}]
        if row["last"] is None:
            raise InputError(
                f"there is no graph {name!r} on that server, or it is empty; pass Graphiti's graph as URL#NAME"
            )
        found = (
            answer["row"]
            for query in (ENTITIES, EPISODES, EDGES)
            for page in list_pages(row["last"], PAGE)
            for answer in database.query(key, query, page, write=False)
        )
        return [(f"the record {each.get('uuid')!r:.60}", _to_record(each)) for each in found]

    try:
        yield from read_snapshot(database, name, read)
    finally:
        database.close()


def _read_dump(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield (place, record) for the nodes and edges in a Neo4j dump, one on each line.

    The nodes must precede the edges.
    """
    uuids: dict[str, str] = {}
    for place, element in read_json_records(path):
        properties = element.get("properties") or {}
        if element.get("type") == "node":
            uuids[str(element.get("id"))] = str(properties.get("uuid"))
            labels = [str(label) for label in element.get("labels") or ()]
            if {"Entity", "Episodic"} & {*labels}:
                yield place, _to_record({**properties, "labels": labels})
        elif element.get("label") == "RELATES_TO":
            source, target = (uuids.get(str((element.get(end) or {}).get("id"))) for end in ("start", "end"))
            yield place, _to_record({**properties, "source_node_uuid": source, "target_node_uuid": target})


def _to_record(row: Row) -> Row:
    """Convert a node or an edge of Graphiti to the form of an export of Zep, which has the same kinds of records."""
    record = {name: _clean(name, value) for name, value in row.items()} | {"graph_uuid": row.get("group_id")}
    episodes = record.get("episodes")
    if isinstance(episodes, str):  # some databases of Graphiti keep lists as text
        record["episodes"] = [uuid for uuid in re.split(r"[,|]", episodes) if uuid]
    if "Episodic" not in row.get("labels", ()):
        return record
    spoken = _SPEAKER.fullmatch(str(record.get("content") or "").strip())
    if record.get("source", "message") == "message" and spoken and not _SPEAKER.search(spoken[2]):
        record |= {"role_name": " ".join(spoken[1].split()), "content": spoken[2]}
    return {**record, "name": None, "reference_time": record.get("valid_at")}


def _clean(name: str, value: Any) -> Any:
    """Replace characters that the database cannot store in *value*, the value of the field *name*."""
    if not isinstance(value, str):
        return value
    return replace_unstorable(_ZONE.sub("", value) if name in _TIMES else value)
