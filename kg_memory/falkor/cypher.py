"""The queries of ingestion, and of reading without a question: named constants with parameters only.

Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
Every entity and fact comes back as a map, never with its embedding.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part
from kg_memory.temporal import OPEN_END, OPEN_START

NEIGHBOURS = """
MATCH (e:Episode {thread_key: $thread_key})
WHERE e.id <> $id AND e.at <= $at
WITH e ORDER BY e.at DESC, e.created_at DESC LIMIT $limit
RETURN -1 AS side, e.id AS id, e.speaker AS speaker, e.at AS at, left(e.content, $length) AS content
UNION ALL
MATCH (e:Episode {thread_key: $thread_key})
WHERE e.id <> $id AND e.at > $at
WITH e ORDER BY e.at, e.created_at LIMIT 2
RETURN 1 AS side, e.id AS id, e.speaker AS speaker, e.at AS at, left(e.content, $length) AS content
"""

SAVE_EPISODE = """
UNWIND $around AS id
OPTIONAL MATCH (d:Episode {id: id})
WITH sum(CASE WHEN d IS NULL THEN 1 ELSE 0 END) AS gone
MATCH (m:Meta {id: 'schema'})
WHERE gone = 0
MERGE (e:Episode {id: $episode.id})
ON CREATE SET e = $episode
WITH m, e, e.status = 'new' AS new
CALL {
  WITH e, new
  UNWIND CASE WHEN new THEN $lengths ELSE [] END AS row
  MATCH (d:Episode {id: row.id})
  SET d.n = coalesce(d.n, 0) + row.n
}
CALL {
  WITH e, new
  UNWIND CASE WHEN new THEN $postings ELSE [] END AS row
  MERGE (t:Term {s: row.term})
  WITH t, row
  UNWIND row.in AS place
  MATCH (d:Episode {id: place.id})
  MERGE (t)-[p:IN_EPISODE]->(d)
  ON CREATE SET p.f = place.f
  ON MATCH SET p.f = p.f + place.f
}
CALL {
  WITH e, new
  MATCH (p:Episode {thread_key: e.thread_key})
  WHERE new AND p.id <> e.id AND p.at <= e.at
  WITH e, p ORDER BY p.at DESC, p.created_at DESC LIMIT 1
  MERGE (p)-[:NEXT]->(e)
}
CALL {
  WITH e, new
  MATCH (n:Episode {thread_key: e.thread_key})
  WHERE new AND n.at > e.at
  WITH e, n ORDER BY n.at, n.created_at LIMIT 1
  OPTIONAL MATCH (:Episode)-[old:NEXT]->(n)
  DELETE old
  WITH DISTINCT e, n
  MERGE (e)-[:NEXT]->(n)
}
SET e.status = CASE WHEN new THEN 'saved' ELSE e.status END
RETURN new, e.status AS status, e.content AS content, e.kind AS kind, e.at AS at, e.speaker AS speaker,
  e.created_at AS created_at, e.thread AS thread, e.thread_key AS thread_key, e.source AS source, e.trust AS trust,
  coalesce(e.offset, 0) AS offset, coalesce(m.forgotten, 0) AS forgotten
"""
"""Save an episode, with how often something was forgotten so far; no row if one of those around it is gone."""

SIMILAR_ENTITIES = f"""
UNWIND $names AS row
MATCH (:Alias {{key: row.alias}})-[:NAMES]->(e:Entity)
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, 1.0 AS score
UNION ALL
UNWIND $names AS row
CALL db.idx.vector.queryNodes('Entity', 'embedding', $limit, vecf32(row.embedding)) YIELD node AS e, score AS distance
WITH row, e, 1.0 - distance AS score
WHERE score >= $threshold
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, score
UNION ALL
UNWIND $names AS row
UNWIND row.terms AS term
MATCH (t:Term {{s: term}})-[:IN_ENTITY]->(e:Entity)
WITH row, e, count(t) AS hits
ORDER BY hits DESC
WITH row, collect(e)[0..$limit] AS found
UNWIND found AS e
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, 0.0 AS score
"""
"""The known entities that new ones may be: by their names, by what these mean, and by the words in them."""

_FACTS_OF_PAIRS = f"""
UNWIND $pairs AS row
MATCH (s:Entity {{id: row.subject}})-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity {{id: row.object}})
WITH row, f
ORDER BY f.said_at DESC
WITH row.new AS new, collect(DISTINCT f)[0..$limit] AS found
UNWIND found AS f
{part.TOLD_WITH_BELIEFS}"""

_NEAREST = f"""
WITH DISTINCT row, f, f.predicate = row.predicate AS same, coalesce(f.family = row.family, false) AS akin,
  vec.cosineDistance(f.embedding, vecf32(row.embedding)) AS distance
