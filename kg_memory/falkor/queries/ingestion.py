"""Queries of ingestion: read stored entities and facts to compare new ones with, save new ones, restore evicted ones.

Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`. Entities and facts
are returned as maps, never with their embeddings.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.queries import usage as spent
from kg_memory.falkor.queries.communities import JOIN
from kg_memory.falkor.queries.facts import HISTORY_MAP, tell_history
from kg_memory.temporal.interval import OPEN_END, OPEN_START


def _tell_of_stale(carried: str = "") -> str:
    """Return Cypher clauses that read the latest facts of up to ``$most`` entities with outdated summaries."""
    # MATCH reads all entities in one step; OPTIONAL MATCH would read row by row.
    return f"""WITH {carried}e ORDER BY e.stale, e.key LIMIT $most
WITH {carried}collect(e) AS stale
CALL {{
  WITH stale
  UNWIND stale AS e
  MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
  WITH DISTINCT e, f ORDER BY f.said_at DESC
  WITH e, collect(f) AS said
  WITH e, said[0..$latest] AS latest, size(said) AS total
  UNWIND latest AS f
  MATCH ()-[s:STATES]->(f)
  WHERE s.weak IS NULL OR s.weak = false
  WITH DISTINCT e, total, f
  MATCH (f)-[:HELD]->(b)
  WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now
  WITH e, total, f, b ORDER BY b.invalid_at DESC, b.known_from DESC
  WITH e, total, f, max(b.said_at) AS said_at, collect(b)[0] AS b
  ORDER BY said_at DESC, f.created_at DESC, f.sentence
  WITH e, total, collect(CASE WHEN b.invalid_at > $now THEN {part.DATED} END)[0..$limit] AS facts,
    collect(CASE WHEN b.invalid_at <= $now AND coalesce(f.kind, '') <> 'plan' THEN {part.DATED} END)[0..$past] AS past
  RETURN collect({{key: e.key, total: total, facts: facts, past: past}}) AS told
}}
UNWIND CASE WHEN size(stale) = 0 THEN [NULL] ELSE stale END AS e
WITH {carried}e, [each IN told WHERE each.key = e.key] AS own
WITH {carried}e, CASE WHEN size(own) = 0 THEN 0 ELSE own[0].total END AS total,
  CASE WHEN size(own) = 0 THEN [] ELSE own[0].facts END AS facts,
  CASE WHEN size(own) = 0 THEN [] ELSE own[0].past END AS past"""


_STALE_MAP = "e {.key, .name, .type, .aliases, .summary, .worded, .stale, total: total, facts: facts, past: past}"

SAVE = (
    spent.ADD_USAGE
    + """
