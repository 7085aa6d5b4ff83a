"""Queries of export and import: reads by pages of internal ids, and writes that return the `line` of each row written.

Internal ids follow the order in which nodes were created; a graph created again in that order answers in it too.
"""

from __future__ import annotations

LAST = """
MATCH (n)
RETURN max(id(n)) AS last
"""

META = """
MATCH (m:Meta {id: 'schema'})
RETURN m {.*} AS meta
"""

SET_META = """
MATCH (m:Meta {id: 'schema'})
SET m += $meta
"""

SET_CONTENTS = """
UNWIND $rows AS row
MATCH (e:Episode {id: row.id})
SET e.content = row.content
"""

LABELS = "CALL db.labels() YIELD label RETURN label AS name"
RELATIONS = "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name"


def count_nodes(label: str) -> str:
    """Return the query that counts the nodes of *label*."""
    return f"MATCH (n:`{label}`) RETURN count(n) AS count"


def count_relations(relation: str) -> str:
    """Return the query that counts the relations of one kind."""
    return f"MATCH ()-[r:`{relation}`]->() RETURN count(r) AS count"


def _page(label: str) -> str:
    return f"""
MATCH (n:{label})
WHERE id(n) >= $first AND id(n) < $end
WITH n"""


def read_nodes(label: str) -> str:
    """Return the query that reads a page of nodes."""
    return f"{_page(label)}\nRETURN n {{.*}} AS line\nORDER BY id(n)\n"


def read_indexed(label: str, more: str = "", fields: str = "", vector: str = "n") -> str:
    """Return the query that reads a page of nodes with their words and their vector, which is on the node *vector*."""
    return f"""{_page(label)}{more}
OPTIONAL MATCH (t:Term)-[p:IN_{label.upper()}]->(n)
WITH n{fields and ", subject, objects"}, collect(t.s) AS terms,
  collect(CASE WHEN p IS NOT NULL THEN coalesce(p.f, 1) END) AS counts{_means(vector)}
RETURN n {{.*, embedding: NULL{fields}}} AS line, terms, counts, {vector}.embedding IS NOT NULL AS embedded,
  CASE WHEN $embeddings THEN {vector}.embedding END AS embedding
ORDER BY id(n)
"""


def _means(vector: str) -> str:
    return "" if vector == "n" else f"\nOPTIONAL MATCH (n)-[:MEANS]->({vector})"


def read_links(label: str, pattern: str, ends: str) -> str:
    """Return the query that reads the relations ``r`` of a page of nodes to nodes ``m``, in order."""
    return f"{_page(label)}\nMATCH {pattern}\nRETURN r {{.*, {ends}}} AS line\nORDER BY id(n), id(m), id(r)\n"


