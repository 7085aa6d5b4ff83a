"""Queries of the links around entities, facts and episodes."""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

LINKS = f"""
UNWIND $ids AS id
MATCH (n:Entity {{id: id}})-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH DISTINCT id, f
ORDER BY f.said_at DESC, f.id LIMIT $limit
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
WHERE e.id <> id
WITH id, f, collect(DISTINCT e.id) AS ends
ORDER BY f.said_at DESC, f.id, id
RETURN id, f.id AS fact, ends
"""
"""The facts of some entities that hold, the latest first, each with its other entities."""

_ENDS = """
WITH DISTINCT d
MATCH (s)-[:SUBJECT_OF]->(d)
MATCH (d)-[:OBJECT_IS]->(o)"""


def _links(ends: str) -> str:
    """Return the text of the list *ends* of facts with their subjects and objects, a line for each.

    One text takes both sides less time than rows and lists.
    """
    link = r"e[0].id + '\t' + coalesce(e[0].edge_type, 'semantic') + '\t' + e[1].id + '\t' + e[2].id"
    return rf"string.join([e IN {ends} | {link}], '\n')"


_STATEMENTS = r"""
CALL {
  WITH facts
  UNWIND facts AS d
  MATCH (x)-[:STATES]->(d)
  WITH d.id + '\t' + x.id + '\t' + replace(coalesce(x.speaker, ''), '\n', ' ') AS statement
  RETURN string.join(collect(DISTINCT statement), '\n') AS statements
}"""
"""The step that adds `statements`, the episodes that state the nodes in the list `facts`, with their speakers."""


def _near(entity: str, hop: int, *, unreviewed: bool) -> str:
    # Sorted for each entity separately, where a limit keeps it short: all at once takes three times as long at a hub.
    # Facts that hold come in that order; sorting again would cost a third.
    return f"""CALL {{
  WITH {entity}
  MATCH ({entity})-[:SUBJECT_OF|OBJECT_IS]-(d)
  WITH d LIMIT $most
  WITH d ORDER BY d.said_at DESC, d.id LIMIT $depth{hop}{part.match_believed(unreviewed=unreviewed)}
  WITH DISTINCT d LIMIT $limit{hop}
  RETURN d
}}"""


def walk(hops: int, *, unreviewed: bool = False) -> str:
    """Return the query that walks so many *hops* from the entities ``$ids``: `links1`, `links2` ..., and `statements`.

    A hop goes along the latest ``$limit1`` true facts of each entity, of the latest ``$depth1``; of an entity with more
    than ``$most`` facts, of any ``$most``. Each further hop starts from the ``$neighbours`` entities that share most
    facts with those before, without those that have more than ``$hub`` facts.
    """
    steps = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
{_near("e", 1, unreviewed=unreviewed)}{_ENDS}
WITH collect([d, s, o]) AS ends1, collect(DISTINCT d) AS facts, $ids AS reached"""
    ends = "ends1"
    for hop in range(2, hops + 1):
        steps += f"""
CALL {{
  WITH ends{hop - 1}, reached
  UNWIND ends{hop - 1} AS e
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
  {_near("n", hop, unreviewed=unreviewed)}{_ENDS}
  RETURN collect([d, s, o]) AS ends{hop}, collect(DISTINCT d) AS more
}}
WITH {ends}, ends{hop}, facts + more AS facts, reached + [n IN next | n.id] AS reached"""
        ends += f", ends{hop}"
    links = ", ".join(f"{_links(f'ends{hop}')} AS links{hop}" for hop in range(1, hops + 1))
    return f"{steps}{_STATEMENTS}\nRETURN {links}, statements\n"


MENTIONED_BY = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
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
WITH ends, facts + more AS facts, named"""
"""The step that adds `named`, the facts whose sentences name places and things that are not among their ends."""


def facts_with_links(*, things: bool = False) -> str:
    """Return the query for `links` and `statements` of the facts ``$ids``, and with *things* for `named`."""
    return f"""
UNWIND $ids AS id
MATCH (d:Fact {{id: id}}){_ENDS}
WITH collect([d, s, o]) AS ends, collect(DISTINCT d) AS facts{_NAMED_IN_FACTS if things else ""}{_STATEMENTS}
RETURN {_links("ends")} AS links, statements, {"named" if things else "[] AS named"}
"""


COMMUNITIES_OF = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
MATCH (d:Community)-[:HAS_MEMBER]->(e)
RETURN d.id AS id, collect(e.id) AS entities
"""


def episode_signs(*, mentions: bool, nearness: bool) -> str:
    """Return the query for the speakers of the episodes ``$ids``, and whether they are not read yet.

    With *mentions*, for whether they mention one of ``$entities``; with *nearness*, for the cosine similarity of those
    of ``$nearest`` to ``$vector``.
    """
    mentioned = """
OPTIONAL MATCH (d)-[:MENTIONS]->(e)
WITH d, max(CASE WHEN e.id IN $entities THEN 1 ELSE 0 END) > 0 AS mentions"""
    near = """CASE WHEN d.id IN $nearest AND d.embedding IS NOT NULL
    THEN 1.0 - vec.cosineDistance(d.embedding, vecf32($vector)) END"""
    return f"""
UNWIND $ids AS id
MATCH (d:Episode {{id: id}}){mentioned if mentions else ""}
RETURN d.id AS id, d.speaker AS speaker, {"mentions" if mentions else "false AS mentions"},
  d.embedding IS NULL AND NOT d.status IN ['done', 'skipped'] AND size(coalesce(d.flags, [])) = 0 AS unread,
  {near if nearness else "NULL"} AS nearness
"""
