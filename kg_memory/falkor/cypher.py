"""The queries of ingestion, and of reading without a question.

Those about episodes are in `episode_cypher`, those that find what new entities and facts may be in `candidate_cypher`.
Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
Every entity and fact comes back as a map, never with its embedding.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part
from kg_memory.falkor import spent_cypher as spent
from kg_memory.falkor.community_cypher import JOIN
from kg_memory.temporal.interval import OPEN_END, OPEN_START

_TOLD_OF_STALE = f"""WITH {{carried}}e ORDER BY e.stale, e.key LIMIT $most
WITH {{carried}}collect(e) AS stale
CALL {{{{
  WITH stale
  UNWIND stale AS e
  MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
  WITH e, f ORDER BY f.said_at DESC
  WITH e, collect(f) AS said
  WITH e, said[0..$latest] AS latest, size(said) AS total
  UNWIND latest AS f
  MATCH (f)-[:HELD]->(b)
  WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now
  WITH e, total, f, max(b.said_at) AS said_at, max(b.invalid_at) AS until
  ORDER BY said_at DESC, f.created_at DESC, f.sentence
  WITH e, total, collect(CASE WHEN until > $now THEN f.sentence END)[0..$limit] AS facts,
    collect(CASE WHEN until <= $now THEN {{{{sentence: f.sentence, until: until}}}} END)[0..$past] AS past
  RETURN collect({{{{key: e.key, total: total, facts: facts, past: past}}}}) AS told
}}}}
UNWIND CASE WHEN size(stale) = 0 THEN [NULL] ELSE stale END AS e
WITH {{carried}}e, [each IN told WHERE each.key = e.key] AS own
WITH {{carried}}e, CASE WHEN size(own) = 0 THEN 0 ELSE own[0].total END AS total,
  CASE WHEN size(own) = 0 THEN [] ELSE own[0].facts END AS facts,
  CASE WHEN size(own) = 0 THEN [] ELSE own[0].past END AS past"""
"""Of stale entities, the latest facts: a MATCH reads all at once, which an OPTIONAL one does row by row."""

_STALE_MAP = "e {.key, .name, .type, .aliases, .summary, .worded, .stale, total: total, facts: facts, past: past}"

SAVE = (
    spent.ADD
    + """
UNWIND $based_on AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN coalesce(n.revision, 0) = row.revision THEN 0 ELSE 1 END) AS changed
MATCH (m:Meta {id: 'schema'})
MATCH (e:Episode {id: $episode})
WHERE NOT e.status IN ['done', 'skipped'] AND changed = 0 AND coalesce(m.forgotten, 0) = $forgotten
SET e.status = $status, e.reason = $reason, e.plan = $plan, e.took = $took, e.answers = NULL,
  e.embedding = vecf32($embedding)
WITH e
CALL {
  WITH e
  UNWIND $entities AS row
  OPTIONAL MATCH (known:Entity {key: row.key})
  WITH e, row, known IS NULL AS new, CASE WHEN known IS NULL THEN [] ELSE [known.name] + known.aliases END AS before
  WITH e, row, new, [each IN row.names WHERE NOT each.name IN before] AS fresh
  MERGE (n:Entity {key: row.key})
  ON CREATE SET n.id = row.id, n.name = row.name, n.type = row.type, n.aliases = row.aliases, n.summary = '',
    n.first_seen = $at, n.last_seen = $at, n.created_at = $now,
    n.n = reduce(n = 0, each IN fresh | n + each.n),
    n.revision = row.changed, n.stale = CASE WHEN row.stale THEN $now END
  ON MATCH SET n.aliases = n.aliases + [alias IN row.aliases WHERE NOT alias IN n.aliases],
    n.n = n.n + reduce(n = 0, each IN fresh | n + each.n),
    n.first_seen = CASE WHEN n.first_seen > $at THEN $at ELSE n.first_seen END,
    n.last_seen = CASE WHEN n.last_seen < $at THEN $at ELSE n.last_seen END,
    n.revision = coalesce(n.revision, 0) + row.changed, n.stale = CASE WHEN row.stale THEN $now ELSE n.stale END
  MERGE (e)-[:MENTIONS]->(n)
  FOREACH (_ IN CASE WHEN new THEN [1] ELSE [] END |
    CREATE (n)-[:MEANS]->(:Meaning {embedding: vecf32(row.embedding)}))
  WITH n, fresh
  UNWIND fresh AS name
  UNWIND name.terms AS each
  WITH n, each.term AS term, sum(each.f) AS f
  MERGE (t:Term {s: term})
  MERGE (t)-[p:IN_ENTITY]->(n)
  ON CREATE SET p.f = 0
  SET p.f = p.f + f
}
CALL {
  WITH e
  UNWIND $entities AS row
  MATCH (n:Entity {key: row.key})
  WITH n, row
  UNWIND row.alias_keys AS alias
  MERGE (a:Alias {key: alias})
  MERGE (a)-[:NAMES]->(n)
}"""
    + part.renamed("named")
    + """
