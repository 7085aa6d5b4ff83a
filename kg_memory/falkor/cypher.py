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
MERGE (e:Episode {id: $episode.id})
ON CREATE SET e = $episode
WITH e, e.status = 'new' AS new
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
  e.created_at AS created_at, e.thread AS thread, e.thread_key AS thread_key, e.source AS source
"""

ENTITIES_BY_ALIAS = f"""
UNWIND $names AS row
MATCH (:Alias {{key: row.alias}})-[:NAMES]->(e:Entity)
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, 1.0 AS score
"""

ENTITIES_BY_MEANING = f"""
UNWIND $names AS row
CALL db.idx.vector.queryNodes('Entity', 'embedding', $limit, vecf32(row.embedding)) YIELD node AS e, score AS distance
WITH row, e, 1.0 - distance AS score
WHERE score >= $threshold
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, score
"""

ENTITIES_BY_WORDS = f"""
UNWIND $names AS row
UNWIND row.terms AS term
MATCH (t:Term {{s: term}})-[:IN_ENTITY]->(e:Entity)
WITH row, e, count(t) AS hits
ORDER BY hits DESC
WITH row, collect(e)[0..$limit] AS found
UNWIND found AS e
RETURN row.new AS new, {part.ENTITY_MAP} AS entity, 0.0 AS score
"""

FACTS_OF_PAIRS = f"""
UNWIND $pairs AS row
MATCH (s:Entity {{id: row.subject}})-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity {{id: row.object}})
WITH row, f
ORDER BY f.said_at DESC
WITH row.new AS new, collect(DISTINCT f)[0..$limit] AS found
UNWIND found AS f
{part.TOLD_WITH_BELIEFS}"""

RIVALS_BY_SUBJECT = f"""
UNWIND $facts AS row
MATCH (s:Entity {{id: row.subject}})-[:SUBJECT_OF]->(f:Fact)
WHERE f.id <> row.not
WITH row.new AS new, f, f.predicate = row.predicate AS same,
  vec.cosineDistance(f.embedding, vecf32(row.embedding)) AS distance
WHERE same OR distance < $farthest
WITH new, f, CASE WHEN same THEN distance - 2.0 ELSE distance END AS distance
ORDER BY distance
WITH new, collect(f)[0..$limit] AS found
UNWIND found AS f
{part.TOLD_WITH_BELIEFS}"""

RIVALS_BY_OBJECT = f"""
UNWIND $facts AS row
UNWIND row.objects AS object
MATCH (o:Entity {{id: object}})
WITH row, o
MATCH (f:Fact)-[:OBJECT_IS]->(o)
WHERE f.predicate = row.predicate AND f.id <> row.not
WITH row.new AS new, f
ORDER BY f.said_at DESC
WITH new, collect(DISTINCT f)[0..$limit] AS found
UNWIND found AS f
{part.TOLD_WITH_BELIEFS}"""

HISTORY = f"""
UNWIND $facts AS id
MATCH (f:Fact {{id: id}})
OPTIONAL MATCH (f)-[:CONTRADICTS]-(near:Fact)
WITH collect(f) + collect(near) AS near
UNWIND near AS f
WITH DISTINCT f
OPTIONAL MATCH (f)-[:CONTRADICTS]-(other:Fact)
WITH collect(f) + collect(other) AS all
UNWIND all AS f
WITH DISTINCT f
OPTIONAL MATCH (f)-[:CONTRADICTS]-(rival:Fact)
WITH f, collect(DISTINCT rival.id) AS rivals
OPTIONAL MATCH (e:Episode)-[s:STATES]->(f)
WITH f, rivals, collect({{id: e.id, said_at: e.at, valid_at: s.valid_at, invalid_at: s.invalid_at}}) AS said
WITH f, rivals, [one IN said WHERE one.id IS NOT NULL] AS statements
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
RETURN f.id AS fact, f.sentence AS sentence, rivals, statements,
  collect(b {{.id, .valid_at, .invalid_at, .said_at}}) AS beliefs
