"""The queries by which traces of what was forgotten are gathered before it goes, and searched for after."""

from __future__ import annotations

SHARED_WORDS = "UNION".join(
    f"""
UNWIND $words AS word
MATCH (t:Term {{s: word}})
WITH t
MATCH (t)-[:{posting}]->(n:{label})
WHERE NOT n.id IN ${touched}
RETURN DISTINCT t.s AS word
"""
    for posting, label, touched in (
        ("IN_FACT", "Fact", "facts"), ("IN_ENTITY", "Entity", "entities"), ("IN_COMMUNITY", "Community", "gone"),
    )
)  # fmt: skip
"""Which words facts, entities and communities have that are not touched."""

SHARED_NAMES = """
UNWIND $keys AS key
MATCH (a:Alias {key: key})
WITH a
MATCH (a)-[:NAMES]->(n:Entity)
WHERE NOT n.id IN $entities
RETURN DISTINCT a.key AS key
"""

OTHER_REASONS = """
MATCH (v:Verdict)
WHERE NOT (v.new IN $facts OR v.known IN $facts) AND size(coalesce(v.reason, '')) > 0
RETURN DISTINCT v.reason AS text
"""

RELATIONS = """
MATCH (f:Fact)
WHERE NOT f.id IN $gone
UNWIND [f.predicate, f.wording] AS name
WITH DISTINCT name
WHERE name IS NOT NULL
RETURN name
"""

EPISODE_VECTORS = """
UNWIND $ids AS id
MATCH (n:Episode {id: id})
WHERE n.embedding IS NOT NULL
RETURN n.embedding AS vector
"""

FACT_VECTORS = """
UNWIND $ids AS id
MATCH (n:Fact {id: id})
WHERE n.embedding IS NOT NULL
RETURN n.embedding AS vector
"""

ENTITY_VECTORS = """
UNWIND $ids AS id
MATCH (n:Entity {id: id})
MATCH (n)-[:MEANS]->(v)
RETURN v.embedding AS vector
"""

LAST = """
MATCH (n)
RETURN max(id(n)) AS last
"""

SAID = """
MATCH (e:Episode)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.speaker AS speaker, e.content AS content, e.at AS at
"""

SAID_SINCE = """
MATCH (e:Episode)
WHERE e.created_at >= $since
RETURN e.speaker AS speaker, e.content AS content, e.at AS at
"""

MADE_SINCE = "UNION".join(
    f"""
UNWIND $ids AS id
MATCH (n:{label} {{{name}: id}})
WHERE n.created_at >= $since
RETURN DISTINCT id
"""
    for label, name in (
        ("Entity", "id"), ("Entity", "key"), ("Fact", "id"), ("Episode", "id"), ("Belief", "id"), ("Verdict", "id"),
    )
)  # fmt: skip
"""Which ids are those of something that was made since."""

HELD = """
MATCH (n)
WHERE id(n) >= $first AND id(n) < $end
RETURN labels(n)[0] AS label, size(keys(n)) AS properties, [name IN keys(n)
  WHERE typeOf(n[name]) = 'List' OR (typeOf(n[name]) = 'String'
    AND (NOT name IN $coded OR size(toStringOrNull(n[name])) >= $shortest)) | [name, n[name]]] AS held
"""
"""A page of all there is, by internal ids: the texts and the lists, but codes that are too short for an id."""

LINKED = """
MATCH (n)-[r]->()
WHERE id(n) >= $first AND id(n) < $end AND (keys(r) <> ['f'] OR typeOf(r.f) <> 'Integer')
UNWIND keys(r) AS name
WITH type(r) AS label, name, r[name] AS value
WHERE typeOf(value) IN ['String', 'List']
RETURN DISTINCT label, name, value
"""
"""What the relations of a page hold, but numbers. Those of the index of words have how often, and nothing else."""

NAMED = """
UNWIND $keys AS key
MATCH (a:Alias {key: key})
RETURN a.key AS key
"""


def _near(label: str, text: str, speaker: str = "null") -> str:
    return f"""
UNWIND $vectors AS vector
CALL db.idx.vector.queryNodes('{label}', 'embedding', $limit, vecf32(vector)) YIELD node, score
WHERE score < $same
RETURN DISTINCT node.id AS id, node.{text} AS content, {speaker} AS speaker, node.embedding AS vector
"""


NEAR_EPISODES = _near("Episode", "content", "node.speaker")
NEAR_FACTS = _near("Fact", "sentence")
NEAR_ENTITIES = """
UNWIND $vectors AS vector
CALL db.idx.vector.queryNodes('Meaning', 'embedding', $limit, vecf32(vector)) YIELD node, score
WHERE score < $same
MATCH (n)-[:MEANS]->(node)
RETURN DISTINCT n.id AS id, n.name AS content, null AS speaker, node.embedding AS vector
"""
"""What has nearly the vector of what went, with the text that it must be of."""

VECTORS = {"Episode": EPISODE_VECTORS, "Fact": FACT_VECTORS, "Entity": ENTITY_VECTORS}
NEAR = {"Episode": NEAR_EPISODES, "Fact": NEAR_FACTS, "Entity": NEAR_ENTITIES}
