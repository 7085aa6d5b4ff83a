"""Queries about which entities are the same: read an entity with everything linked to it, and move that to another.

Each move is one atomic query. An ``(:Identity)`` node records a merge, a split or a doubt, with its author and time. It
is ABOUT the entities that still exist, and MOVED the facts, episodes, aliases and verdicts that changed entity, which
an undo moves back. It holds no text of users, so no forgotten text stays in it.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.temporal.interval import OPEN_END

ENTITY_NODES = f"""{part.each("e:Entity")}
OPTIONAL MATCH (x:Episode)-[:MENTIONS]->(e)
WITH e, collect(x {{.id, .at}}) AS mentions
OPTIONAL MATCH (e)-[:SUBJECT_OF]->(f:Fact)
WITH e, mentions, collect(f.id) AS subjects
OPTIONAL MATCH (f:Fact)-[:OBJECT_IS]->(e)
WITH e, mentions, subjects, collect(f.id) AS objects
OPTIONAL MATCH (a:Alias)-[:NAMES]->(e)
WITH e, mentions, subjects, objects, collect(a.key) AS aliases
OPTIONAL MATCH (e)-[:DISTINCT_FROM]-(other:Entity)
RETURN {part.ENTITY_MAP} AS entity, coalesce(e.revision, 0) AS revision, mentions, subjects, objects, aliases,
  collect(DISTINCT other.id) AS apart
"""
"""Returns entities with the ids of all that is linked to them."""

NAMED_OR_ID = f"""
MATCH (e:Entity {{id: $name}})
RETURN {part.ENTITY_MAP} AS entity
UNION
MATCH (:Alias {{key: $alias}})-[:NAMES]->(e:Entity)
RETURN {part.ENTITY_MAP} AS entity
"""
"""Returns the entity with the id ``$name``, or the entities with that name."""

FACTS = f"""{part.each("f:Fact")}<-[:SUBJECT_OF]-(s:Entity)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH f, s, collect(DISTINCT o.id) AS objects, collect(DISTINCT o.key) AS object_keys
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WITH f, s, objects, object_keys, collect({{{part.STATEMENT}}}) AS statements
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)
RETURN f {{.id, .predicate, .wording, .family, .sentence, .confidence, .edge_type, .n, .told_by, .said_at}} AS fact,
  s.id AS subject, s.key AS subject_key, objects, object_keys,
  [one IN statements WHERE one.id IS NOT NULL] AS statements,
  collect(DISTINCT v {{.id, .new, .known, .ruling, .refused}}) AS verdicts
"""
"""Returns facts with their subjects, objects, statements and verdicts."""

FACTS_OF_VERDICTS = f"""{part.each("v:Verdict")}<-[:JUDGED]-(f:Fact)
RETURN DISTINCT f.id AS id
"""

NAMES_IN_USE = """
UNWIND $episodes AS id
MATCH (e:Episode {id: id})
UNWIND $names AS name
WITH id, name, toLower(coalesce(e.speaker, '')) AS speaker, toLower(e.content) AS content
WHERE speaker = toLower(name) OR content CONTAINS toLower(name)
RETURN id AS episode, name
"""
"""Returns pairs of an episode of ``$episodes`` and a name of ``$names`` that it contains."""

IDENTITY_MAP = """i {.id, .kind, .state, .by, .at, .reason, .confidence, .created_at, .undone_by, .undone_at,
  .undone_reason, .former_key, .former_type, .former_name, .former_created_at}"""

IDENTITY = f"""{part.each("i:Identity")}
OPTIONAL MATCH (i)-[r:ABOUT]->(e:Entity)
WITH i, collect(CASE WHEN e IS NOT NULL THEN {{role: r.role, entity: {part.ENTITY_MAP}}} END) AS about
OPTIONAL MATCH (i)-[m:MOVED]->(x)
RETURN {IDENTITY_MAP} AS identity, about,
  collect(CASE WHEN x IS NOT NULL THEN {{role: m.role, kept: m.kept, id: coalesce(x.id, x.key), origin: m.origin,
    ruling: m.ruling, refused: m.refused}} END) AS moved
