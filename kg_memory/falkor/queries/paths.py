"""The query for the links by which a path between two entities goes on."""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

LINKS = f"""
UNWIND $ids AS id
MATCH (n:Entity {{id: id}})-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH DISTINCT id, f
ORDER BY f.said_at DESC, f.id LIMIT $limit
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
WHERE e.id <> id
WITH id, f, collect(DISTINCT e.id) AS ends
ORDER BY f.said_at DESC, f.id, id
RETURN id, f.id AS fact, ends
"""
"""The facts of some entities that hold, the latest first, each with its other entities."""