WHERE same OR akin OR distance < $farthest
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WHERE same AND row.one_at_a_time
WITH row, f, distance, CASE WHEN st.valid_at = {OPEN_START} THEN x.at ELSE st.valid_at END - row.begin AS away
WITH row.new AS new, f, CASE WHEN away IS NULL THEN 0 WHEN away > 0 THEN 1 ELSE -1 END AS side,
  min(coalesce(abs(away) * 1.0, distance)) AS far
ORDER BY far, f.id
WITH new, side, collect(f)[0..CASE WHEN side = 0 THEN $limit ELSE $limit / 2 + 1 END] AS found
UNWIND found AS f
WITH DISTINCT new, f
{part.TOLD_WITH_BELIEFS}"""
"""Of a predicate that holds for one at a time, those that begin nearest before and nearest after: these are what ends
what. And those of the same predicate or family, or near in meaning, the nearest first.
"""

_RIVALS_BY_SUBJECT = f"""
UNWIND $facts AS row
MATCH (s:Entity {{id: row.subject}})-[:SUBJECT_OF]->(f:Fact){_NEAREST}"""

_RIVALS_BY_OBJECT = f"""
UNWIND $facts AS row
UNWIND row.objects AS object
MATCH (o:Entity {{id: object}})
WITH row, o
MATCH (f:Fact)-[:OBJECT_IS]->(o){_NEAREST}"""

RELATED_FACTS = f"{_FACTS_OF_PAIRS}UNION ALL{_RIVALS_BY_SUBJECT}UNION ALL{_RIVALS_BY_OBJECT}"
"""The known facts that new ones may have to do with: of the same two entities, and the rivals of either end."""

REVISIONS = """
UNWIND $ids AS id
MATCH (n:Entity {id: id})
RETURN n.id AS id, coalesce(n.revision, 0) AS revision
"""
"""How often the facts about some entities were changed."""

SAVE = (
    """
