"""Queries for properties of search results by id, which rerankers use, and for the facts and entities around them.

Embeddings stay in the database, which computes the similarities. Long lists are returned as one text, which the client
parses ten times as fast.
"""

from __future__ import annotations

from functools import cache

from kg_memory.falkor.queries import fragments as part
from kg_memory.temporal.interval import OPEN_END, WIDTH

FACTS_TOLD = f"""{part.each("f:Fact")}
RETURN id, f.said_at AS stated_at, coalesce(f.confidence, 1.0) AS confidence, coalesce(f.used, 0.0) AS used,
  coalesce(f.used_at, 0) AS used_at
"""

_LENGTH = f"CASE b.precision {' '.join(f'WHEN {unit!r} THEN {width}' for unit, width in WIDTH.items())} ELSE 0 END"

FACTS_HELD = f"""{part.each("f:Fact")}
WITH f, coalesce(f.kind, 'state') = 'state' AS lasts
{part.MATCH_HELD}
WITH f, b, CASE WHEN lasts OR b.invalid_at < {OPEN_END} THEN b.invalid_at ELSE b.known_from + {_LENGTH} + 1 END AS until
RETURN f.id AS id, collect([b.valid_at, b.known_from, until]) AS periods
"""
"""Returns the periods of facts as start (or open start), time from when the fact is known to hold, and end.

An event or a plan ends with the day, month or year of its date.
"""

EPISODES_TOLD = part.each("d:Episode") + " RETURN id, d.at AS stated_at, coalesce(d.trust, 1.0) AS trust"

FACTS_STATED = f"""{part.each("f:Fact")}
OPTIONAL MATCH (x:Episode)-[:STATES]->(f)
WITH DISTINCT id, x
WITH id, x, coalesce(x.trust, 1.0) AS trust,
  CASE WHEN x IS NOT NULL AND ($thread_key IS NULL OR x.thread_key = $thread_key) THEN 1 ELSE 0 END AS stated
RETURN id, max(trust) AS trust, count(x) AS sources, sum(stated) AS mentions
"""
"""Returns how many episodes state each fact (of one thread and of all), and the highest trust of all of them."""

FACTS_LINK = f"""{part.each("f:Fact")}
OPTIONAL MATCH (x:Episode)-[:STATES]->(f)
WITH id, f, count(DISTINCT x) AS sources
RETURN id, sources + indegree(f, 'RESTS_ON') AS links
"""
"""Returns, for each fact, the number of episodes that state it plus the number of facts that rest on it."""

ENTITIES_LINK = part.each("e:Entity") + " RETURN id, indegree(e, 'OBJECT_IS') + outdegree(e, 'SUBJECT_OF') AS links"
"""Returns the number of facts about each entity, including ended ones."""

EPISODES_LINK = f"""{part.each("d:Episode")}
OPTIONAL MATCH (d)-[:STATES]->(f:Fact)
RETURN id, count(DISTINCT f) AS links
"""
"""Returns the number of facts that each episode states."""

_TOGETHER = "string.join(collect(e.id), ' ') AS entities"

FACTS_JOIN = f"""{part.each("f:Fact")}
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN id, {_TOGETHER}
"""
"""Returns the ids of the subject and the objects of each fact."""

ENTITIES_JOIN = part.each("e:Entity") + " RETURN id, id AS entities"

COMMUNITIES_JOIN = f"""{part.each("d:Community")}
OPTIONAL MATCH (d)-[:HAS_MEMBER]->(e:Entity)
RETURN id, {_TOGETHER}
"""

EPISODES_JOIN = f"""{part.each("d:Episode")}
OPTIONAL MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN id, {_TOGETHER}
"""

_COUNTED = "string.join(collect(id), ' ') AS entities, string.join(collect(toString(mentions)), ' ') AS mentions"

MENTIONED = f"""{part.each("e:Entity")}
WITH id, indegree(e, 'MENTIONS') AS mentions
RETURN {_COUNTED}
"""
"""Returns the number of episodes that mention each entity."""

MENTIONED_IN = f"""
MATCH (x:Episode {{thread_key: $thread_key}})
MATCH (x)-[:MENTIONS]->(e:Entity)
WITH e, count(x) AS mentions
WITH e.id AS id, mentions
RETURN {_COUNTED}
"""
"""Returns in how many episodes of a thread each entity is mentioned. Counting from the entities is ten times slower."""

NEXT_TO = f"""{part.each("n:Entity")}-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH DISTINCT f
{part.MATCH_HELD}
WITH DISTINCT f
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
WITH DISTINCT e LIMIT $limit
RETURN {_TOGETHER}
"""
"""Returns the ids of the entities ``$ids`` and of the entities that true facts link them to."""


