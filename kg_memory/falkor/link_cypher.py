"""The queries about links between entities that have names of near meaning (C50)."""

from __future__ import annotations

from kg_memory.falkor import fragments as part

NEAR = """
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

LINK = """
UNWIND $links AS row
MATCH (a:Entity {id: row.one})
MATCH (b:Entity {id: row.other})
MERGE (a)-[s:SIMILAR_TO]->(b)
SET s.similarity = row.similarity
RETURN count(s) AS n
"""
"""One relation a pair, which is followed both ways."""

SIMILAR = f"""
MATCH (:Alias {{key: $alias}})-[:NAMES]->(n:Entity)
MATCH (n)-[s:SIMILAR_TO]-(e:Entity)
WITH e, max(s.similarity) AS similarity
ORDER BY similarity DESC, e.name, e.id LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity, similarity
"""
