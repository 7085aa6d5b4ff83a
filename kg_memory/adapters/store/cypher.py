"""All Cypher queries of `KGStore` on its items, as named constants; values are passed as parameters only.

The graph: ``(:Item)-[:IN]->(:Namespace)`` and, for each embedded text, ``(:Item)-[:HAS]->(:Vector)``. A namespace has
the hashed keys of itself and all its ancestors in `prefixes`. An item has its key and value as JSON text, the `marks`
of its fields (see `codec.marks`), and with a `ttl` (microseconds) also `expires_at`.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

ITEM = """
i.id AS id, i.key AS key, i.value AS value, i.created_at AS created_at, i.updated_at AS updated_at, i.ttl AS ttl
""".strip()
FITTING = """
WHERE coalesce(i.expires_at, $alive) >= $alive AND (size($marks) = 0 OR all(mark IN $marks WHERE mark IN i.marks))
""".strip()
# WITH n, i keeps the query planner from starting with a scan of all items.
UNDER = f"""
MATCH (n:Namespace)
WHERE $prefix IN n.prefixes
MATCH (n)<-[:IN]-(i:Item)
WITH n, i
{FITTING}
""".strip()
MARKED = f"""
MATCH (i:Item)
WHERE $mark IN i.marks
MATCH (i)-[:IN]->(n:Namespace)
WITH n, i
{FITTING} AND $prefix IN n.prefixes
""".strip()
PAGE = f"""
  AND (NOT $unranked OR i.vectors = 0)
WITH n, i
ORDER BY i.updated_at DESC, i.id
SKIP $skip
LIMIT $limit
RETURN {ITEM}, n.path AS path
"""
# Ids are joined to one text: as thousands of rows, they take the client ten times as long.
JOINED = """
WITH collect(i.id) AS ids
RETURN string.join(ids, ' ') AS ids
""".strip()
IDS = f"""
  AND (NOT $unranked OR i.vectors = 0)