"""
"""Returns identities, the entities that each is about, and what it moved."""

IDENTITIES = f"""
MATCH (i:Identity)
WHERE i.state IN $states AND i.kind IN $kinds
WITH i ORDER BY i.created_at DESC, i.id SKIP $skip LIMIT $limit
OPTIONAL MATCH (i)-[r:ABOUT]->(e:Entity)
WITH i, collect(CASE WHEN e IS NOT NULL THEN {{role: r.role, entity: {part.ENTITY_MAP}}} END) AS about
OPTIONAL MATCH (i)-[m:MOVED]->(f:Fact)
RETURN {IDENTITY_MAP} AS identity, about, count(DISTINCT f) AS facts
ORDER BY identity.created_at DESC, identity.id
"""

KNOWN_OF = f"""{part.each("e:Entity")}-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
WITH DISTINCT id, f ORDER BY f.said_at DESC, f.id
RETURN id, collect(f.sentence)[0..$limit] AS sentences
"""
"""Returns the sentences of the latest believed facts about some entities."""

REASONS_ABOUT = """
MATCH (i:Identity)
RETURN i.id AS id, [text IN [i.by, i.reason, i.undone_by, i.undone_reason] WHERE text IS NOT NULL] AS texts
"""

KNOWN_FACTS = f"""{part.each("e:Entity")}-[:SUBJECT_OF]->(f:Fact)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.invalid_at = {OPEN_END}
WITH DISTINCT id, f ORDER BY f.said_at DESC, f.id
WITH id, collect(f)[0..$limit] AS facts
UNWIND facts AS f
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH id, f, collect([o.name] + o.aliases) AS named ORDER BY id, f.said_at DESC, f.id
RETURN id, f.predicate AS predicate, f.sentence AS sentence, reduce(all = [], own IN named | all + own) AS names
"""
"""Returns the facts about some entities that hold now, latest first, with all names of their objects."""

SPEAKERS = f"""{part.each("e:Entity")}
WITH e
MATCH (e)<-[:MENTIONS]-(x:Episode)
WHERE x.speaker IN [e.name] + e.aliases
RETURN DISTINCT e.id AS id
"""
"""Returns those of some entities that have spoken under one of their names."""

DECIDE_APART = """
MATCH (i:Identity {id: $id})
WHERE i.state = $expected
MATCH (i)-[:ABOUT {role: 'one'}]->(a:Entity)
MATCH (i)-[:ABOUT {role: 'other'}]->(b:Entity)
SET i.state = $state, i += $author
WITH i, a, b
OPTIONAL MATCH (a)-[old:DISTINCT_FROM]-(b)
DELETE old
WITH DISTINCT i, a, b
FOREACH (_ IN CASE WHEN $state = 'apart' THEN [1] ELSE [] END | CREATE (b)-[:DISTINCT_FROM]->(a))
RETURN i.id AS id
"""
"""Marks the two entities of a doubt as distinct, or lets the doubt wait for a decision again."""

_GUARD = """
UNWIND $expected AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN n IS NOT NULL AND n.name = row.name AND n.aliases = row.aliases
    AND coalesce(n.revision, 0) = row.revision AND indegree(n, 'MENTIONS') = row.mentions THEN 0 ELSE 1 END) AS changed
