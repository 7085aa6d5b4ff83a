"""Queries for features of candidates by their ids, one row for each that still exists, to rerank or judge them.

No embedding comes back: similarities are computed in the database. Long lists come back as one text, which the client
reads ten times as fast.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.temporal.interval import OPEN_END, WIDTH

FACTS_TOLD = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
RETURN id, f.said_at AS stated_at, coalesce(f.confidence, 1.0) AS confidence, coalesce(f.used, 0.0) AS used,
  coalesce(f.used_at, 0) AS used_at
"""

_LENGTH = f"CASE b.precision {' '.join(f'WHEN {unit!r} THEN {width}' for unit, width in WIDTH.items())} ELSE 0 END"

FACTS_HELD = f"""
UNWIND $ids AS id
MATCH (f:Fact {{id: id}})
WITH f, coalesce(f.kind, 'state') = 'state' AS lasts
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH f, b, CASE WHEN lasts OR b.invalid_at < {OPEN_END} THEN b.invalid_at ELSE b.known_from + {_LENGTH} + 1 END AS until
RETURN f.id AS id, collect([b.valid_at, b.known_from, until]) AS periods
"""
"""The periods of facts: the start, or an open one; from when each is known to hold; and the end.

What happened, or is meant to, ends with the day, month or year that it is dated by.
"""

EPISODES_TOLD = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
RETURN id, d.at AS stated_at, coalesce(d.trust, 1.0) AS trust
"""

FACTS_STATED = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
OPTIONAL MATCH (x:Episode)-[:STATES]->(f)
WITH DISTINCT id, x
WITH id, x, coalesce(x.trust, 1.0) AS trust,
  CASE WHEN x IS NOT NULL AND ($thread_key IS NULL OR x.thread_key = $thread_key) THEN 1 ELSE 0 END AS stated
RETURN id, max(trust) AS trust, count(x) AS sources, sum(stated) AS mentions
"""
"""The number of episodes that state a fact, of one thread or all, and the highest trust of all of them."""

FACTS_LINK = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
OPTIONAL MATCH (x:Episode)-[:STATES]->(f)
WITH id, f, count(DISTINCT x) AS sources
RETURN id, sources + indegree(f, 'RESTS_ON') AS links
"""
"""The number of episodes that state a fact, and of facts that rest on it."""

ENTITIES_LINK = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
RETURN id, indegree(e, 'OBJECT_IS') + outdegree(e, 'SUBJECT_OF') AS links
"""
"""The number of facts about an entity, past ones too."""

EPISODES_LINK = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
OPTIONAL MATCH (d)-[:STATES]->(f:Fact)
RETURN id, count(DISTINCT f) AS links
"""
"""The number of facts that an episode states."""

_TOGETHER = "string.join(collect(e.id), ' ') AS entities"

FACTS_JOIN = f"""
UNWIND $ids AS id
MATCH (f:Fact {{id: id}})
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN id, {_TOGETHER}
"""
"""The entities at the ends of facts."""

ENTITIES_JOIN = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
RETURN id, id AS entities
"""

COMMUNITIES_JOIN = f"""
UNWIND $ids AS id
MATCH (d:Community {{id: id}})
OPTIONAL MATCH (d)-[:HAS_MEMBER]->(e:Entity)
RETURN id, {_TOGETHER}
"""

EPISODES_JOIN = f"""
UNWIND $ids AS id
MATCH (d:Episode {{id: id}})
OPTIONAL MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN id, {_TOGETHER}
"""

_COUNTED = "string.join(collect(id), ' ') AS entities, string.join(collect(toString(mentions)), ' ') AS mentions"

MENTIONED = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
WITH id, indegree(e, 'MENTIONS') AS mentions
RETURN {_COUNTED}
"""
"""The number of episodes that mention each of some entities."""

MENTIONED_IN = f"""
MATCH (x:Episode {{thread_key: $thread_key}})
MATCH (x)-[:MENTIONS]->(e:Entity)
WITH e, count(x) AS mentions
WITH e.id AS id, mentions
RETURN {_COUNTED}
"""
"""The number of episodes of a thread that mention each entity: counting from the entities costs ten times as much."""

NEXT_TO = f"""
UNWIND $ids AS id
MATCH (n:Entity {{id: id}})-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH DISTINCT f
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH DISTINCT f
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
WITH DISTINCT e LIMIT $limit
RETURN {_TOGETHER}
"""
"""Some entities, and those that true facts link them to."""


def _alike(label: str, means: str = "") -> str:
    """Return the query for the cosine similarity of each node to those after it, as one text; all must have a vector.

    The vector is that of ``v``: of ``d`` itself, or of the node that *means* matches.
    """
    return f"""
UNWIND $ids AS id
MATCH (d:{label} {{id: id}})
{means or "WITH d, d AS v"}
WHERE v.embedding IS NOT NULL
WITH collect(d.id) AS ids, collect(v) AS all
UNWIND range(0, size(all) - 1) AS place
WITH ids[place] AS id, all[place] AS v, all[place + 1..] AS others
WITH id, [other IN others | toString(1.0 - vec.cosineDistance(v.embedding, other.embedding))] AS alike
RETURN id, string.join(alike, ' ') AS alike
"""


FACTS_ALIKE = _alike("Fact")
ENTITIES_ALIKE = _alike("Entity", "MATCH (d)-[:MEANS]->(v)")
COMMUNITIES_ALIKE = _alike("Community")
EPISODES_ALIKE = _alike("Episode")

FACTS_READ = f"""
UNWIND $ids AS id
MATCH (f:Fact {{id: id}})
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN id, {_TOGETHER}, collect(e.name) AS names, f.predicate AS predicate, f.sentence AS text
"""
"""The sentences and predicates of facts, and the entities at their ends."""

FACTS_SAY = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
RETURN id, f.sentence AS text, NULL AS name
"""

EPISODES_SAY = f"""
UNWIND $ids AS id
MATCH (d:Episode {{id: id}})
RETURN id, {part.truncate("d.content")} AS text, d.speaker AS name, d.kind AS kind
"""

ENTITIES_SAY = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
RETURN id, e.summary AS text, e.name AS name
"""

COMMUNITIES_SAY = """
UNWIND $ids AS id
MATCH (d:Community {id: id})
RETURN id, d.summary AS text, d.name AS name
"""

SPREAD = """
MATCH (d:Episode)
WHERE d.created_at >= 0 AND d.embedding IS NOT NULL
WITH d LIMIT $sample
WITH collect(d) AS some, collect(DISTINCT d.speaker) AS speakers
CALL {
  WITH some
  UNWIND some AS one
  UNWIND some AS other
  WITH one, other
  WHERE id(one) < id(other)
  RETURN avg(vec.cosineDistance(one.embedding, other.embedding)) AS distance
}
RETURN distance, speakers
"""
"""The usual distance of two episodes, NULL without two, and the speakers, by the first ones."""

EPISODE_VECTORS = """
MATCH (d:Episode)
WHERE d.id >= '' AND d.embedding IS NOT NULL
RETURN d.embedding AS vector LIMIT $sample
"""
"""The vectors of some episodes: ids are hashes, so the first by id are a random sample."""