CALL {
  WITH e
  UNWIND $facts AS row
  MATCH (s:Entity {key: row.subject})
  MERGE (f:Fact {id: row.id})
  ON CREATE SET f.predicate = row.predicate, f.wording = row.wording, f.family = row.family,
    f.sentence = row.sentence, f.confidence = row.confidence, f.edge_type = row.edge_type,
    f.embedding = vecf32(row.embedding), f.created_at = $now, f.said_at = $at, f.n = row.n,
    f.told_at = $at, f.told_by = e.id, f.told_end = row.told_end
  ON MATCH SET f.confidence = CASE WHEN f.confidence < row.confidence THEN row.confidence ELSE f.confidence END
  MERGE (s)-[:SUBJECT_OF]->(f)
  WITH f, row
  UNWIND row.objects AS key
  MATCH (o:Entity {key: key})
  MERGE (f)-[:OBJECT_IS]->(o)
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
  MATCH (e)-[old:STATES]->(f:Fact {id: row.fact})
  WITH DISTINCT old
  DELETE old
}
CALL {
  WITH e
  UNWIND $statements AS row
  MATCH (f:Fact {id: row.fact})
  MERGE (e)-[s:STATES {start: row.start, end: row.end, valid_at: row.valid_at, invalid_at: row.invalid_at}]->(f)
  ON CREATE SET s.latest = row.latest, s.precision = row.precision, s.confidence = row.confidence,
    s.corrects = row.corrects, s.refuted = row.refuted, s.end_precision = row.end_precision
  WITH f
  WHERE f.said_at < $at
  SET f.said_at = $at
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
  WITH count(p) AS learned
  MATCH (m:Meta {id: 'schema'})
  WHERE learned > 0
  SET m.predicates = $now
}
"""
    + part.REVISE
    + JOIN
    + f"""
WITH e.id AS id
OPTIONAL MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $now OR e.stale < $before)
{_TOLD_OF_STALE.format(carried="id, ")}
RETURN id, collect({_STALE_MAP}) AS stale
"""
)
"""Write all that is derived from an episode; returned with the entities whose summaries are stale by it.

Of an episode about nothing, these are one without a key. No row if it was not to be written.
"""

STALE_ENTITIES = f"""
MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $since OR e.stale < $before)
{_TOLD_OF_STALE.format(carried="")}
WITH e, total, facts, past
WHERE e IS NOT NULL
RETURN {_STALE_MAP} AS entity
"""

SAVE_SUMMARIES = f"""{spent.ADD}
UNWIND $summaries AS row
MATCH (e:Entity {{key: row.key}})
WHERE e.stale = row.stale
SET e.stale = NULL, e.summary = row.summary, e.worded = row.worded, e.n = e.n + row.n
WITH e, row
UNWIND row.terms AS term
MERGE (t:Term {{s: term.term}})
MERGE (t)-[p:IN_ENTITY]->(e)
ON CREATE SET p.f = term.f
ON MATCH SET p.f = p.f + term.f
WITH p
WHERE p.f <= 0
DELETE p
"""
"""Write summaries, with how much more, or less, each word counts by them than by those before."""

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
WHERE e.evicted IS NULL
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

COMMUNITIES_ABOUT = """
MATCH (:Alias {key: $alias})-[:NAMES]->(n:Entity)
MATCH (c:Community)-[:HAS_MEMBER]->(n)
RETURN DISTINCT c {.id, .name, .summary} AS community
"""

STATS = f"""
OPTIONAL MATCH (e:Episode)
WITH count(e) AS episodes
OPTIONAL MATCH (e:Episode {{status: 'saved'}})
WITH episodes, count(e) AS saved
OPTIONAL MATCH (e:Episode {{status: 'waiting'}})
WITH episodes, saved, count(e) AS later
OPTIONAL MATCH (e:Episode {{status: 'working'}})
WITH episodes, saved + later AS unread, count(e) AS working
WITH episodes, unread + working AS waiting
OPTIONAL MATCH (e:Episode {{status: 'failed'}})
WITH episodes, waiting, count(e) AS failed
OPTIONAL MATCH (e:Episode {{status: 'skipped'}})
WITH episodes, waiting, failed, count(e) AS skipped
OPTIONAL MATCH (n:Entity)
WITH episodes, waiting, failed, skipped, count(n) AS entities
OPTIONAL MATCH (n:Entity)
WHERE n.evicted > {OPEN_START}
WITH episodes, waiting, failed, skipped, entities, count(n) AS evicted
WITH episodes, waiting, failed, skipped, entities - evicted AS entities
OPTIONAL MATCH (f:Fact)
WITH episodes, waiting, failed, skipped, entities, count(f) AS facts
OPTIONAL MATCH (f:Fact)
WHERE f.evicted > {OPEN_START}
WITH episodes, waiting, failed, skipped, entities, facts, count(f) AS evicted
WITH episodes, waiting, failed, skipped, entities, facts - evicted AS facts
OPTIONAL MATCH (b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now
OPTIONAL MATCH (:Fact)-[h:HELD]->(b)
WITH episodes, waiting, failed, skipped, entities, facts, count(h) AS current_facts
OPTIONAL MATCH (c:Community)
WITH episodes, waiting, failed, skipped, entities, facts, current_facts, count(c) AS communities
OPTIONAL MATCH (u:Fact)-[:PROPOSED]->(p:Belief)
WHERE p.expired_at = {OPEN_END}
RETURN episodes, waiting, failed, skipped, entities, facts, current_facts, communities, count(DISTINCT u) AS reviews
"""
