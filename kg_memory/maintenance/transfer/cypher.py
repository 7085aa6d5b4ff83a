"""Database queries of export and import: they read the graph in pages, and write the lines of an export file.

A page is a range of internal ids. Writing queries return the line number of each row that was written. Internal ids
follow the order of creation, so an imported graph is exported in the same order again.
"""

from __future__ import annotations

from kg_memory.maintenance.transfer.records import INDEXED, NODES, RELATIONS, key_property

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

HAS_CONTENTS = """
MATCH (n)
WHERE NOT n:Meta
WITH n LIMIT 1
RETURN count(n) AS some
"""

LABELS = "CALL db.labels() YIELD label RETURN label AS name"
TYPES = "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name"
COUNT_NODES = "MATCH (n:`{}`) RETURN count(n) AS count"
COUNT_RELATIONS = "MATCH ()-[r:`{}`]->() RETURN count(r) AS count"
"""Queries that count the nodes with a label, and the relations of a type; the name takes the place of ``{}``."""


def _page(label: str) -> str:
    return f"""
MATCH (n:{label})
WHERE id(n) >= $first AND id(n) < $end
WITH n"""


_ENDS = """
MATCH (s:Entity)-[:SUBJECT_OF]->(n)
WITH n, s.id AS subject
MATCH (n)-[:OBJECT_IS]->(o:Entity)
WITH n, subject, o ORDER BY id(o)
WITH n, subject, collect(o.id) AS objects
WITH n, [subject] + objects AS ends"""


def _read_nodes(label: str) -> str:
    """Return the query that reads a page of the nodes with *label*, with their words and vectors, for an export."""
    if label == "Item":
        return f"""{_page(label)}
OPTIONAL MATCH (n)-[:HAS]->(v:Vector)
WITH n, collect(CASE WHEN $embeddings THEN v.embedding END) AS embeddings
RETURN n {{.*}} AS properties, embeddings
ORDER BY id(n)
"""
    if label not in INDEXED:
        return f"{_page(label)}\nRETURN n {{.*}} AS properties\nORDER BY id(n)\n"
    ends, column = (_ENDS, ", ends") if label == "Fact" else ("", "")
    vector, means = ("v", "\nOPTIONAL MATCH (n)-[:MEANS]->(v)") if label == "Entity" else ("n", "")
    return f"""{_page(label)}{ends}
OPTIONAL MATCH (t:Term)-[p:IN_{label.upper()}]->(n)
WITH n{column}, collect(t.s) AS terms, collect(CASE WHEN p IS NOT NULL THEN coalesce(p.f, 1) END) AS counts{means}
RETURN n {{.*, embedding: NULL}} AS properties{column}, terms, counts, {vector}.embedding IS NOT NULL AS embedded,
  CASE WHEN $embeddings THEN {vector}.embedding END AS embedding
ORDER BY id(n)
"""


def _read_relations(type_: str) -> str:
    ends = RELATIONS[type_]
    [page, pattern] = (ends.targets[0], "(m)-[r:{}]->(n)") if ends.page_by_target else (ends.source, "(n)-[r:{}]->(m)")
    source, target = ("m", "n") if ends.page_by_target else ("n", "m")
    keys = ", ".join(dict.fromkeys(f"{target}.{key_property(label)}" for label in ends.targets))
    return f"""{_page(page)}
MATCH {pattern.format(type_)}
RETURN {source}.{key_property(ends.source)} AS source, coalesce({keys}) AS target, r {{.*}} AS properties
ORDER BY id(n), id(m), id(r)
"""


READ = {label: _read_nodes(label) for label in NODES} | {type_: _read_relations(type_) for type_ in RELATIONS}
"""For each node label and relation type, the query that reads one page of its records."""


_RETURN_LINE = "RETURN row.line AS line"


def _write_nodes(label: str) -> str:
    """Return the query that creates the nodes in ``$rows`` with *label*; it skips a node whose key exists already."""
    create = f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:{label} {{{key_property(label)}: row.properties.{key_property(label)}}})
WITH row, old
WHERE old IS NULL
CREATE (n:{label})
SET n = row.properties"""
    if label == "Entity":
        return f"""
UNWIND $rows AS row
OPTIONAL MATCH (old:Entity {{id: row.properties.id}})
OPTIONAL MATCH (same:Entity {{key: row.properties.key}})
WITH row, old, same
WHERE old IS NULL AND same IS NULL
CREATE (n:Entity)
SET n = row.properties
FOREACH (vector IN CASE WHEN row.embedding IS NULL THEN [] ELSE [row.embedding] END |
  CREATE (n)-[:MEANS]->(:Meaning {{embedding: vecf32(vector)}}))
{_RETURN_LINE}"""
    if label == "Item":
        return f"""{create}
FOREACH (vector IN row.embeddings | CREATE (n)-[:HAS]->(:Vector {{embedding: vecf32(vector)}}))
{_RETURN_LINE}"""
    if label == "Fact":
        return f"""{create}, n.embedding = vecf32(row.embedding)
WITH row, n
MATCH (s:Entity {{id: row.ends[0]}})
CREATE (s)-[:SUBJECT_OF]->(n)
WITH row, n
UNWIND row.ends[1..] AS id
MATCH (o:Entity {{id: id}})
CREATE (n)-[:OBJECT_IS]->(o)
WITH row.line AS line, size(row.ends) - 1 AS all, count(o) AS found
WHERE found = all
RETURN line"""
    vector = ", n.embedding = vecf32(row.embedding)" if label in INDEXED else ""
    return f"{create}{vector}\n{_RETURN_LINE}"


def _write_relations(type_: str) -> str:
    """Return the query that creates the relations in ``$rows``; it skips a relation if one of its nodes is missing."""
    ends = RELATIONS[type_]
    source = f"MATCH (a:{ends.source} {{{key_property(ends.source)}: row.source}})"
    if len(ends.targets) == 1:
        [label] = ends.targets
        target = f"MATCH (b:{label} {{{key_property(label)}: row.target}})"
    else:
        found = ", ".join(f"b{place}" for place in range(len(ends.targets)))
        target = "\n".join(
            f"OPTIONAL MATCH (b{place}:{label} {{{key_property(label)}: row.target}})"
            for place, label in enumerate(ends.targets)
        )
        target += f"\nWITH row, a, coalesce({found}) AS b\nWHERE b IS NOT NULL"
    return f"""
UNWIND $rows AS row
{source}
{target}
CREATE (a)-[r:{type_}]->(b)
SET r = row.properties
{_RETURN_LINE}"""


WRITE = {label: _write_nodes(label) for label in NODES} | {type_: _write_relations(type_) for type_ in RELATIONS}
"""For each node label and relation type, the query that writes a batch of its records."""

TERMS = """
UNWIND $terms AS term
MERGE (:Term {s: term})
"""


def _write_words(label: str) -> str:
    return f"""
UNWIND $rows AS row
MATCH (n:{label} {{id: row.id}})
UNWIND row.words AS word
MATCH (t:Term {{s: word.term}})
CREATE (t)-[:IN_{label.upper()} {{f: CASE WHEN word.f <> 1 THEN word.f END}}]->(n)
"""


WRITE_WORDS = {label: _write_words(label) for label in INDEXED}
"""For each label in the word index, the query that writes the words of a batch of nodes."""
