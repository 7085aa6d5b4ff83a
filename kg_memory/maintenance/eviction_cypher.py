"""The queries of eviction: one to find what may go, and one to evict it in small parts, for each kind.

An evicted node keeps its statements and names, so that later or late episodes still find it. It loses its vector, its
words and its beliefs, so no search finds it. `evicted` of a fact is until when its periods are not to be shown, that of
an entity since when it is evicted.
Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
"""

from __future__ import annotations

from kg_memory.temporal.interval import OPEN_END, OPEN_START

LAST = """
OPTIONAL MATCH (f:Fact)
WITH max(id(f)) AS fact
OPTIONAL MATCH (e:Entity)
RETURN fact, max(id(e)) AS entity
"""
"""The last internal ids, in whose order nodes are found without being sorted."""

_WEIGHED = f"""
OPTIONAL MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WITH f, sum(CASE
    WHEN b IS NULL OR b.expired_at <= $before THEN 0
    WHEN type(h) = 'HELD' AND b.invalid_at <= $before AND b.created_at <= $before THEN 0
    ELSE 1
  END) AS telling, sum(CASE WHEN type(h) = 'PROPOSED' AND b.expired_at = {OPEN_END} THEN 1 ELSE 0 END) AS proposed
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)
WITH f, telling, proposed, sum(CASE WHEN v.ruling = 'waiting' THEN 1 ELSE 0 END) AS judged
WITH f, telling, proposed + judged AS waiting
WITH f, waiting = 0 AND telling = 0 AND f.said_at <= $before AND f.created_at <= $before AS over, waiting"""
"""Whether a fact is ``over``: it tells nothing of any time since ``$before``, also by what was believed since then."""

FACTS_OVER = f"""
MATCH (f:Fact)
WHERE id(f) >= $first AND id(f) < $end AND f.evicted IS NULL
WITH f{_WEIGHED}
WHERE over
RETURN f.id AS id, f.said_at AS said_at, f.sentence AS text
"""

FACTS_OF = f"""
UNWIND $ids AS id
MATCH (n:Entity {{id: id}})
WITH n
MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f)
WITH DISTINCT f
WHERE f.evicted IS NULL
WITH f{_WEIGHED}
RETURN f.id AS id, f.said_at AS said_at, f.sentence AS text, over, waiting > 0 AS waits
"""

BELIEFS_OVER = """
MATCH (b:Belief)
WHERE b.expired_at <= $before
RETURN count(b) AS n
"""

_LIKELY = f"""
OPTIONAL MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH DISTINCT n, f
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WITH n, f, max(CASE
    WHEN b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now THEN 1 ELSE 0 END) AS holds
WITH n, sum(holds) AS active, collect(CASE WHEN f.evicted IS NULL THEN f.id END) AS facts
RETURN n.id AS id, n.last_seen AS last_seen, n.name AS text, active, facts
"""

ENTITIES = f"""
MATCH (n:Entity)
WHERE id(n) >= $first AND id(n) < $end AND n.evicted IS NULL AND n.last_seen <= $before AND n.created_at <= $before
WITH n{_LIKELY}"""
"""The entities of a page that were last seen by then, with how many facts hold of them and all that are not evicted."""

KEPT = f"""
OPTIONAL MATCH (n:Entity)
WITH count(n) AS entities
OPTIONAL MATCH (n:Entity)
WHERE n.evicted > {OPEN_START}
WITH entities, count(n) AS evicted
RETURN entities - evicted AS n
"""
"""The number of entities that are not evicted."""

EXPIRED_EPISODES = """
MATCH (e:Episode)
WHERE e.expires_at <= $now
WITH e ORDER BY e.at, e.id LIMIT $limit
RETURN e.id AS id, e.content AS text
"""


def _for_each(nodes: str, name: str, body: str) -> str:
    """Return the part of a query that does *body* for each of the list *nodes*, called *name*."""
    return f"""CALL {{
  WITH {nodes}
  UNWIND {nodes} AS {name}
  {body}
}}"""