UNWIND $based_on AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN coalesce(n.revision, 0) = row.revision THEN 0 ELSE 1 END) AS changed
UNWIND CASE WHEN size($closed) = 0 THEN [NULL] ELSE $closed END AS id
OPTIONAL MATCH (b:Belief {id: id})
WITH changed, sum(CASE WHEN id IS NULL OR b.expired_at > $now THEN 0 ELSE 1 END) AS revised
MATCH (m:Meta {id: 'schema'})
MATCH (e:Episode {id: $episode})
WHERE NOT e.status IN ['done', 'skipped'] AND changed + revised = 0 AND coalesce(m.forgotten, 0) = $forgotten
SET e.embedding = vecf32($embedding), e += $end
WITH e"""
    + part.for_each(
        entities=(
            """
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
  ON CREATE SET p.f = CASE WHEN f <> 1 THEN f END
  ON MATCH SET p.f = coalesce(p.f, 1) + f""",
            """
  MATCH (n:Entity {key: row.key})
  WITH n, row
  UNWIND row.alias_keys AS alias
  MERGE (a:Alias {key: alias})
  MERGE (a)-[:NAMES]->(n)""",
        )
    )
    + part.RENAME_ENTITIES
    + part.for_each(
        facts="""
  MATCH (s:Entity {key: row.subject})
  MERGE (f:Fact {id: row.id})
  ON CREATE SET f.kind = row.kind, f.predicate = row.predicate, f.wording = row.wording, f.family = row.family,
    f.sentence = row.sentence, f.confidence = row.confidence, f.edge_type = row.edge_type,
    f.embedding = vecf32(row.embedding), f.created_at = $now, f.said_at = $at, f.n = row.n,
    f.told_at = $at, f.told_by = e.id, f.told_end = row.told_end
  MERGE (s)-[:SUBJECT_OF]->(f)
  WITH f, row
  UNWIND row.objects AS key
  MATCH (o:Entity {key: key})
  MERGE (f)-[:OBJECT_IS]->(o)""",
        reworded="""
  MATCH (f:Fact {id: row.id})
  OPTIONAL MATCH (:Term)-[old:IN_FACT]->(f)
  DELETE old
  WITH DISTINCT f, row
  SET f.predicate = row.predicate, f.wording = row.wording, f.family = row.family, f.sentence = row.sentence,
    f.edge_type = row.edge_type, f.embedding = vecf32(row.embedding), f.n = row.n,
    f.told_at = $at, f.told_by = $episode, f.told_end = row.told_end""",
        fact_terms="""
  MATCH (f:Fact {id: row.id})
  MERGE (t:Term {s: row.term})
  MERGE (t)-[p:IN_FACT]->(f)
  ON CREATE SET p.f = CASE WHEN row.f <> 1 THEN row.f END""",
        statements=(
            """
  WITH e, row WHERE NOT row.more
  MATCH (f:Fact {id: row.fact})
  WITH e, f
  MATCH (e)-[old:STATES]->(f)
  WITH DISTINCT old
  DELETE old""",
            """
  MATCH (f:Fact {id: row.fact})
  MERGE (e)-[s:STATES {start: row.start, end: row.end, valid_at: row.valid_at, invalid_at: row.invalid_at}]->(f)
  ON CREATE SET s.latest = row.latest, s.precision = row.precision, s.confidence = row.confidence,
    s.corrects = row.corrects, s.refuted = row.refuted, s.end_precision = row.end_precision,
    s.support = row.support, s.weak = row.weak, s.goes_on = CASE WHEN row.goes_on THEN true END
  WITH f, row
  WHERE f.said_at < $at OR f.confidence < row.confidence
  SET f.said_at = CASE WHEN f.said_at < $at THEN $at ELSE f.said_at END,
    f.confidence = CASE WHEN f.confidence < row.confidence THEN row.confidence ELSE f.confidence END""",
        ),
        verdicts="""
  MATCH (f:Fact {id: row.new}), (other:Fact {id: row.known})
  MERGE (v:Verdict {id: row.id})
  ON CREATE SET v = row, v.created_at = $now, v.episode = e.id
  MERGE (f)-[:JUDGED]->(v)
  MERGE (other)-[:JUDGED]->(v)""",
        rejudged="""
  MATCH (v:Verdict {id: row.id})
  WHERE v.decided IS NULL
  SET v += row""",
        reopened="""
  MATCH (v:Verdict {id: row})
  SET v.ruling = 'waiting', v.refused = NULL, v.refused_at = NULL""",
        predicates="""
  MERGE (p:Predicate {name: row.name})
  ON CREATE SET p = row
  WITH count(p) AS learned
  MATCH (m:Meta {id: 'schema'})
  WHERE learned > 0
  SET m.predicates = $now""",
    )
    + part.REVISE
    + part.LINK_PREMISES
    + part.KEEP_APART
    + JOIN
    + f"""
OPTIONAL MATCH (e)-[:STATES|MENTIONS]->(found)
WITH e.id AS id, collect(CASE WHEN found.evicted > {OPEN_START} THEN found.id END) AS evicted
OPTIONAL MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $now OR e.stale < $before)
{_tell_of_stale("id, evicted, ")}
RETURN id, evicted, collect({_STALE_MAP}) AS stale
"""
)
"""Writes everything derived from an episode, or a part of it, and returns the entities whose summaries became stale.