UNWIND $based_on AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN coalesce(n.revision, 0) = row.revision THEN 0 ELSE 1 END) AS changed
MATCH (m:Meta {id: 'schema'})
MATCH (e:Episode {id: $episode})
WHERE e.status <> 'done' AND changed = 0 AND coalesce(m.forgotten, 0) = $forgotten
SET e.status = 'done', e.embedding = vecf32($embedding)
WITH e
CALL {
  WITH e
  UNWIND $entities AS row
  MERGE (n:Entity {key: row.key})
  ON CREATE SET n.id = row.id, n.name = row.name, n.type = row.type, n.aliases = [], n.summary = '',
    n.first_seen = $at, n.last_seen = $at, n.created_at = $now, n.n = 0
  SET n.aliases = n.aliases + [alias IN row.aliases WHERE NOT alias IN n.aliases],
    n.first_seen = CASE WHEN n.first_seen > $at THEN $at ELSE n.first_seen END,
    n.last_seen = CASE WHEN n.last_seen < $at THEN $at ELSE n.last_seen END
  MERGE (e)-[:MENTIONS]->(n)
  WITH n, row
  UNWIND row.alias_keys AS alias
  MERGE (a:Alias {key: alias})
  MERGE (a)-[:NAMES]->(n)
}
CALL {
  WITH e
  UNWIND $named AS row
  MATCH (n:Entity {key: row.key})
  SET n.name = row.name, n.embedding = vecf32(row.embedding)
}
CALL {
  WITH e
  UNWIND $entity_terms AS row
  MATCH (n:Entity {key: row.key})
  MERGE (t:Term {s: row.term})
  MERGE (t)-[p:IN_ENTITY]->(n)
  ON CREATE SET p.f = row.f, n.n = n.n + row.f
}
CALL {
  WITH e
  UNWIND $facts AS row
  MATCH (s:Entity {key: row.subject})
  MERGE (f:Fact {id: row.id})
  ON CREATE SET f.predicate = row.predicate, f.wording = row.wording, f.family = row.family,
    f.sentence = row.sentence, f.confidence = row.confidence, f.edge_type = row.edge_type,
    f.embedding = vecf32(row.embedding), f.created_at = $now, f.said_at = $at, f.n = row.n,
    f.told_at = $at, f.told_by = e.id, f.told_end = row.told_end
  SET f.confidence = CASE WHEN f.confidence < row.confidence THEN row.confidence ELSE f.confidence END
  MERGE (s)-[:SUBJECT_OF]->(f)
  WITH f, row
  UNWIND row.objects AS key
  MATCH (o:Entity {key: key})
  MERGE (f)-[:OBJECT_IS]->(o)
}
CALL {
  WITH e
  UNWIND $based_on AS row
  MATCH (n:Entity {id: row.id})
  SET n.revision = coalesce(n.revision, 0) + 1
}
CALL {
  WITH e
  UNWIND $retold AS row
  MATCH (f:Fact {id: row.id})
  OPTIONAL MATCH (:Term)-[old:IN_FACT]->(f)
  DELETE old
  WITH DISTINCT f, row
  SET f.predicate = row.predicate, f.wording = row.wording, f.family = row.family, f.sentence = row.sentence,
    f.edge_type = row.edge_type, f.embedding = vecf32(row.embedding), f.n = row.n,
    f.told_at = $at, f.told_by = $episode, f.told_end = row.told_end
}
CALL {
  WITH e
  UNWIND $fact_terms AS row
  MATCH (f:Fact {id: row.id})
  MERGE (t:Term {s: row.term})
  MERGE (t)-[p:IN_FACT]->(f)
  ON CREATE SET p.f = row.f
}
CALL {
  WITH e
  UNWIND $statements AS row
  MATCH (f:Fact {id: row.fact})
  MERGE (e)-[s:STATES {start: row.start, end: row.end, valid_at: row.valid_at, invalid_at: row.invalid_at}]->(f)
  ON CREATE SET s.latest = row.latest, s.precision = row.precision, s.confidence = row.confidence,
    s.corrects = row.corrects, s.refuted = row.refuted, s.end_precision = row.end_precision
  SET f.said_at = CASE WHEN f.said_at < $at THEN $at ELSE f.said_at END
}
CALL {
  WITH e
  UNWIND $verdicts AS row
  MATCH (f:Fact {id: row.new}), (other:Fact {id: row.known})
  MERGE (v:Verdict {id: row.id})
  ON CREATE SET v = row, v.created_at = $now, v.episode = e.id
  MERGE (f)-[:JUDGED]->(v)
  MERGE (other)-[:JUDGED]->(v)
}
CALL {
  WITH e
  UNWIND $rejudged AS row
  MATCH (v:Verdict {id: row.id})
  WHERE v.decided IS NULL
  SET v.new = row.new, v.known = row.known, v.kind = row.kind, v.ruling = row.ruling, v.confidence = row.confidence,
    v.holds = row.holds, v.reason = row.reason
}
CALL {
  WITH e
  UNWIND $reopened AS id
  MATCH (v:Verdict {id: id})
  SET v.ruling = 'waiting', v.refused = NULL
}
CALL {
  WITH e
  UNWIND $predicates AS row
  MERGE (p:Predicate {name: row.name})
  ON CREATE SET p = row
}
"""
    + part.REVISE
    + """
RETURN e.id AS id
"""
)

STATUS = """
MATCH (m:Meta {id: 'schema'})
MATCH (e:Episode {id: $id})
RETURN e.status AS status, coalesce(m.forgotten, 0) AS forgotten
"""

STALE_ENTITIES = f"""
MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $since OR e.stale < $before)
WITH e ORDER BY e.stale, e.key LIMIT $most
OPTIONAL MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now
WITH e, f, max(b.said_at) AS said_at, max(b.invalid_at) AS until
ORDER BY said_at DESC
WITH e, collect(CASE WHEN until > $now THEN f.sentence END)[0..$limit] AS facts,
  collect(CASE WHEN until <= $now THEN {{sentence: f.sentence, until: until}} END)[0..$past] AS past
RETURN e.key AS key, e.name AS name, e.type AS type, e.aliases AS aliases, e.summary AS summary,
  e.stale AS stale, facts, past