READ = {
    "entity": read_indexed("Entity", vector="v"),
    "alias": read_links("Alias", "(n)-[r:NAMES]->(m:Entity)", "key: n.key, entity: m.id"),
    "episode": read_indexed("Episode"),
    "mention": read_links("Episode", "(n)-[r:MENTIONS]->(m:Entity)", "episode: n.id, entity: m.id"),
    "next": read_links("Episode", "(n)-[r:NEXT]->(m:Episode)", "before: n.id, after: m.id"),
    "fact": read_indexed(
        "Fact",
        """
MATCH (s:Entity)-[:SUBJECT_OF]->(n)
WITH n, s.id AS subject
MATCH (n)-[:OBJECT_IS]->(o:Entity)
WITH n, subject, o ORDER BY id(o)
WITH n, subject, collect(o.id) AS objects""",
        ", subject: subject, objects: objects",
    ),
    "statement": read_links("Episode", "(n)-[r:STATES]->(m:Fact)", "episode: n.id, fact: m.id"),
    "premise": read_links("Fact", "(n)-[r:RESTS_ON]->(m:Fact)", "fact: n.id, premise: m.id"),
    "belief": f"""{_page("Belief")}
MATCH (f:Fact)-[h:HELD|PROPOSED]->(n)
RETURN n {{.*, fact: f.id, proposed: type(h) = 'PROPOSED'}} AS line
ORDER BY id(n)
""",
    "verdict": read_nodes("Verdict"),
    "decision": f"""{_page("Decision")}
MATCH (v:Verdict)-[:DECIDED]->(n)
RETURN n {{.*, verdict: v.id}} AS line
ORDER BY id(n)
""",
    "identity": read_nodes("Identity"),
    "about": read_links("Identity", "(n)-[r:ABOUT]->(m:Entity)", "identity: n.id, entity: m.id"),
    "moved": f"""{_page("Identity")}
MATCH (n)-[r:MOVED]->(m)
RETURN r {{.*, identity: n.id, fact: CASE WHEN m:Fact THEN m.id END, episode: CASE WHEN m:Episode THEN m.id END,
  verdict: CASE WHEN m:Verdict THEN m.id END, alias: CASE WHEN m:Alias THEN m.key END}} AS line
ORDER BY id(n), id(m), id(r)
""",
    "distinct": read_links("Entity", "(n)-[r:DISTINCT_FROM]->(m:Entity)", "entity: n.id, second: m.id"),
    "predicate": read_nodes("Predicate"),
    "community": read_indexed("Community"),
    "member": read_links("Entity", "(m:Community)-[r:HAS_MEMBER]->(n)", "community: m.id, entity: n.id"),
    "part": read_links("Community", "(n)-[r:PART_OF]->(m:Community)", "community: n.id, whole: m.id"),
    "similar": read_links("Entity", "(n)-[r:SIMILAR_TO]->(m:Entity)", "entity: n.id, other: m.id"),
    "answer": read_nodes("Answer"),
    "spent": read_nodes("Spent"),
    "item": f"""{_page("Item")}
MATCH (n)-[:IN]->(s:Namespace)
OPTIONAL MATCH (n)-[:HAS]->(v:Vector)
WITH n, s, collect(CASE WHEN $embeddings THEN v.embedding END) AS embeddings
RETURN n {{.*, path: s.path, prefixes: s.prefixes}} AS line, embeddings
ORDER BY id(n)
""",
}


def _create(label: str, key: str = "id") -> str:
    return f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:{label} {{{key}: row.properties.{key}}})
WITH row, old
WHERE old IS NULL
CREATE (n:{label})
SET n = row.properties"""


def _create_with_vector(label: str) -> str:
    return f"{_create(label)}, n.embedding = vecf32(row.embedding)"


def _link(source: str, relation: str, target: str, names: tuple[str, str]) -> str:
    return f"""
