"""The queries that walk the graph: named constants with parameters only; no embedding ever comes back.

Ends of relations that lead to one kind of node only bear no label: without it, a walk costs the server half.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part

_ENDS = """
MATCH (s)-[:SUBJECT_OF]->(d)
MATCH (d)-[:OBJECT_IS]->(o)
RETURN d.id AS id, coalesce(d.edge_type, 'semantic') AS type, s.id AS subject, collect(DISTINCT o.id) AS objects
"""

# Sorted for each entity by itself, where a limit keeps it short: all at once takes three times as long at a hub. What
# holds is found in that order; sorting it again would cost a third.
FACTS_NEAR = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
WHERE outdegree(e, 'SUBJECT_OF') + indegree(e, 'OBJECT_IS') <= $hub
WITH e
CALL {{
  WITH e
  MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(d)
  WITH d LIMIT $most
  WITH d ORDER BY d.said_at DESC, d.id LIMIT $depth
  MATCH (d)-[h:HELD|PROPOSED]->(b)
  WHERE {part.HOLDS}
  WITH DISTINCT d LIMIT $limit
  RETURN d
}}
WITH DISTINCT d{_ENDS}"""
"""One step of a walk: the latest `$limit` facts that hold of each entity that has `$hub` at most, with their entities.

They are among its latest `$depth` facts, and of an entity with more than `$most` facts among any `$most` of them.
"""

FACT_LINKS = f"""
UNWIND $ids AS id
MATCH (d:Fact {{id: id}})
WITH DISTINCT d{_ENDS}"""

SPEAKERS = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
RETURN id, d.speaker AS speaker
"""

COMMUNITIES_OF = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
MATCH (d:Community)-[:HAS_MEMBER]->(e)
RETURN d.id AS id, collect(e.id) AS entities
"""

MENTIONING = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
UNWIND $entities AS entity
MATCH (e:Entity {id: entity})
WITH d, e
MATCH (d)-[:MENTIONS]->(e)
RETURN DISTINCT d.id AS id
"""
