"""The queries that find, of what is known, what new entities and facts may be or may have to do with.

Times are microseconds since the epoch; an open start is `temporal.OPEN_START`.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part
from kg_memory.falkor.belief_cypher import HISTORY_MAP, TOLD_HISTORY
from kg_memory.temporal.interval import OPEN_START

SIMILAR_ENTITIES = f"""
MATCH (e:Meta {{id: 'schema'}})
RETURN -1 AS new, e {{.model, .dimension}} AS entity, 0.0 AS score
UNION ALL
UNWIND $names AS row
MATCH (:Alias {{key: row.alias}})-[:NAMES]->(e:Entity)
RETURN row.new AS new, {part.KNOWN_MAP} AS entity, 1.0 AS score
UNION ALL
UNWIND $names AS row
CALL {{
  WITH row
  MATCH (:Alias {{key: row.alias}})-[:NAMES]->(namesake:Entity)
  WHERE namesake.type = row.type
  RETURN count(namesake) AS namesakes
}}
WITH row
WHERE namesakes <> 1
CALL db.idx.vector.queryNodes('Meaning', 'embedding', $limit, vecf32(row.embedding)) YIELD node AS v, score AS distance
WITH row, v, 1.0 - distance AS score
WHERE score >= $threshold
MATCH (e)-[:MEANS]->(v)
RETURN row.new AS new, {part.KNOWN_MAP} AS entity, score
UNION ALL
UNWIND $names AS row
OPTIONAL MATCH (known:Alias {{key: row.alias}})
WITH row, known
WHERE known IS NULL
UNWIND row.terms AS term
WITH row.new AS new, term
MATCH (t:Term {{s: term}})-[:IN_ENTITY]->(e:Entity)
WITH new, e, count(t) AS hits
ORDER BY hits DESC, e.id
WITH new, collect(e)[0..$limit] AS found
UNWIND found AS e
RETURN new, {part.KNOWN_MAP} AS entity, 0.0 AS score
"""
"""The known entities that new ones may be: by their names, by what these mean, and by the words of names and summaries.

What a name means is not looked up where just one of the same type has it: that is who it is, see `resolve.certain`. The
words are for names that nobody has: those of somebody well known are in the summaries of all around him. With the
entities, as `new` -1, which embedding model made the vectors, and of which length they are.
"""

_FACTS_OF_PAIRS = """
UNWIND $pairs AS row
MATCH (s:Entity {id: row.subject})-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity {id: row.object})
WITH row, f
ORDER BY f.said_at DESC, f.id
WITH row.new AS new, collect(DISTINCT f)[0..$limit] AS found
UNWIND found AS f
RETURN new, f
"""

# A vector is made, and compared as a part of its row, once a fact and not once a fact of a hub.
_GIVEN = """UNWIND $facts AS row
WITH row.new AS new, row.subject AS subject, row.objects AS objects, row.predicate AS predicate, row.family AS family,
  CASE WHEN row.one_at_a_time THEN row.begin END AS begin, vecf32(row.embedding) AS vector
"""
_NEAREST = f"""
WITH new, f, begin, f.predicate = predicate AS same, coalesce(f.family = family, false) AS akin,
  vec.cosineDistance(f.embedding, vector) AS distance
WHERE same OR akin OR distance < $farthest
WITH DISTINCT new, f, CASE WHEN same THEN begin END AS begin, distance
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WHERE begin IS NOT NULL
WITH new, f, distance, CASE WHEN st.valid_at = {OPEN_START} THEN x.at ELSE st.valid_at END - begin AS away
WITH new, f, CASE WHEN away IS NULL THEN 0 WHEN away > 0 THEN 1 ELSE -1 END AS side,
  min(coalesce(abs(away) * 1.0, distance)) AS far
ORDER BY far, f.id
WITH new, side, collect(f)[0..CASE WHEN side = 0 THEN $limit ELSE $limit / 2 + 1 END] AS found
UNWIND found AS f
RETURN new, f
"""
"""Of a predicate that holds for one at a time, those that begin nearest before and nearest after: these are what ends
what. And those of the same predicate or family, or near in meaning, the nearest first.
"""

_RIVALS_BY_SUBJECT = f"""
{_GIVEN}MATCH (s:Entity {{id: subject}})-[:SUBJECT_OF]->(f:Fact){_NEAREST}"""

_RIVALS_BY_OBJECT = f"""
{_GIVEN}UNWIND objects AS object
MATCH (o:Entity {{id: object}})
WITH new, o, predicate, family, begin, vector
MATCH (f:Fact)-[:OBJECT_IS]->(o){_NEAREST}"""

_REVISIONS = """
UNWIND $ends AS id
MATCH (n:Entity {id: id})
RETURN -1 AS new, {id: n.id, revision: coalesce(n.revision, 0)} AS fact, 0 AS told_at, '' AS told_by,
  false AS told_end, 0 AS valid_at, 0 AS invalid_at, [] AS beliefs, [] AS objects, [] AS object_ids
"""

_THE_SAME = """
UNWIND $facts AS row
MATCH (f:Fact {id: row.id})
RETURN row.new AS new, f
"""

_HISTORIES = f"""
UNWIND $facts AS row
MATCH (f:Fact {{id: row.id}})
WITH DISTINCT f
{TOLD_HISTORY}RETURN -2 AS new, {HISTORY_MAP} AS fact, 0 AS told_at, '' AS told_by, false AS told_end, 0 AS valid_at,
  0 AS invalid_at, [] AS beliefs, [] AS objects, [] AS object_ids
"""

RELATED_FACTS = f"""{_REVISIONS}UNION ALL{_HISTORIES}UNION ALL
CALL {{{_THE_SAME}UNION{_FACTS_OF_PAIRS}UNION{_RIVALS_BY_SUBJECT}UNION{_RIVALS_BY_OBJECT}}}
WITH new, f
{part.TOLD_WITH_BELIEFS}"""
"""The known facts that new ones may have to do with: the same, those of the same two entities, rivals of either end.

With them, as `new` -1, how often the facts about the ends were changed before, and as -2 what `HISTORY` tells of those
that are said in the same words.
"""
