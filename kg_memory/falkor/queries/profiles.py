"""Queries of a profile: the states that hold of an entity, as few columns as it needs, and what is to be said of some.

`STATES` has a row for each belief. The others have rows for the few facts that need one: told more than once or by
weak quotes, or disputed. They are read side by side.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

_ENTITY = """CALL {
  MATCH (:Alias {key: $alias})-[:NAMES]->(e:Entity)
  RETURN e
  UNION
  MATCH (e:Entity {id: $about})
  RETURN e
}
"""
# Without the WITH, and with a label at the end of the relation, the plan would begin at all nodes.
_FACTS = f"""{_ENTITY}WITH e
MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
WITH DISTINCT f
"""

STATES = f"""{_ENTITY}CALL {{
  WITH e
  MATCH (e)-[:SUBJECT_OF]->(f:Fact)
  RETURN f, true AS own
  UNION ALL
  WITH e
  MATCH (f:Fact)-[:OBJECT_IS]->(e)
  RETURN f, false AS own
}}
WITH f, max(own) AS own
WHERE coalesce(f.kind, 'state') = 'state'
MATCH (f)-[:HELD]->(b:Belief)
WHERE {part.BELIEVED}
RETURN f.id AS id, own, f.predicate AS predicate, f.sentence AS sentence, f.confidence AS confidence,
  b.valid_at AS valid_at, b.invalid_at AS invalid_at, b.known_from AS known_from,
  coalesce(b.precision, 'instant') AS precision, coalesce(b.end_precision, 'instant') AS end_precision,
  outdegree(f, 'RESTS_ON') > 0 AS rests
"""
"""The states that hold; a fact about the entity alone is stored with itself as its object, and is its `own`."""

STATEMENTS = f"""{_FACTS}MATCH (x)-[st:STATES]->(f)
WHERE x.created_at <= $believed_at
WITH f, sum(CASE WHEN {part.UNEXPIRED} THEN 1 ELSE 0 END) AS statements,
  sum(CASE WHEN {part.UNEXPIRED} AND st.weak = true THEN 1 ELSE 0 END) AS weak
WHERE statements <> 1 OR weak > 0
RETURN f.id AS id, statements, weak
"""
"""The number of statements of facts in episodes that have not expired; a fact without a row is stated once."""

RIVALS = f"""{_FACTS}MATCH (f)-[:JUDGED]->(v)
WHERE v.ruling IN ['supersedes', 'waiting']
WITH DISTINCT f
MATCH (f)-[h:HELD]->(b:Belief)
WHERE {part.BELIEVED}
WITH f, b
MATCH (f)-[:JUDGED]->(v)<-[:JUDGED]-(other)-[:HELD]->(c)
WHERE other.id <> f.id AND v.created_at < b.expired_at AND v.ruling IN ['supersedes', 'waiting']
  AND c.created_at < b.expired_at AND c.expired_at > b.created_at
RETURN f.id AS id, b.valid_at AS valid_at, collect({{id: other.id, ruling: v.ruling, known_from: c.known_from,
  invalid_at: c.invalid_at, stays: c.expired_at >= b.expired_at}}) AS linked
"""
"""The facts that verdicts link to those that hold, as `fragments.TELL_FACTS` has them."""