UNWIND $rows AS row
MATCH (a:{source} {{id: row.{names[0]}}})
MATCH (b:{target} {{id: row.{names[1]}}})
CREATE (a)-[r:{relation}]->(b)
SET r = row.properties
{_RETURN_LINE}"""


_RETURN_LINE = "RETURN row.line AS line"

WRITE = {
    "entity": f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:Entity {{id: row.properties.id}})
OPTIONAL MATCH (same:Entity {{key: row.properties.key}})
WITH row, old, same
WHERE old IS NULL AND same IS NULL
CREATE (n:Entity)
SET n = row.properties
FOREACH (vector IN CASE WHEN row.embedding IS NULL THEN [] ELSE [row.embedding] END |
  CREATE (n)-[:MEANS]->(:Meaning {{embedding: vecf32(vector)}}))
{_RETURN_LINE}""",
    "alias": f"""
UNWIND $rows AS row
MATCH (n:Entity {{id: row.entity}})
MATCH (a:Alias {{key: row.key}})
CREATE (a)-[:NAMES]->(n)
{_RETURN_LINE}""",
    "episode": f"{_create_with_vector('Episode')}\n{_RETURN_LINE}",
    "mention": _link("Episode", "MENTIONS", "Entity", ("episode", "entity")),
    "next": _link("Episode", "NEXT", "Episode", ("before", "after")),
    "fact": f"""{_create_with_vector("Fact")}
WITH row, n
MATCH (s:Entity {{id: row.subject}})
CREATE (s)-[:SUBJECT_OF]->(n)
WITH row, n
UNWIND row.objects AS id
MATCH (o:Entity {{id: id}})
CREATE (n)-[:OBJECT_IS]->(o)
WITH row.line AS line, size(row.objects) AS all, count(o) AS found
WHERE found = all
RETURN line""",
    "statement": _link("Episode", "STATES", "Fact", ("episode", "fact")),
    "premise": _link("Fact", "RESTS_ON", "Fact", ("fact", "premise")),
    "belief": f"""{_create("Belief")}
WITH row, n
MATCH (f:Fact {{id: row.fact}})
FOREACH (_ IN CASE WHEN row.proposed THEN [] ELSE [1] END | CREATE (f)-[:HELD]->(n))
FOREACH (_ IN CASE WHEN row.proposed THEN [1] ELSE [] END | CREATE (f)-[:PROPOSED]->(n))
{_RETURN_LINE}""",
    "verdict": f"""{_create("Verdict")}
WITH row, n
MATCH (one:Fact {{id: row.properties.new}})
MATCH (other:Fact {{id: row.properties.known}})
CREATE (one)-[:JUDGED]->(n)
CREATE (other)-[:JUDGED]->(n)
{_RETURN_LINE}""",
    "decision": f"""{_create("Decision")}
WITH row, n
MATCH (v:Verdict {{id: row.verdict}})
CREATE (v)-[:DECIDED]->(n)
{_RETURN_LINE}""",
    "identity": f"{_create('Identity')}\n{_RETURN_LINE}",
    "about": _link("Identity", "ABOUT", "Entity", ("identity", "entity")),
    "moved": f"""
UNWIND $rows AS row
MATCH (i:Identity {{id: row.identity}})
OPTIONAL MATCH (f:Fact {{id: row.fact}})
OPTIONAL MATCH (x:Episode {{id: row.episode}})
OPTIONAL MATCH (v:Verdict {{id: row.verdict}})
OPTIONAL MATCH (a:Alias {{key: row.alias}})
WITH row, i, coalesce(f, x, v, a) AS m
WHERE m IS NOT NULL
CREATE (i)-[r:MOVED]->(m)
SET r = row.properties
{_RETURN_LINE}""",
    "distinct": _link("Entity", "DISTINCT_FROM", "Entity", ("entity", "second")),
    "predicate": f"{_create('Predicate', 'name')}\n{_RETURN_LINE}",
    "community": f"{_create_with_vector('Community')}\n{_RETURN_LINE}",
    "member": _link("Community", "HAS_MEMBER", "Entity", ("community", "entity")),
    "part": _link("Community", "PART_OF", "Community", ("community", "whole")),
    "similar": _link("Entity", "SIMILAR_TO", "Entity", ("entity", "other")),
    "answer": f"{_create('Answer', 'key')}\n{_RETURN_LINE}",
    "spent": f"{_create('Spent', 'day')}\n{_RETURN_LINE}",
    "item": f"""{_create("Item")}
MERGE (s:Namespace {{id: row.within}})
ON CREATE SET s.path = row.path, s.prefixes = row.prefixes
CREATE (n)-[:IN]->(s)
FOREACH (vector IN row.embeddings | CREATE (n)-[:HAS]->(:Vector {{embedding: vecf32(vector)}}))
{_RETURN_LINE}""",
}

# MERGE and FOREACH would create the nodes in reverse order.
ALIASES = """
UNWIND $keys AS key
OPTIONAL MATCH (old:Alias {key: key})
WITH key, old
WHERE old IS NULL
CREATE (:Alias {key: key})
"""

TERMS = """
UNWIND $terms AS term
MERGE (:Term {s: term})
"""


def postings(label: str) -> str:
    """Return the query that writes the words of nodes of *label*."""
    return f"""
UNWIND $rows AS row
MATCH (n:{label} {{id: row.id}})
UNWIND row.words AS word
MATCH (t:Term {{s: word.term}})
CREATE (t)-[:IN_{label.upper()} {{f: CASE WHEN word.f <> 1 THEN word.f END}}]->(n)
"""


INDEXED = {"entity": "Entity", "episode": "Episode", "fact": "Fact", "community": "Community"}
"""The labels of the records that have words and vectors."""
POSTINGS = {record: postings(label) for record, label in INDEXED.items()}

NOTES = """
MATCH (m:Meta {id: 'schema'})
RETURN m.outbox AS notes
"""

KEEP_NOTES = """
MATCH (m:Meta {id: 'schema'})
SET m.outbox = $notes
"""