OPTIONAL MATCH (was:Identity {id: $identity.id})
WITH changed, count(was) AS stored, max(was.state) AS state
MATCH (m:Meta {id: 'schema'})
WHERE changed = 0 AND (($before IS NULL AND stored = 0) OR state = $before)
SET m.forgotten = coalesce(m.forgotten, 0) + 1, m.communities = coalesce(m.communities, 0) + 1
MERGE (e:Identity {id: $identity.id})
SET e += $identity
WITH e
"""

_ENTITIES = (
    part.for_each(
        created="""
  CREATE (n:Entity)
  SET n = row.properties
  CREATE (n)-[:MEANS]->(:Meaning {embedding: vecf32(row.embedding)})"""
    )
    + part.SET_ENTITIES
    + part.for_each(entities="MATCH (n:Entity {id: row.id})-[old:SIMILAR_TO]-() DELETE old")
)

_MOVE_PREMISE = """
  MATCH {old}
  MATCH (f:Fact {{id: row.fact}})
  MERGE {new}
  SET moved.stated = r.stated
  DELETE r"""

_FACTS = (
    part.for_each(
        facts=(
            """
  MATCH (old:Fact {id: row.origin})
  CREATE (f:Fact)
  SET f = row.properties, f.embedding = vecf32(row.embedding)
  WITH f, old
  MATCH (t:Term)-[p:IN_FACT]->(old)
  CREATE (t)-[:IN_FACT {f: p.f}]->(f)""",
            """
  MATCH (s)-[:SUBJECT_OF]->(old:Fact {id: row.origin})
  MATCH (f:Fact {id: row.properties.id})
  MERGE (s)-[:SUBJECT_OF]->(f)
  WITH old, f
  MATCH (old)-[:OBJECT_IS]->(o)
  MERGE (f)-[:OBJECT_IS]->(o)""",
        ),
        statements=(
            """
  MATCH (x:Episode {id: row.episode})-[old:STATES]->(:Fact {id: row.origin})
  MATCH (f:Fact {id: row.fact})
  CREATE (x)-[new:STATES]->(f)
  SET new = properties(old)""",
            "MATCH (:Episode {id: row.episode})-[old:STATES]->(:Fact {id: row.origin}) DELETE old",
            _MOVE_PREMISE.format(
                old="(old:Fact {id: row.origin})-[r:RESTS_ON {episode: row.episode}]->(premise)",
                new="(f)-[moved:RESTS_ON {episode: row.episode}]->(premise)",
            ),
            _MOVE_PREMISE.format(
                old="(resting)-[r:RESTS_ON {episode: row.episode}]->(old:Fact {id: row.origin})",
                new="(resting)-[moved:RESTS_ON {episode: row.episode}]->(f)",
            ),
        ),
    )
    + part.SET_EVIDENCE
)


def _moves(name: str, label: str, key: str, pattern: str, create: str) -> str:
    """Return the Cypher fragment that moves relations of one type, such as SUBJECT_OF, from one entity to another."""
    ends = f"MATCH (x:{label} {{{key}: row.id}}) MATCH (n:Entity {{id: row.entity}})"
    return part.for_each(
        **{f"{name}_out": f"{ends} MATCH {pattern} DELETE old", f"{name}_in": f"{ends} MERGE {create}"}
    )


_MOVED = part.for_each(
    moved=tuple(
        f"""
  MATCH (x:{label} {{{key}: row.id}})
  WHERE row.label = '{label}'
  CREATE (e)-[r:MOVED {{role: row.role, kept: row.kept}}]->(x)
  SET r.origin = row.origin, r.ruling = row.ruling, r.refused = row.refused"""
        for label, key in (("Fact", "id"), ("Episode", "id"), ("Alias", "key"), ("Verdict", "id"))
    )
)

_REST = (
    """
CALL {
  WITH e
  OPTIONAL MATCH (e)-[old:ABOUT]->(:Entity)
  DELETE old
}"""
    + part.for_each(
        about="MATCH (n:Entity {id: row.id}) CREATE (e)-[:ABOUT {role: row.role}]->(n)",
        together="""
  MATCH (:Entity {id: row.one})-[old:DISTINCT_FROM]-(:Entity {id: row.other})
  WITH DISTINCT old
  DELETE old""",
    )
    + part.SET_APART
    + part.for_each(
        verdicts="MATCH (v:Verdict {id: row.id}) SET v.ruling = row.ruling, v.refused = row.refused",
        gone_facts="MATCH (:Fact {id: row})-[:HELD|PROPOSED]->(b:Belief) DELETE b",
    )
    + part.delete_nodes("Fact", "gone_facts")
    + part.delete_entities("gone")
    + "\n"
)

MOVE = (
    _GUARD
    + _ENTITIES
    + _FACTS
    + _moves("subjects", "Fact", "id", "(n)-[old:SUBJECT_OF]->(x)", "(n)-[:SUBJECT_OF]->(x)")
    + _moves("objects", "Fact", "id", "(x)-[old:OBJECT_IS]->(n)", "(x)-[:OBJECT_IS]->(n)")
    + _moves("mentions", "Episode", "id", "(x)-[old:MENTIONS]->(n)", "(x)-[:MENTIONS]->(n)")
    + part.for_each(aliases_in="MERGE (:Alias {key: row.id})")
    + _moves("aliases", "Alias", "key", "(x)-[old:NAMES]->(n)", "(x)-[:NAMES]->(n)")
    + part.for_each(aliases_out="MATCH (a:Alias {key: row.id}) WHERE outdegree(a) = 0 DELETE a")
    + """
CALL {
  WITH e
  OPTIONAL MATCH (e)-[old:MOVED]->()
  DELETE old
}"""
    + _MOVED
    + part.REVISE
    + _REST
    + "RETURN e.id AS id"
)
"""Moves what is linked to entities, and records why. Returns no row if anything changed that the move is based on.

Episodes that are being read meanwhile are read again, as they may be about an entity that no longer exists.
"""