def _similarity_query(label: str, match_vector: str = "") -> str:
    """Return a Cypher query that compares the embeddings of all pairs of the nodes ``$ids``."""
    return f"""{part.each(f"d:{label}")}
{match_vector or "WITH d, d AS v"}
WHERE v.embedding IS NOT NULL
WITH collect(d.id) AS ids, collect(v) AS all
UNWIND range(0, size(all) - 1) AS place
WITH ids[place] AS id, all[place] AS v, all[place + 1..] AS others
WITH id, [other IN others | toString(1.0 - vec.cosineDistance(v.embedding, other.embedding))] AS alike
RETURN id, string.join(alike, ' ') AS alike
"""


FACTS_ALIKE = _similarity_query("Fact")
ENTITIES_ALIKE = _similarity_query("Entity", "MATCH (d)-[:MEANS]->(v)")
COMMUNITIES_ALIKE = _similarity_query("Community")
EPISODES_ALIKE = _similarity_query("Episode")

FACTS_READ = f"""{part.each("f:Fact")}
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN id, {_TOGETHER}, collect(e.name) AS names, f.predicate AS predicate, f.sentence AS text
"""
"""Returns the sentences and predicates of facts, with their entities."""

FACTS_SAY = part.each("f:Fact") + " RETURN id, f.sentence AS text, NULL AS name"

EPISODES_SAY = f"""{part.each("d:Episode")}
RETURN id, {part.truncate("d.content")} AS text, d.speaker AS name, d.kind AS kind
"""

ENTITIES_SAY = part.each("e:Entity") + " RETURN id, e.summary AS text, e.name AS name"

COMMUNITIES_SAY = part.each("d:Community") + " RETURN id, d.summary AS text, d.name AS name"

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
"""Returns the average distance of two episodes (NULL for fewer than two) and the speakers, from a sample."""

EPISODE_VECTORS = """
MATCH (d:Episode)
WHERE d.id >= '' AND d.embedding IS NOT NULL
RETURN d.embedding AS vector LIMIT $sample
"""
"""Returns the vectors of some episodes: ids are hashes, so the first by id are a random sample."""


# Links around entities, facts and episodes

LINKS = f"""{part.each("n:Entity")}-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
{part.MATCH_HELD}
WITH DISTINCT id, f
ORDER BY f.said_at DESC, f.id LIMIT $limit
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
WHERE e.id <> id
WITH id, f, collect(DISTINCT e.id) AS ends
ORDER BY f.said_at DESC, f.id, id
RETURN id, f.id AS fact, ends
"""
"""Returns the facts about some entities that hold, latest first, each with its other entities."""

_ENDS = """
WITH DISTINCT d
MATCH (s)-[:SUBJECT_OF]->(d)
MATCH (d)-[:OBJECT_IS]->(o)"""
# The text of facts with their subjects and objects, a line each: both sides handle that faster than rows.
_LINKS = r"string.join(collect(d.id + '\t' + coalesce(d.edge_type, 'semantic') + '\t' + s.id + '\t' + o.id), '\n')"
_STATEMENTS = r"""
CALL {
  WITH facts
  UNWIND facts AS d
  MATCH (x)-[:STATES]->(d)
  WITH d.id + '\t' + x.id + '\t' + replace(coalesce(x.speaker, ''), '\n', ' ') AS statement
  RETURN string.join(collect(statement), '\n') AS statements
}"""
"""The query step that adds `statements`: the episodes that state the facts in the list `facts`, with their speakers."""


def _next_hop(before: str, hop: int, *, unreviewed: bool) -> str:
    """Return the Cypher clauses for hop number *hop* of a graph search, from the entities reached last."""
    return f"""
CALL {{
  WITH {before}, reached
  UNWIND {before} AS e
  UNWIND [e[1], e[2]] AS n
  WITH n, e[0] AS f
  WHERE NOT n.id IN reached
  WITH n, count(DISTINCT f) AS shared ORDER BY shared DESC, n.id LIMIT $neighbours
  RETURN collect(n) AS next
}}
CALL {{
  WITH next
  UNWIND next AS n
  WITH n
  WHERE outdegree(n, 'SUBJECT_OF') + indegree(n, 'OBJECT_IS') <= $hub
  MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(d)
  WITH n, d ORDER BY d.said_at DESC, d.id
  WITH n, collect(d)[..$depth{hop}] AS latest
  UNWIND latest AS d{part.match_believed(unreviewed=unreviewed)}
  WITH n, collect(DISTINCT d)[..$limit{hop}] AS latest
  UNWIND latest AS d{_ENDS}
  RETURN collect([d, s, o]) AS ends{hop}, {_LINKS} AS links{hop}, collect(d) AS more
}}"""


