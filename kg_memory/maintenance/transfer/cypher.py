"""The queries of export and import: pages of internal ids, and rows that tell by their `line` that they were written.

Internal ids are the order in which the graph was made; a graph made again in it answers in the same order too.
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


def nodes(label: str) -> str:
    """Return the query that reads a page of nodes."""
    return f"{_page(label)}\nRETURN n {{.*}} AS line\nORDER BY id(n)\n"


def worded(label: str, more: str = "", fields: str = "", vector: str = "n") -> str:
    """Return the query that reads a page of nodes with a vector, which is that of *vector*, and their words."""
    return f"""{_page(label)}{more}
OPTIONAL MATCH (t:Term)-[p:IN_{label.upper()}]->(n)
WITH n{fields and ", subject, objects"}, collect(t.s) AS terms, collect(p.f) AS counts{_means(vector)}
RETURN n {{.*, embedding: NULL{fields}}} AS line, terms, counts, {vector}.embedding IS NOT NULL AS embedded,
  CASE WHEN $embeddings THEN {vector}.embedding END AS embedding
ORDER BY id(n)
"""


def _means(vector: str) -> str:
    return "" if vector == "n" else f"\nOPTIONAL MATCH (n)-[:MEANS]->({vector})"


def links(label: str, pattern: str, ends: str) -> str:
    """Return the query that reads the relations ``r`` of a page of nodes to others, ``m``, in their order."""
    return f"{_page(label)}\nMATCH {pattern}\nRETURN r {{.*, {ends}}} AS line\nORDER BY id(n), id(m), id(r)\n"


READ = {
    "entity": worded("Entity", vector="v"),
    "alias": links("Alias", "(n)-[r:NAMES]->(m:Entity)", "key: n.key, entity: m.id"),
    "episode": worded("Episode"),
    "mention": links("Episode", "(n)-[r:MENTIONS]->(m:Entity)", "episode: n.id, entity: m.id"),
    "next": links("Episode", "(n)-[r:NEXT]->(m:Episode)", "before: n.id, after: m.id"),
    "fact": worded(
        "Fact",
        """
MATCH (s:Entity)-[:SUBJECT_OF]->(n)
WITH n, s.id AS subject
MATCH (n)-[:OBJECT_IS]->(o:Entity)
WITH n, subject, o ORDER BY id(o)
WITH n, subject, collect(o.id) AS objects""",
        ", subject: subject, objects: objects",
    ),
    "statement": links("Episode", "(n)-[r:STATES]->(m:Fact)", "episode: n.id, fact: m.id"),
    "belief": f"""{_page("Belief")}
MATCH (f:Fact)-[h:HELD|PROPOSED]->(n)
RETURN n {{.*, fact: f.id, proposed: type(h) = 'PROPOSED'}} AS line
ORDER BY id(n)
""",
    "verdict": nodes("Verdict"),
    "decision": f"""{_page("Decision")}
MATCH (v:Verdict)-[:DECIDED]->(n)
RETURN n {{.*, verdict: v.id}} AS line
ORDER BY id(n)
""",
    "predicate": nodes("Predicate"),
    "community": worded("Community"),
    "member": links("Entity", "(m:Community)-[r:HAS_MEMBER]->(n)", "community: m.id, entity: n.id"),
    "part": links("Community", "(n)-[r:PART_OF]->(m:Community)", "community: n.id, whole: m.id"),
    "similar": links("Entity", "(n)-[r:SIMILAR_TO]->(m:Entity)", "entity: n.id, other: m.id"),
    "answer": nodes("Answer"),
    "spent": nodes("Spent"),
    "item": f"""{_page("Item")}
MATCH (n)-[:IN]->(s:Namespace)
OPTIONAL MATCH (n)-[:HAS]->(v:Vector)
WITH n, s, collect(CASE WHEN $embeddings THEN v.embedding END) AS embeddings
RETURN n {{.*, path: s.path, prefixes: s.prefixes}} AS line, embeddings
ORDER BY id(n)
""",
}


def _new(label: str, key: str = "id") -> str:
    return f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:{label} {{{key}: row.told.{key}}})
WITH row, old
WHERE old IS NULL
CREATE (n:{label})
SET n = row.told"""