WITH i
ORDER BY i.updated_at DESC, i.id
{JOINED}
"""
NEAREST_IDS = f"""
MATCH (i)-[:HAS]->(v)
WITH i, min(vec.cosineDistance(v.embedding, vecf32($vector))) AS distance
ORDER BY distance, i.updated_at DESC, i.id
{JOINED}
"""
COMPARISON = """
MATCH (i)-[:HAS]->(v)
WITH i, vec.cosineDistance(v.embedding, vecf32($vector)) AS distance
ORDER BY distance, i.updated_at DESC, i.id
LIMIT $limit
RETURN i.id AS id, 1 - distance AS score
"""

GET = f"""{part.each("i:Item")}
WHERE coalesce(i.expires_at, $alive) >= $alive
RETURN {ITEM}
"""

LIST = f"{UNDER}{PAGE}"
LIST_MARKED = f"{MARKED}{PAGE}"
LIST_IDS = f"{UNDER}{IDS}"
LIST_IDS_MARKED = f"{MARKED}{IDS}"
RANK_IDS = f"{UNDER}{NEAREST_IDS}"
RANK_IDS_MARKED = f"{MARKED}{NEAREST_IDS}"
COMPARE = f"{UNDER}{COMPARISON}"
COMPARE_MARKED = f"{MARKED}{COMPARISON}"

# Values are joined by line ends, which JSON text does not contain.
VALUES = f"""{part.each("i:Item")}
WITH collect(i.id) AS ids, collect(i.value) AS values
RETURN string.join(ids, ' ') AS ids, string.join(values, '\n') AS values
"""

GET_PLACED = f"""{part.each("i:Item")}
MATCH (i)-[:IN]->(n)
RETURN {ITEM}, n.path AS path
"""

GET_RANKED = f"""{part.each("i:Item")}
MATCH (i)-[:IN]->(n)
MATCH (i)-[:HAS]->(v)
WITH i, n, min(vec.cosineDistance(v.embedding, vecf32($vector))) AS distance
RETURN {ITEM}, n.path AS path, 1 - distance AS score
"""

COUNT_MARKED = """
MATCH (i:Item)
WHERE $mark IN i.marks
WITH i
LIMIT $limit
RETURN count(i) AS n
"""

COUNT_VECTORS = """
MATCH (v:Vector)
RETURN count(v) AS n
"""

COUNT_VECTORS_UNDER = """
MATCH (n:Namespace)
WHERE $prefix IN n.prefixes
MATCH (n)<-[:IN]-(i:Item)
WITH sum(i.vectors) AS n
RETURN n
"""

NEAREST = f"""
CALL db.idx.vector.queryNodes('Vector', 'embedding', $limit, vecf32($vector)) YIELD node, score AS distance
MATCH (node)<-[:HAS]-(i:Item)-[:IN]->(n:Namespace)
WITH n, i, distance
{FITTING} AND $prefix IN n.prefixes
WITH i, distance
ORDER BY distance, i.updated_at DESC, i.id
RETURN i.id AS id, 1 - distance AS score
"""

NAMESPACES = """
MATCH (n:Namespace)
WHERE $prefix IN n.prefixes
RETURN n.path AS path
"""

NAMESPACES_ALIVE = """
MATCH (n:Namespace)
WHERE $prefix IN n.prefixes
MATCH (n)<-[:IN]-(i:Item)
WITH n, i
WHERE coalesce(i.expires_at, $alive) >= $alive
RETURN DISTINCT n.path AS path
"""

# size(labels(i)) > 0 is always true, but asking for the labels of a new node halves the time of a put at 50,000 items.
CHANGE = """
CALL { UNWIND $changed AS id MATCH (:Item {id: id})-[:HAS]->(v:Vector) DELETE v }
CALL { UNWIND $deleted AS id MATCH (i:Item {id: id}) DELETE i }
CALL {
  UNWIND $puts AS put
  MERGE (n:Namespace {id: put.namespace})
  ON CREATE SET n.path = put.path, n.prefixes = put.prefixes
  MERGE (i:Item {id: put.id})
  WITH put, n, i
  WHERE size(labels(i)) > 0
  SET i.key = put.key, i.created_at = coalesce(i.created_at, put.at), i.value = put.value,
    i.marks = put.marks, i.vectors = size(put.vectors), i.ttl = put.ttl, i.expires_at = put.at + put.ttl,
    i.updated_at = CASE WHEN i.updated_at >= put.at THEN i.updated_at + 1 ELSE put.at END
  MERGE (i)-[:IN]->(n)
  FOREACH (vector IN put.vectors | CREATE (i)-[:HAS]->(:Vector {embedding: vecf32(vector)}))
}
CALL { UNWIND $left AS id MATCH (n:Namespace {id: id}) WHERE NOT (n)<-[:IN]-(:Item) DELETE n }
"""

REFRESH = f"""{part.each("i:Item")}
SET i.expires_at = $now + i.ttl
"""

EXPIRED = """
MATCH (i:Item)
WHERE i.expires_at <= $now
RETURN i.id AS id
LIMIT 1
"""

SWEEP = """
MATCH (i:Item)
WHERE i.expires_at <= $now
WITH i
LIMIT $limit
MATCH (i)-[:IN]->(n:Namespace)
OPTIONAL MATCH (i)-[:HAS]->(v:Vector)
WITH collect(DISTINCT i) AS items, collect(DISTINCT n) AS namespaces, collect(v) AS vectors
FOREACH (v IN vectors | DELETE v)
FOREACH (i IN items | DELETE i)
WITH size(items) AS n, namespaces
UNWIND namespaces AS namespace
OPTIONAL MATCH (namespace)<-[:IN]-(other:Item)
WITH n, namespace, count(other) AS others
FOREACH (empty IN CASE WHEN others = 0 THEN [namespace] ELSE [] END | DELETE empty)
RETURN DISTINCT n
"""