@cache
def walk(hops: int, *, unreviewed: bool = False) -> str:
    """Return the Cypher query for the facts around the entities ``$ids``, up to *hops* facts away.

    The only row has the facts of each hop as text (`links1`, ...) and the messages that state them (`statements`).
    """
    # The first hop sorts for each entity separately: sorting all at once takes three times as long at a hub. Two
    # directed matches take less time than one without direction.
    steps = f"""{part.each("e:Entity")}
CALL {{
  WITH e
  CALL {{
    WITH e
    MATCH (e)-[:SUBJECT_OF]->(d)
    RETURN d
    UNION
    WITH e
    MATCH (d)-[:OBJECT_IS]->(e)
    RETURN d
  }}
  WITH d LIMIT $most
  WITH d ORDER BY abs(d.said_at - $around), d.id LIMIT $depth1{part.match_believed(unreviewed=unreviewed)}
  WITH DISTINCT d LIMIT $limit1
  RETURN d
}}{_ENDS}
WITH collect([d, s, o]) AS ends1, {_LINKS} AS links1, collect(d) AS facts, $ids AS reached"""
    links = "links1"
    for hop in range(2, hops + 1):
        steps += _next_hop(f"ends{hop - 1}", hop, unreviewed=unreviewed)
        links += f", links{hop}"
        steps += f"\nWITH ends{hop}, {links}, facts + more AS facts, reached + [n IN next | n.id] AS reached"
    return f"{steps}{_STATEMENTS}\nRETURN {links}, statements\n"


MENTIONED_BY = f"""{part.each("d:Episode")}
MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN id, collect(e.id) AS entities
"""

_NAMED_IN_FACTS = f"""
CALL {{
  UNWIND $things AS id
  MATCH (e:Entity {{id: id}})
  WHERE e.type <> 'Person' AND indegree(e, 'MENTIONS') <= $most
  WITH e
  MATCH (x:Episode)-[:MENTIONS]->(e)
  MATCH (x)-[:STATES]->(d:Fact)
  WHERE d.sentence CONTAINS e.name
  WITH DISTINCT e, d
  WHERE NOT (d)-[:OBJECT_IS]->(e) AND NOT (e)-[:SUBJECT_OF]->(d)
  MATCH (d)-[h:HELD|PROPOSED]->(b)
  WHERE {part.HOLDS}
  WITH d, collect(DISTINCT e.id) AS entities
  RETURN collect([d.id, entities]) AS named, collect(d) AS more
}}
WITH links, facts + more AS facts, named"""
"""The query step that adds `named`: facts whose sentences name places and things that are not subject or object."""


@cache
def facts_with_links(*, things: bool = False) -> str:
    """Return the Cypher query that reads the subjects, objects and messages of the facts ``$ids``, as one row."""
    return f"""{part.each("d:Fact")}{_ENDS}
WITH {_LINKS} AS links, collect(d) AS facts{_NAMED_IN_FACTS if things else ""}{_STATEMENTS}
RETURN links, statements, {"named" if things else "[] AS named"}
"""


COMMUNITIES_OF = f"""{part.each("e:Entity")}
MATCH (d:Community)-[:HAS_MEMBER]->(e)
RETURN d.id AS id, collect(e.id) AS entities
"""


@cache
def episode_details(*, mentions: bool, nearness: bool) -> str:
    """Return the Cypher query for details of the messages ``$ids``, by which a search ranks them: a row for each."""
    mentioned = """
OPTIONAL MATCH (d)-[:MENTIONS]->(e)
WITH d, max(CASE WHEN e.id IN $entities THEN 1 ELSE 0 END) > 0 AS mentions"""
    near = """CASE WHEN d.id IN $nearest AND d.embedding IS NOT NULL
    THEN 1.0 - vec.cosineDistance(d.embedding, vecf32($vector)) END"""
    return f"""{part.each("d:Episode")}{mentioned if mentions else ""}
RETURN d.id AS id, d.speaker AS speaker, {"mentions" if mentions else "false AS mentions"},
  d.embedding IS NULL AND NOT d.status IN ['done', 'skipped'] AND size(coalesce(d.flags, [])) = 0 AS unread,
  {near if nearness else "NULL"} AS nearness
"""
