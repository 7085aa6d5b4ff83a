"""The queries about communities: named constants with parameters only.

Facts are read in pages of internal ids, the one order in which the database finds them without sorting them all.
"""

from __future__ import annotations

from kg_memory.falkor import spent_cypher as spent
from kg_memory.temporal import OPEN_END

_CURRENT = f"b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now"
"""That the belief ``b`` is held, and so ``$now``."""

LAST_FACT = """
MATCH (f:Fact)
RETURN max(id(f)) AS last
"""

LAST_ENTITY = """
MATCH (e:Entity)
RETURN max(id(e)) AS last
"""

FACTS = f"""
MATCH (f:Fact)
WHERE id(f) >= $first AND id(f) < $end
WITH f
MATCH (f)-[:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
RETURN f.id AS id, s.id AS subject, o.id AS object
"""
"""The facts of a page that are so now, one row an object and belief."""

ENTITIES = """
MATCH (e:Entity)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.id AS id, e.created_at AS created_at
"""

STORED = """
MATCH (m:Meta {id: 'schema'})
OPTIONAL MATCH (c:Community)
RETURN coalesce(m.communities, 0) AS revision, collect(c {.id, .fingerprint}) AS stored
"""
"""All communities as they are stored, and how often they were written."""

MEMBERS = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
RETURN e.name AS name, e.type AS type, e.summary AS summary
"""

FACTS_AMONG = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})-[:SUBJECT_OF]->(f:Fact)
WITH f
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH f, collect(o.id) AS objects
WHERE all(one IN objects WHERE one IN $ids)
WITH f
MATCH (f)-[:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f, max(b.said_at) AS said_at
ORDER BY said_at DESC, f.id LIMIT $limit
RETURN f.sentence AS sentence
"""
"""The latest facts that some entities have among themselves now."""

SAVE = (
    spent.ADD
    + """
UNWIND $members AS id
OPTIONAL MATCH (e:Entity {id: id})
WITH sum(CASE WHEN e IS NULL THEN 1 ELSE 0 END) AS gone
MATCH (m:Meta {id: 'schema'})
WHERE gone = 0 AND coalesce(m.communities, 0) = $revision
SET m.communities = $revision + 1
WITH m
CALL {
  WITH m
  UNWIND $removed AS id
  MATCH (c:Community {id: id})
  DELETE c
}
CALL {
  WITH m
  UNWIND $communities AS row
  MERGE (c:Community {id: row.id})
  SET c.name = row.name, c.summary = row.summary, c.fingerprint = row.fingerprint, c.n = row.n,
    c.embedding = vecf32(row.embedding)
}
CALL {
  WITH m
  UNWIND $communities AS row
  MATCH (c:Community {id: row.id})-[old:HAS_MEMBER]->(:Entity)
  DELETE old
}
CALL {
  WITH m
  UNWIND $communities AS row
  MATCH (c:Community {id: row.id})
  UNWIND row.members AS id
  MATCH (e:Entity {id: id})
  MERGE (c)-[:HAS_MEMBER]->(e)
}
CALL {
  WITH m
  UNWIND $communities AS row
  MATCH (c:Community {id: row.id})
  WITH c
  MATCH (:Term)-[old:IN_COMMUNITY]->(c)
  DELETE old
}
CALL {
  WITH m
  UNWIND $communities AS row
  MATCH (c:Community {id: row.id})
  UNWIND row.terms AS term
  MERGE (t:Term {s: term.term})
  MERGE (t)-[p:IN_COMMUNITY]->(c)
  SET p.f = term.f
}
RETURN m.communities AS revision
"""
)
"""Replace what changed, unless others wrote communities since they were read, or a member is gone: then no row."""

COMMUNITIES = """
MATCH (c:Community)
WITH c, outdegree(c, 'HAS_MEMBER') AS size
ORDER BY size DESC, c.name, c.id SKIP $skip LIMIT $limit
MATCH (c)-[:HAS_MEMBER]->(e:Entity)
WITH c, size, e ORDER BY e.name, e.id
RETURN c {.id, .name, .summary} AS community, size, collect(e.name) AS members
ORDER BY size DESC, community.name, community.id
"""
"""A page of all, largest first, with the names of their members."""
