"""The queries that let facts and entities be found again that were evicted."""

from __future__ import annotations

from kg_memory.temporal.interval import OPEN_START

EVICTED = f"""
UNWIND $facts AS id
MATCH (f:Fact {{id: id}})
WHERE f.evicted > {OPEN_START}
RETURN 'fact' AS kind, f.id AS id, [f.sentence] AS texts
UNION ALL
UNWIND $entities AS id
MATCH (e:Entity {{id: id}})
WHERE e.evicted > {OPEN_START}
RETURN 'entity' AS kind, e.id AS id, [e.name] + e.aliases AS texts
"""


_MEANS = "\n  MERGE (d)-[:MEANS]->(v:Meaning)\n  SET v.embedding = vecf32(row.embedding)"


def _with_words(label: str, name: str) -> str:
    vector, later = ("", _MEANS) if label == "entity" else ("d.embedding = vecf32(row.embedding), ", "")
    return f"""
CALL {{
  WITH m
  UNWIND ${name} AS row
  MATCH (d:{label.title()} {{id: row.id}})
  UNWIND row.terms AS term
  MERGE (t:Term {{s: term.term}})
  MERGE (t)-[p:IN_{label.upper()}]->(d)
  SET p.f = term.f
}}
CALL {{
  WITH m
  UNWIND ${name} AS row
  MATCH (d:{label.title()} {{id: row.id}})
  WHERE d.evicted > {OPEN_START}
  SET {vector}d.n = row.n, d.evicted = NULL, d.evicted_at = NULL{later}
}}"""


REVIVE = f"""
MATCH (m:Meta {{id: 'schema'}}){_with_words("fact", "facts")}{_with_words("entity", "entities")}
RETURN m.id AS id
"""
"""Let facts and entities be found again, by their words and what they mean."""
