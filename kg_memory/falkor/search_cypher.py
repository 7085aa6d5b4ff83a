"""The queries of retrieval: named constants with parameters only, one a kind; no embedding ever comes back.

A fact is seen in the light of both clocks: what was believed at ``$believed_at`` to be so at some instant in
``[$since, $until)``.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part

SIZES = """
CALL db.meta.stats() YIELD labels
CALL { MATCH (d:Episode) WITH d LIMIT 300 RETURN avg(d.n) AS episodes }
CALL { MATCH (d:Fact) WITH d LIMIT 300 RETURN avg(d.n) AS facts }
CALL { MATCH (d:Entity) WITH d LIMIT 300 RETURN avg(d.n) AS entities }
CALL { MATCH (d:Community) WITH d LIMIT 300 RETURN avg(d.n) AS communities }
RETURN labels, {episodes: episodes, facts: facts, entities: entities, communities: communities} AS lengths
"""
"""How many nodes each label has, and how long they are on average, judged by some of them."""

TERMS = """
MATCH (t:Term)
WHERE t.s IN $terms
RETURN t.s AS term, outdegree(t, 'IN_EPISODE') AS episodes, outdegree(t, 'IN_FACT') AS facts,
  outdegree(t, 'IN_ENTITY') AS entities, outdegree(t, 'IN_COMMUNITY') AS communities
"""

NAMED_ENTITIES = """
MATCH (a:Alias)
WHERE a.key IN $keys
MATCH (a)-[:NAMES]->(e:Entity)
RETURN e.id AS id, collect(a.key) AS keys, indegree(e, 'MENTIONS') AS mentions
"""

RECENT_ENTITIES = """
MATCH (d:Episode {thread_key: $thread_key})
WITH d ORDER BY d.at DESC, d.created_at DESC LIMIT $limit
MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN DISTINCT e.id AS id, indegree(e, 'MENTIONS') AS mentions
"""

# Asked only of the best: asking it of all that share a common word costs half a second at 20,000 facts.
_TRUE = f"""
WITH d, score ORDER BY score DESC, d.id LIMIT $depth
MATCH (d)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH DISTINCT d, score"""

_BEST = """
WITH d, score ORDER BY score DESC, d.id LIMIT $limit
RETURN d.id AS id, score
"""


def _by_words(relation: str, label: str, condition: str = "") -> str:
    """Return the query that ranks by BM25, its terms and their weights given."""
    length = "$b * coalesce(d.n, $average) / $average"
    return f"""
UNWIND $terms AS q
MATCH (t:Term {{s: q.term}})-[p:{relation}]->(d:{label})
WITH d, sum(q.idf * p.f / (p.f + $k1 * (1.0 - $b + {length}))) AS score{condition}{_BEST}"""


def _by_meaning(label: str, condition: str = "") -> str:
    """Return the query that ranks by cosine similarity."""
    return f"""
CALL db.idx.vector.queryNodes('{label}', 'embedding', $depth, vecf32($vector)) YIELD node AS d, score AS distance
WITH d, 1.0 - distance AS score{condition}{_BEST}"""


EPISODES_BY_WORDS = _by_words("IN_EPISODE", "Episode")
FACTS_BY_WORDS = _by_words("IN_FACT", "Fact", _TRUE)
ENTITIES_BY_WORDS = _by_words("IN_ENTITY", "Entity")
COMMUNITIES_BY_WORDS = _by_words("IN_COMMUNITY", "Community")

FACTS_BY_MEANING = _by_meaning("Fact", _TRUE)
ENTITIES_BY_MEANING = _by_meaning("Entity")
COMMUNITIES_BY_MEANING = _by_meaning("Community")

EPISODES_BY_MEANING = """
WITH vecf32($vector) AS vector
CALL db.idx.vector.queryNodes('Episode', 'embedding', $depth, vector) YIELD node AS d, score AS distance
OPTIONAL MATCH (d)-[:NEXT]-(other:Episode)
WHERE abs(other.at - d.at) <= $gap AND other.embedding IS NOT NULL
WITH d, 1.0 - distance AS own, collect(1.0 - vec.cosineDistance(other.embedding, vector)) AS near
WITH d, own + $share * (reduce(total = 0.0, one IN near | total + one) + (2 - size(near)) * own) AS score
ORDER BY score DESC, d.id LIMIT $limit
RETURN d.id AS id, score
"""
"""A line of conversation means what it says and a share of what its neighbours say; a missing one is like itself."""

EPISODE_LINKS = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
OPTIONAL MATCH (d)-[:MENTIONS]->(e:Entity)
WHERE e.id IN $entities
RETURN d.id AS id, d.speaker AS speaker, collect(e.id) AS entities
"""

