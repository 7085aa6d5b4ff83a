"""Database queries of a profile: the states that are true of an entity, and the facts that may contradict them."""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

# Without the WITH, and with a label at the end of the relation, the plan would begin at all nodes.
_FACTS = f"""{part.NAMED}WITH e
MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
WITH DISTINCT f
"""

STATES = rf"""{part.NAMED}CALL {{
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
MATCH (x)-[st:STATES]->(f)
WITH f, own, b, x, CASE WHEN x.created_at > $believed_at THEN null WHEN NOT ({part.UNEXPIRED}) THEN 0
  WHEN st.weak = true THEN 1 ELSE 2 END AS stated
WITH f, own, b, count(stated) AS told, count(CASE WHEN stated > 0 THEN 1 END) AS lasting,
  count(CASE WHEN stated = 1 THEN 1 END) AS weak,
  coalesce(max(CASE WHEN x.at = b.known_from THEN x.offset END), max(x.offset), 0) AS offset
WHERE told = 0 OR lasting > 0
RETURN string.join(collect(f.id), '\n') AS ids, string.join(collect(f.predicate), '\n') AS predicates,
  collect(f.sentence) AS sentences,
  string.join(collect(coalesce(b.precision, 'instant')), '\n') AS precisions,
  string.join(collect(coalesce(b.end_precision, 'instant')), '\n') AS end_precisions,
  toJSON(collect(coalesce(f.confidence, 1.0))) AS confidences, toJSON(collect([own, lasting, weak,
    b.valid_at, b.invalid_at, b.known_from, outdegree(f, 'RESTS_ON'), outdegree(f, 'JUDGED'), offset])) AS numbers
"""
"""The states that hold, in one row: reading a list of each value is many times faster than a row for each state.

A statement is null if its episode was saved later, 0 if that has expired, 1 if it is weak, and else 2. A fact about the
entity alone is stored with the entity as its object too, and is its `own`. The numbers of each fact are: whether it is
its own; its statements in unexpired episodes, and the weak ones of these; start and end of the belief, and since when
it is known; its premises; its verdicts; the UTC offset of the source. Without statements, all were saved after
``$believed_at``, as an import may do.
"""

RIVALS = f"""{_FACTS}MATCH (f)-[:JUDGED]->(v)
WHERE v.ruling IN {part.LINKING}
WITH DISTINCT f
MATCH (f)-[h:HELD]->(b:Belief)
WHERE {part.BELIEVED}
WITH f, b
MATCH (f)-[:JUDGED]->(v)<-[:JUDGED]-(other)-[:HELD]->(c)
RETURN f.id AS id, b.valid_at AS valid_at, collect({part.LINKED_FACT}) AS linked
"""
"""The facts that verdicts link to the states that hold, in the form of `fragments.TELL_FACTS`."""