"""

SAVE = """
MATCH (e:Episode {id: $episode})
WHERE e.status <> 'done'
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
  ON CREATE SET f.predicate = row.predicate, f.sentence = row.sentence, f.confidence = row.confidence,
    f.edge_type = row.edge_type, f.embedding = vecf32(row.embedding), f.created_at = $now, f.said_at = $at, f.n = row.n
  SET f.confidence = CASE WHEN f.confidence < row.confidence THEN row.confidence ELSE f.confidence END
  MERGE (s)-[:SUBJECT_OF]->(f)
  WITH f, row
  UNWIND row.objects AS key
  MATCH (o:Entity {key: key})
  MERGE (f)-[:OBJECT_IS]->(o)
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
  MERGE (e)-[:STATES {start: row.start, end: row.end, valid_at: row.valid_at, invalid_at: row.invalid_at}]->(f)
}
CALL {
  WITH e
  UNWIND $closed AS id
  MATCH (b:Belief {id: id})
  WHERE b.expired_at > $now
  SET b.expired_at = $now
}
CALL {
  WITH e
  UNWIND $beliefs AS row
  MATCH (f:Fact {id: row.fact})
  OPTIONAL MATCH (f)-[:HELD]->(b:Belief {valid_at: row.valid_at, invalid_at: row.invalid_at})
  WHERE b.expired_at > $now
  WITH f, row, b WHERE b IS NULL
  CREATE (f)-[:HELD]->(:Belief {id: row.id, valid_at: row.valid_at, invalid_at: row.invalid_at, said_at: row.said_at,
    created_at: $now, expired_at: row.expired_at, episode: $episode})
}
CALL {
  WITH e
  UNWIND $touched AS id
  MATCH (f:Fact {id: id})
  WITH f
  MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity)
  SET n.stale = $now
}
CALL {
  WITH e
  UNWIND $contradicts AS row
  MATCH (f:Fact {id: row.fact}), (other:Fact {id: row.other})
  MERGE (f)-[:CONTRADICTS]->(other)
}
RETURN e.id AS id
"""

STALE_ENTITIES = f"""
MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $since OR e.stale < $before)
WITH e ORDER BY e.stale, e.key LIMIT $most
OPTIONAL MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.invalid_at = {OPEN_END}
WITH e, f, max(b.said_at) AS said_at
ORDER BY said_at DESC
WITH e, collect(CASE WHEN said_at IS NULL THEN NULL ELSE f.sentence END)[0..$limit] AS facts
RETURN e.key AS key, e.name AS name, e.type AS type, e.aliases AS aliases, e.summary AS summary,
  e.stale AS stale, facts
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
MATCH (f)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END} AND ($as_of IS NULL OR (b.valid_at <= $as_of AND b.invalid_at > $as_of))
WITH f, b
ORDER BY CASE WHEN b.valid_at = {OPEN_START} THEN b.said_at ELSE b.valid_at END DESC, f.id
LIMIT $limit
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH f, b, s, collect(DISTINCT o.name) AS objects
{part.STATED}
WITH f, b, s, objects, x, st ORDER BY x.at, x.id
WITH f, b, s, objects, {part.SOURCES} AS sources
RETURN {part.FACT_MAP} AS fact, objects,
  b {{.id, .valid_at, .invalid_at, .created_at, .expired_at, .said_at}} AS belief,
  sources
ORDER BY CASE WHEN belief.valid_at = {OPEN_START} THEN belief.said_at ELSE belief.valid_at END DESC, fact.id
"""

ENTITIES = f"""
MATCH (e:Entity)
WITH e ORDER BY e.last_seen DESC, e.name SKIP $skip LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity
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
WHERE b.expired_at = {OPEN_END} AND b.valid_at <= $now AND b.invalid_at > $now
WITH episodes, waiting, entities, facts, count(b) AS current_facts
OPTIONAL MATCH (c:Community)
RETURN episodes, waiting, entities, facts, current_facts, count(c) AS communities
"""