`end` are the columns of the episode that the last part sets. Without a stale entity, the row has one without a key. No
row, and no change, if the graph has changed meanwhile.
"""

STALE_ENTITIES = f"""
MATCH (e:Entity)
WHERE e.stale > 0 AND (e.stale = $since OR e.stale < $before)
{_tell_of_stale()}
WITH e, total, facts, past
WHERE e IS NOT NULL
RETURN {_STALE_MAP} AS entity
"""

SAVE_SUMMARIES = f"""{spent.ADD_USAGE}
UNWIND $summaries AS row
MATCH (e:Entity {{key: row.key}})
WHERE e.stale = row.stale
SET e.stale = NULL, e.summary = row.summary, e.worded = row.worded, e.n = e.n + row.n
WITH e, row
UNWIND row.terms AS term
MERGE (t:Term {{s: term.term}})
MERGE (t)-[p:IN_ENTITY]->(e)
ON CREATE SET p.f = CASE WHEN term.f <> 1 THEN term.f END
ON MATCH SET p.f = coalesce(p.f, 1) + term.f
WITH p
WHERE p.f <= 0
DELETE p
"""
"""Writes summaries of entities, and updates their indexed words by the difference to the summaries before."""

NAMESAKES = f"""
MATCH (e:Meta {{id: 'schema'}})
RETURN 'meta' AS kind, NULL AS new, e {{.model, .dimension, .predicates}} AS entity, 0.0 AS score
UNION ALL
UNWIND $names AS row
MATCH (:Alias {{key: row.alias}})-[:NAMES]->(e:Entity)
RETURN 'candidate' AS kind, row.new AS new, {part.ENTITY_MAP} AS entity, 1.0 AS score
"""
"""Returns the stored entities that have exactly the names of new ones, as rows of `SIMILAR_ENTITIES`."""

SIMILAR_ENTITIES = f"""{NAMESAKES}UNION ALL
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
RETURN 'candidate' AS kind, row.new AS new, {part.ENTITY_MAP} AS entity, score
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
RETURN 'candidate' AS kind, new, {part.ENTITY_MAP} AS entity, 0.0 AS score
"""
"""Returns the stored entities that new ones may be: by name, by the name's vector, and by words of summaries.

The vector index is skipped where exactly one entity of the same type has the name: that is the entity, see
`resolve.certain`. Words are looked up only for names that no entity has: a well-known entity's name is in the summaries
of its neighbours. Rows of `kind` ``candidate`` are entities; one row of kind ``meta`` has the embedding model and
dimension of the graph, and when a predicate was last learned or corrected.
"""

EVICTED = f"""{part.each("f:Fact")}
WHERE f.evicted > {OPEN_START}
RETURN 'Fact' AS label, f.id AS id, [f.sentence] AS names, f.predicate AS predicate
UNION ALL{part.each("e:Entity")}
WHERE e.evicted > {OPEN_START}
RETURN 'Entity' AS label, e.id AS id, [e.name] + e.aliases AS names, NULL AS predicate
"""


def _index_again(label: str, name: str, vector: str) -> str:
    body = f"""
  MATCH (d:{label} {{id: row.id}})
  WHERE d.evicted > {OPEN_START}
  {vector}
  SET d.n = row.n, d.evicted = NULL
  {part.replace_words(label, "d")}"""
    return part.for_each("m", **{name: body})


INDEX_AGAIN = (
    "\nMATCH (m:Meta {id: 'schema'})"
    + _index_again("Fact", "facts", "SET d.embedding = vecf32(row.embedding)")
    + _index_again("Entity", "entities", "MERGE (d)-[:MEANS]->(v:Meaning) SET v.embedding = vecf32(row.embedding)")
    + "\nRETURN m.id AS id\n"
)
"""Adds evicted facts and entities to the word and vector indices again, so that searches find them."""


# Stored facts that new ones are compared with

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
"""The subject's facts nearest in meaning; of a single-valued predicate, those that begin nearest before and after."""

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
"""Returns the stored facts to compare new facts with: the same facts, facts between the same two entities, facts that
share an entity in any role, and the nearest in meaning that share none (an entity may have another name).

Rows of `kind` ``candidate`` are those facts, each with the row of `HISTORY` as its `history`. Rows of `kind`
``revision`` say how often facts about an entity were changed.
"""
