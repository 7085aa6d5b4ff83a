"""The ingestion step `link`: relates new entities to entities with names of similar meaning (`note_linking`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from kg_memory.errors import DatabaseError
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.state import Draft, Update
from kg_memory.runtime.effects import fetch, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings

AT_ONCE = 10
"""The number of entities for which one query searches; the time limit is checked between queries."""
UNSET = 1.0
"""The similarity threshold if none is set. Opening a memory sets one that suits its embedding model."""
NEAR_ENTITIES = """
UNWIND $ids AS id
MATCH (n:Entity {id: id})
MATCH (n)-[:MEANS]->(v)
WITH n, v
CALL db.idx.vector.queryNodes('Meaning', 'embedding', $limit, v.embedding) YIELD node AS near, score AS distance
WITH n, near, 1.0 - distance AS similarity
WHERE similarity >= $threshold
MATCH (other)-[:MEANS]->(near)
WHERE other.id <> n.id
RETURN n.id AS one, other.id AS other, similarity
"""

LINK_ENTITIES = """
UNWIND $links AS row
MATCH (a:Entity {id: row.one})
MATCH (b:Entity {id: row.other})
MERGE (a)-[s:SIMILAR_TO]->(b)
SET s.similarity = row.similarity
RETURN count(s) AS n
"""
"""Stores one relation for each pair; queries follow it in both directions."""
log = logging.getLogger("kg_memory.ingestion")


def link(draft: Draft, settings: Settings, clock: Callable[[], float] = time.monotonic) -> Flow[Update]:
    """Store relations from the new or renamed entities of a message to entities with names of similar meaning."""
    new = [entity.id for entity in draft.entities if entity.is_new or entity.renamed]
    end, linked = clock() + settings.note_link_seconds, 0
    for first in range(0, len(new), AT_ONCE):
        left = len(new) - first
        if clock() >= end:
            log.warning("%d entities were not linked in time; raise note_link_seconds", left)
            return {"linked": linked, "unlinked": left}
        try:
            linked += yield from _link_similar(new[first : first + AT_ONCE], settings)
        except DatabaseError as error:
            log.warning("%d entities were not linked: %s", left, describe_error(error))
            return {"linked": linked, "unlinked": left}
    return {"linked": linked, "unlinked": 0}


def _link_similar(ids: list[str], settings: Settings) -> Flow[int]:
    threshold = UNSET if settings.note_link_threshold is None else settings.note_link_threshold
    near = yield from fetch(NEAR_ENTITIES, ids=ids, limit=settings.note_link_most + 1, threshold=threshold)
    return int((yield from write(LINK_ENTITIES, links=_unordered_pairs(near)))[0]["n"]) if near else 0


def _unordered_pairs(near: Iterable[Row]) -> list[JSON]:
    pairs = {tuple(sorted((row["one"], row["other"]))): row["similarity"] for row in near}
    return [{"one": one, "other": two, "similarity": similarity} for (one, two), similarity in sorted(pairs.items())]
