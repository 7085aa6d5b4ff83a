"""The query for the stored facts that new ones are compared with.

Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
"""

from __future__ import annotations

from kg_memory.falkor.queries.facts import HISTORY_MAP, tell_history
from kg_memory.temporal.interval import OPEN_START

_FACTS_OF_PAIRS = """
UNWIND $pairs AS row
MATCH (s:Entity {id: row.subject})-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity {id: row.object})
WITH row, f, vec.cosineDistance(f.embedding, vecf32(row.embedding)) AS distance
WHERE f.predicate = row.predicate OR coalesce(f.family = row.family, false) OR distance <= $farthest
WITH DISTINCT row.new AS new, f, distance
ORDER BY f.said_at DESC, f.id
WITH new, collect({f: f, distance: distance})[0..$limit / 2 + 1] AS found
UNWIND found AS one
RETURN new, one.f AS f, one.distance AS distance
"""

_RIVALS = f"""
UNWIND $facts AS row
WITH row.new AS new, row.ends AS ends, row.predicate AS predicate, row.family AS family, row.most AS most,
  CASE WHEN row.one_at_a_time THEN row.begin END AS begin, vecf32(row.embedding) AS vector
UNWIND ends AS id
MATCH (n:Entity {{id: id}})
WITH new, n, id, ends, predicate, family, most, begin, vector
MATCH (n)-[r:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH new, f, most,
  CASE WHEN f.predicate = predicate AND type(r) = 'SUBJECT_OF' AND id = ends[0] THEN begin END AS begin,
  coalesce(f.family = family, false) AS akin, vec.cosineDistance(f.embedding, vector) AS distance
WHERE begin IS NOT NULL OR akin OR distance <= $farthest
WITH DISTINCT new, f, most, begin, distance
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WHERE begin IS NOT NULL
WITH new, f, most, distance, CASE WHEN st.valid_at = {OPEN_START} THEN x.at ELSE st.valid_at END - begin AS away
WITH new, f, most, distance, CASE WHEN away IS NULL THEN 0 WHEN away > 0 THEN 1 ELSE -1 END AS side,
  min(coalesce(abs(away) * 1.0, distance)) AS far
ORDER BY far, f.id
WITH new, side, most, collect({{f: f, distance: distance}}) AS found
UNWIND found[0..CASE WHEN side = 0 THEN $nearest ELSE most END] AS one
RETURN new, one.f AS f, one.distance AS distance
"""
"""The subject's facts of a single-valued predicate that begin nearest before and after; others nearest in meaning."""

_NEAR_FACTS = """
UNWIND $facts AS row
WITH row WHERE $farthest_anywhere > 0
CALL db.idx.vector.queryNodes('Fact', 'embedding', $limit, vecf32(row.embedding)) YIELD node AS f, score AS distance
WITH row, f, distance
WHERE distance <= $farthest_anywhere
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity)
WITH row, f, distance, sum(CASE WHEN n.id IN row.ends THEN 1 ELSE 0 END) AS shared
WHERE shared = 0
WITH row, f, distance ORDER BY distance, f.id
WITH row.new AS new, collect({f: f, distance: distance})[0..$nearest] AS found
UNWIND found AS one RETURN new, one.f AS f, one.distance AS distance
"""

_REVISIONS = """
UNWIND $ends AS id MATCH (n:Entity {id: id})
RETURN 'revision' AS kind, NULL AS new, {id: n.id, revision: coalesce(n.revision, 0)} AS value
"""

_SAME_FACTS = """
UNWIND $facts AS row MATCH (f:Fact {id: row.id}) RETURN row.new AS new, f, 0.0 AS distance
"""

_CANDIDATE = f"""{tell_history("new, distance, ")}MATCH (s)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o)
WITH new, f, distance, s, verdicts, statements, beliefs,
  collect(CASE WHEN o.id <> s.id THEN o.name END) AS objects,
  collect(CASE WHEN o.id <> s.id THEN o.id END) AS object_ids
RETURN 'candidate' AS kind, new, f {{.id, .kind, .predicate, .sentence, subject: s.name, subject_id: s.id,
  distance: distance, revision: coalesce(s.revision, 0), stated_at: coalesce(f.told_at, f.said_at),
  stated_by: coalesce(f.told_by, ''), only_ends: coalesce(f.told_end, false),
  objects: objects, object_ids: object_ids, history: {HISTORY_MAP}}} AS value
"""

RELATED_FACTS = f"""{_REVISIONS}UNION ALL
CALL {{{_SAME_FACTS}UNION{_FACTS_OF_PAIRS}UNION{_RIVALS}UNION{_NEAR_FACTS}}}
WITH new, f, min(distance) AS distance
{_CANDIDATE}"""
"""The stored facts to compare new ones with: the same, those of the same two entities, those that share an end in any
role, and the nearest in meaning that share none: an entity may have another name.

Rows of `kind` ``candidate`` are those facts, each with the row of `HISTORY` as its `history`. A ``revision`` is how
often facts about an entity among the ends were changed.
"""