def _with_vector(label: str) -> str:
    return f"{_new(label)}, n.embedding = vecf32(row.embedding)"


def _link(one: str, relation: str, other: str, names: tuple[str, str]) -> str:
    return f"""
UNWIND $rows AS row
MATCH (a:{one} {{id: row.{names[0]}}})
MATCH (b:{other} {{id: row.{names[1]}}})
CREATE (a)-[r:{relation}]->(b)
SET r = row.told
{_WRITTEN}"""


_WRITTEN = "RETURN row.line AS line"

WRITE = {
    "entity": f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:Entity {{id: row.told.id}})
OPTIONAL MATCH (same:Entity {{key: row.told.key}})
WITH row, old, same
WHERE old IS NULL AND same IS NULL
CREATE (n:Entity)
SET n = row.told
FOREACH (vector IN CASE WHEN row.embedding IS NULL THEN [] ELSE [row.embedding] END |
  CREATE (n)-[:MEANS]->(:Meaning {{embedding: vecf32(vector)}}))
{_WRITTEN}""",
    "alias": f"""
UNWIND $rows AS row
MATCH (n:Entity {{id: row.entity}})
MATCH (a:Alias {{key: row.key}})
CREATE (a)-[:NAMES]->(n)
{_WRITTEN}""",
    "episode": f"{_with_vector('Episode')}\n{_WRITTEN}",
    "mention": _link("Episode", "MENTIONS", "Entity", ("episode", "entity")),
    "next": _link("Episode", "NEXT", "Episode", ("before", "after")),
    "fact": f"""{_with_vector("Fact")}
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
    "belief": f"""{_new("Belief")}
WITH row, n
MATCH (f:Fact {{id: row.fact}})
FOREACH (_ IN CASE WHEN row.proposed THEN [] ELSE [1] END | CREATE (f)-[:HELD]->(n))
FOREACH (_ IN CASE WHEN row.proposed THEN [1] ELSE [] END | CREATE (f)-[:PROPOSED]->(n))
{_WRITTEN}""",
    "verdict": f"""{_new("Verdict")}
WITH row, n
MATCH (one:Fact {{id: row.told.new}})
MATCH (other:Fact {{id: row.told.known}})
CREATE (one)-[:JUDGED]->(n)
CREATE (other)-[:JUDGED]->(n)
{_WRITTEN}""",
    "decision": f"""{_new("Decision")}
WITH row, n
MATCH (v:Verdict {{id: row.verdict}})
CREATE (v)-[:DECIDED]->(n)
{_WRITTEN}""",
    "predicate": f"{_new('Predicate', 'name')}\n{_WRITTEN}",
    "community": f"{_with_vector('Community')}\n{_WRITTEN}",
    "member": _link("Community", "HAS_MEMBER", "Entity", ("community", "entity")),
    "part": _link("Community", "PART_OF", "Community", ("community", "whole")),
    "similar": _link("Entity", "SIMILAR_TO", "Entity", ("entity", "other")),
    "answer": f"{_new('Answer', 'key')}\n{_WRITTEN}",
    "spent": f"{_new('Spent', 'day')}\n{_WRITTEN}",
    "item": f"""{_new("Item")}
MERGE (s:Namespace {{id: row.within}})
ON CREATE SET s.path = row.path, s.prefixes = row.prefixes
CREATE (n)-[:IN]->(s)
FOREACH (vector IN row.embeddings | CREATE (n)-[:HAS]->(:Vector {{embedding: vecf32(vector)}}))
{_WRITTEN}""",
}

# A MERGE, and a FOREACH too, makes nodes in the reverse order.
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
CREATE (t)-[:IN_{label.upper()} {{f: word.f}}]->(n)
"""


WORDED = {"entity": "Entity", "episode": "Episode", "fact": "Fact", "community": "Community"}
"""The labels of the records that have words and vectors."""
POSTINGS = {record: postings(label) for record, label in WORDED.items()}

NOTES = """
MATCH (m:Meta {id: 'schema'})
RETURN m.outbox AS notes
"""

KEEP_NOTES = """
MATCH (m:Meta {id: 'schema'})
SET m.outbox = $notes
"""