FACT_LINKS = """
UNWIND $ids AS id
MATCH (d:Fact {id: id})
MATCH (d)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN d.id AS id, collect(DISTINCT e.id) AS entities
"""

# Each WITH keeps the planner on the path: without it, it begins at a scan of all beliefs.
FACTS_NEAR = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})-[:SUBJECT_OF|OBJECT_IS]-(d:Fact)
WITH DISTINCT id, d ORDER BY d.said_at DESC, d.id
WITH id, collect(d)[0..3 * $limit] AS latest
UNWIND latest AS d
MATCH (d)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH DISTINCT id, d ORDER BY d.said_at DESC, d.id
WITH id, collect(d)[0..$limit] AS latest
UNWIND latest AS d
WITH DISTINCT d
MATCH (d)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN d.id AS id, collect(DISTINCT e.id) AS entities
"""
"""One step of breadth-first search: the latest facts of each entity, and the entities at their other ends."""

EVENTS = """
MATCH (a:Alias)
WHERE a.key IN $subjects
MATCH (a)-[:NAMES]->(e:Entity)
WITH DISTINCT e
MATCH (e)-[:SUBJECT_OF]->(f:Fact)
WHERE f.predicate = $predicate
WITH e, f
MATCH (f)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at
MATCH (f)-[:OBJECT_IS]->(o:Entity)
OPTIONAL MATCH (n:Alias {key: $object})-[:NAMES]->(o)
RETURN e.id AS subject, b.valid_at AS valid_at, b.invalid_at AS invalid_at, b.known_from AS known_from,
  count(n) > 0 AS meant, f.sentence AS sentence
ORDER BY known_from, sentence
"""
"""The periods of what some entities were, did or had, for finding when a question means by "before she moved"."""

LAST_SAID = """
UNWIND $facts AS id
MATCH (f:Fact {id: id})
RETURN f.id AS id, f.said_at AS at
UNION ALL
UNWIND $episodes AS id
MATCH (e:Episode {id: id})
RETURN e.id AS id, e.at AS at
"""

COMMUNITIES_OF = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
MATCH (d:Community)-[:HAS_MEMBER]->(e)
RETURN d.id AS id, collect(e.id) AS entities
"""

FACTS_BY_ID = f"""
UNWIND $ids AS id
MATCH (f:Fact {{id: id}})
WITH f
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH f, h, b
{part.TOLD}
RETURN {part.FACT_MAP} AS fact, {part.BELIEF_MAP} AS belief, objects, sources
ORDER BY belief.known_from, belief.id
"""
"""Facts, each with its beliefs that fit, the latest last."""

ENTITIES_BY_ID = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
RETURN {part.ENTITY_MAP} AS entity
"""

EPISODES_BY_ID = f"""
UNWIND $ids AS id
MATCH (e:Episode {{id: id}})
RETURN {part.EPISODE_MAP} AS episode
"""

COMMUNITIES_BY_ID = """
UNWIND $ids AS id
MATCH (c:Community {id: id})
RETURN c {.id, .name, .summary} AS community
"""
