"""Queries about communities (groups of entities that share many facts).

Facts are read in pages of internal ids, the only order that needs no sort of all facts. A community of level 0
HAS_MEMBER entities; a community of a higher level consists of communities of the level below, each PART_OF it. If a
member joined after the last summary, the time is stored on the relation, as `joined_at`: setting any property of a
community indexes its vector anew.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.queries import usage as spent
from kg_memory.temporal.interval import OPEN_END

# The condition that the belief ``b`` is held and its fact true at ``$now``.
_CURRENT = f"b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now"

LAST_FACT, LAST_ENTITY = part.last_id("Fact"), part.last_id("Entity")

FACTS = f"""
MATCH (f:Fact)
WHERE id(f) >= $first AND id(f) < $end
WITH f
MATCH (f)-[:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WHERE o.id <> s.id
RETURN f.id AS id, s.id AS subject, o.id AS object
"""
"""Returns the facts of a page of ids that are true now: one row for each object and belief."""

ENTITIES = """
MATCH (e:Entity)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.id AS id, e.created_at AS created_at
"""

MEMBERSHIPS = """
MATCH (e:Entity)
WHERE id(e) >= $first AND id(e) < $end
WITH e
MATCH (c:Community)-[m:HAS_MEMBER]->(e)
RETURN c.id AS community, e.id AS entity, m.joined_at IS NOT NULL AS joined
"""
"""Returns the communities of the entities of a page, and whether each entity joined since the last summary."""

STORED = """
MATCH (m:Meta {id: 'schema'})
OPTIONAL MATCH (c:Community)
RETURN coalesce(m.communities, 0) AS revision, collect(c {.id, .fingerprint}) AS stored
"""
"""Returns all stored communities, and how often the communities were written (the revision)."""

WHOLES = """
MATCH (part:Community)-[:PART_OF]->(whole:Community)
RETURN part.id AS part, whole.id AS whole
"""
"""Returns pairs of a community and the higher community that it is a part of."""

MEMBERS = part.each("e:Entity") + " RETURN e.name AS name, e.type AS type, e.summary AS summary"

PARTS = part.each("c:Community") + " RETURN c.id AS id, c.name AS name, c.summary AS summary"

_LINKING = f"""{part.each("e:Entity")}-[:SUBJECT_OF]->(f:Fact)
WITH f
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH f, collect(o.id) AS objects
WHERE all(one IN objects WHERE one IN $ids)
WITH f
MATCH (f)-[:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f, max(b.said_at) AS said_at
ORDER BY said_at DESC, f.id LIMIT $limit
"""

FACTS_AMONG = f"""{_LINKING}
MATCH (f)-[:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f, said_at, b ORDER BY b.invalid_at DESC, b.known_from DESC
WITH f, said_at, collect(b)[0] AS b
RETURN {part.DATED} AS fact ORDER BY said_at DESC, f.id
"""
"""Returns the latest facts that are true now and link only entities of ``$ids``."""

TELL_FACTS_AMONG = f"""{_LINKING}
WITH f, said_at
MATCH (f)-[h:HELD]->(b:Belief)
WHERE {_CURRENT}
WITH f, h, b
{part.TELL_FACTS}
ORDER BY belief.said_at DESC, fact.id
"""
"""Returns the facts of `FACTS_AMONG` as rows for `falkor.rows.to_fact`, with their sources."""

SAVE = (
    spent.ADD_USAGE
    + """
UNWIND $members AS id
OPTIONAL MATCH (e:Entity {id: id})
WITH sum(CASE WHEN e IS NULL THEN 1 ELSE 0 END) AS gone
MATCH (m:Meta {id: 'schema'})
WHERE gone = 0 AND coalesce(m.communities, 0) = $revision
SET m.communities = $revision + 1
WITH m"""
    + part.for_each(
        "m",
        removed="MATCH (c:Community {id: row}) DELETE c",
        strayed="""
  MATCH (c:Community {id: row.community})
  MATCH (e:Entity {id: row.entity})
  WITH c, e
  MATCH (c)-[old:HAS_MEMBER]->(e)
  DELETE old""",
        communities=(
            """
  MERGE (c:Community {id: row.id})
  SET c.name = row.name, c.summary = row.summary, c.fingerprint = row.fingerprint, c.n = row.n, c.level = row.level,
    c.embedding = vecf32(row.embedding)""",
            """
  UNWIND row.members AS id
  MATCH (e:Entity {id: id})
  WITH row, e
  MATCH (other:Community)-[old:HAS_MEMBER]->(e)
  WHERE other.id <> row.id
  DELETE old""",
            """
  MATCH (c:Community {id: row.id})
  UNWIND row.members AS id
  MATCH (e:Entity {id: id})
  MERGE (c)-[member:HAS_MEMBER]->(e)
  SET member.joined_at = NULL""",
            "MATCH (:Community)-[old:PART_OF]->(c:Community {id: row.id}) DELETE old",
            """
  UNWIND row.parts AS id
  MATCH (part:Community {id: id})
  WITH part
  MATCH (part)-[old:PART_OF]->(:Community)
  DELETE old""",
            """
  MATCH (c:Community {id: row.id})
  UNWIND row.parts AS id
  MATCH (part:Community {id: id})
  MERGE (part)-[:PART_OF]->(c)""",
            f"MATCH (c:Community {{id: row.id}}) {part.replace_words('Community', 'c')}",
        ),
    )
    + "\nRETURN m.communities AS revision\n"
)
"""Replaces the communities that changed. No row, and no change, if others wrote communities since, or a member is gone.

Entities that joined meanwhile stay members; the next refresh includes them.
"""

JOIN = f"""
CALL {{
  WITH e
  MATCH (m:Meta {{id: 'schema'}})
  WHERE m.communities > 0
  WITH e
  MATCH (e)-[:STATES]->(f:Fact)
  WITH DISTINCT f
  MATCH (f)-[:HELD]->(b:Belief)
  WHERE {_CURRENT}
  WITH DISTINCT f
  MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(new:Entity)
  WHERE indegree(new, 'HAS_MEMBER') = 0
  WITH DISTINCT f, new
  MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(known:Entity)
  WITH DISTINCT f, new, known
  MATCH (c:Community)-[:HAS_MEMBER]->(known)
  WITH new, c, count(f) AS facts
  ORDER BY facts DESC, c.id
  WITH new, collect(c)[0..1] AS heaviest
  UNWIND heaviest AS c
  CREATE (c)-[:HAS_MEMBER {{joined_at: $now}}]->(new)
}}"""
"""Adds each entity without a community to the community that most facts of the episode ``e`` link it to.

A part of the query that saves the episode.
"""

FIND = """
MATCH (c:Community)
WHERE c.id = $name OR toLower(c.name) STARTS WITH toLower($name)
RETURN c.id AS id
ORDER BY c.id <> $name, coalesce(c.level, 0), c.name, c.id LIMIT 1
"""
"""Returns the community whose id is ``$name``, or else one whose name begins with it."""

ONE = """
MATCH (c:Community {id: $id})
OPTIONAL MATCH (c)-[m:HAS_MEMBER]->(e:Entity)
WITH c, e, m ORDER BY e.name, e.id
WITH c, collect(e.id) AS ids, collect(e.name) AS members, count(m.joined_at) AS joined
OPTIONAL MATCH (part:Community)-[:PART_OF]->(c)
WITH c, ids, members, joined, part ORDER BY part.name, part.id
WITH c, ids, members, joined, collect(part {.id, .name, .summary, .level}) AS parts
OPTIONAL MATCH (c)-[:PART_OF]->(above:Community)
RETURN c {.id, .name, .summary, .level} AS community, ids, members, joined, parts,
  collect(above {.id, .name, .summary, .level}) AS above
"""
"""Returns a community with its members, its parts, and the communities that it is a part of."""

CLAIM = """
MATCH (m:Meta {id: 'schema'})
WITH m, coalesce(m.refreshed_at, 0) AS since
MATCH (e:Episode)
WHERE e.created_at > since
WITH m, count(e) AS episodes
WHERE episodes >= $interval
SET m.refreshed_at = $now
RETURN episodes
"""
"""Claims the refresh due after ``$interval`` new episodes. No row if none is due, or another process claimed it."""

COMMUNITIES = """
MATCH (c:Community)
WHERE $level IS NULL OR coalesce(c.level, 0) = $level
WITH c, coalesce(c.level, 0) AS level, outdegree(c, 'HAS_MEMBER') + indegree(c, 'PART_OF') AS size
ORDER BY level DESC, size DESC, c.name, c.id SKIP $skip LIMIT $limit
OPTIONAL MATCH (c)-[m:HAS_MEMBER]->(e:Entity)
WITH c, level, size, e, m ORDER BY e.name, e.id
WITH c, level, size, collect(e.name) AS members, count(m.joined_at) AS joined
OPTIONAL MATCH (part:Community)-[:PART_OF]->(c)
WITH c, level, size, members, joined, part ORDER BY part.name, part.id
RETURN c {.id, .name, .summary, level: level} AS community, size, members, joined, collect(part.name) AS parts
ORDER BY community.level DESC, size DESC, community.name, community.id
"""
"""Returns a page of communities, highest level and largest first, with the names of their members or parts."""

COMMUNITIES_ABOUT = f"""{part.each("n:Entity")}
MATCH (c:Community)-[:HAS_MEMBER]->(n)
RETURN DISTINCT c {{.id, .name, .summary}} AS community
"""