def _without_words(label: str) -> str:
    """Return the part of a query that takes its words from each node in the list ``going``."""
    return _for_each(
        "going",
        "d",
        f"""MATCH (t:Term)-[p:IN_{label.upper()}]->(d)
  DELETE p
  WITH DISTINCT t
  WHERE indegree(t) + outdegree(t) = 0
  DELETE t""",
    )


_REVISED = "n.revision = coalesce(n.revision, 0) + 1"
_NOT_FOUND = "f.embedding = NULL, f.n = NULL, f.used = NULL, f.used_at = NULL"

EVICT_BELIEFS = f"""
MATCH (b:Belief)
WHERE b.expired_at <= $before
WITH b LIMIT $limit
WITH collect(b) AS gone
{_for_each("gone", "b", "DELETE b")}
RETURN size(gone) AS n
"""

EVICT_FACTS = f"""
UNWIND $facts AS row
MATCH (f:Fact {{id: row.id}})
WHERE f.evicted IS NULL AND f.said_at = row.said_at
WITH f{_WEIGHED}
WHERE over OR ($active AND waiting = 0)
WITH collect(f) AS going
{_for_each("going", "f", "MATCH (f)-[:HELD|PROPOSED]->(b:Belief) DELETE b")}
{_without_words("fact")}
{_for_each("going", "f", f"SET f.evicted = $until, f.evicted_at = $now, {_NOT_FOUND}")}
{_for_each("going", "f", f"MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity) WITH DISTINCT n SET {_REVISED}")}
UNWIND going AS f
RETURN f.id AS id
"""
"""Evict facts that are still what they were when they were found: over, or where ``$active`` whatever they tell.

An episode that says something of the same entities meanwhile is judged anew.
"""

EVICT_ENTITIES = f"""
UNWIND $entities AS row
MATCH (n:Entity {{id: row.id}})
WHERE n.evicted IS NULL AND n.last_seen = row.last_seen
OPTIONAL MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH n, count(f) AS facts, sum(CASE WHEN f IS NULL OR f.evicted IS NOT NULL THEN 0 ELSE 1 END) AS held
WHERE held = 0
WITH collect(n) AS going, collect(n.id) AS ids, collect(CASE WHEN facts = 0 THEN n END) AS unknown,
  collect(CASE WHEN facts > 0 THEN n END) AS known
MATCH (m:Meta {{id: 'schema'}})
WHERE size(going) > 0
SET m.forgotten = coalesce(m.forgotten, 0) + 1, m.communities = coalesce(m.communities, 0) + 1
WITH going, ids, unknown, known
{_without_words("entity")}
{_for_each("going", "n", "MATCH (n)-[r:SIMILAR_TO|HAS_MEMBER]-() WITH DISTINCT r DELETE r")}
{_for_each("going", "n", "MATCH (n)-[:MEANS]->(v) DELETE v")}
{_for_each("unknown", "n", "MATCH (a:Alias)-[:NAMES]->(n) WHERE outdegree(a) = 1 DELETE a")}
{_for_each("known", "n", f"SET n.evicted = $now, n.summary = '', n.stale = NULL, n.n = 0, {_REVISED}")}
{_for_each("unknown", "n", "DELETE n")}
UNWIND ids AS id
RETURN id
"""
"""Evict entities that were not seen meanwhile, and have no fact that is not evicted; one without any is removed.

An episode that is read meanwhile is read anew, and so are communities found anew: they may have to do with these.
"""

HALF_REVIVED = f"""
MATCH (f:Fact)
WHERE f.evicted > {OPEN_START}
WITH f
MATCH (f)-[:HELD|PROPOSED]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
RETURN DISTINCT f.id AS id
LIMIT $limit
"""
"""The evicted facts that are believed again, and not found yet."""