"""

SAVE_SUMMARIES = """
UNWIND $summaries AS row
MATCH (e:Entity {key: row.key})
WHERE e.stale = row.stale
SET e.stale = NULL
WITH row, e
WHERE row.changed
OPTIONAL MATCH (old:Term)-[p:IN_ENTITY]->(e)
WHERE NOT old.s IN [term IN row.terms | term.term]
SET e.summary = row.summary, e.n = row.n
DELETE p
WITH DISTINCT row, e
UNWIND row.terms AS term
MERGE (t:Term {s: term.term})
MERGE (t)-[q:IN_ENTITY]->(e)
SET q.f = term.f
"""

FACTS_ABOUT = f"""
MATCH (:Alias {{key: $alias}})-[:NAMES]->(e:Entity)
CALL {{
  WITH e
  MATCH (e)-[:SUBJECT_OF]->(f:Fact)
  RETURN f
  UNION
  WITH e
  MATCH (f:Fact)-[:OBJECT_IS]->(e)
  RETURN f
}}
WITH DISTINCT f
WHERE $predicate IS NULL OR f.predicate = $predicate
WITH f
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH f, h, b
ORDER BY CASE WHEN b.known_from = {OPEN_START} THEN b.said_at ELSE b.known_from END DESC, f.id
LIMIT $limit
{part.TOLD}
RETURN {part.FACT_MAP} AS fact, objects, {part.BELIEF_MAP} AS belief, sources
ORDER BY CASE WHEN belief.known_from = {OPEN_START} THEN belief.said_at ELSE belief.known_from END DESC, fact.id
"""

ENTITIES = f"""
MATCH (e:Entity)
WITH e ORDER BY e.last_seen DESC, e.name SKIP $skip LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity
"""

ENTITIES_LIKE = f"""
MATCH (t:Term)
WHERE t.s IN $terms OR t.s STARTS WITH $beginning
MATCH (t)-[p:IN_ENTITY]->(e:Entity)
WITH e, sum(p.f / (p.f + 1.0 + 0.02 * e.n)) AS score
ORDER BY score DESC, e.last_seen DESC, e.name SKIP $skip LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity, score
"""
"""Entities by the words of their names and summaries, the last of which may be a beginning (C44)."""

EPISODES_ABOUT = f"""
MATCH (:Alias {{key: $alias}})-[:NAMES]->(n:Entity)
MATCH (e:Episode)-[:MENTIONS]->(n)
WITH DISTINCT e ORDER BY e.at DESC, e.created_at DESC LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

COMMUNITIES_ABOUT = """
MATCH (:Alias {key: $alias})-[:NAMES]->(n:Entity)
MATCH (c:Community)-[:HAS_MEMBER]->(n)
RETURN DISTINCT c {.id, .name, .summary} AS community
"""

EPISODES = f"""
MATCH (e:Episode)
WITH e ORDER BY e.at DESC, e.created_at DESC SKIP $skip LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

EPISODES_BY_STATUS = f"""
MATCH (e:Episode {{status: $status}})
WITH e ORDER BY e.at DESC, e.created_at DESC SKIP $skip LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

WAITING = f"""
MATCH (e:Episode {{status: 'saved'}})
WITH e ORDER BY e.at, e.created_at SKIP $skip LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

STATS = f"""
OPTIONAL MATCH (e:Episode)
WITH count(e) AS episodes
OPTIONAL MATCH (w:Episode {{status: 'saved'}})
WITH episodes, count(w) AS waiting
OPTIONAL MATCH (n:Entity)
WITH episodes, waiting, count(n) AS entities
OPTIONAL MATCH (f:Fact)
WITH episodes, waiting, entities, count(f) AS facts
OPTIONAL MATCH (b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now
OPTIONAL MATCH (:Fact)-[h:HELD]->(b)
WITH episodes, waiting, entities, facts, count(h) AS current_facts
OPTIONAL MATCH (c:Community)
WITH episodes, waiting, entities, facts, current_facts, count(c) AS communities
OPTIONAL MATCH (u:Fact)-[:PROPOSED]->(p:Belief)
WHERE p.expired_at = {OPEN_END}
RETURN episodes, waiting, entities, facts, current_facts, communities, count(DISTINCT u) AS reviews
"""
