"""The Cypher of key-value pairs: ``(:Pair {id, key, value})``, the key and the value as JSON text."""

from __future__ import annotations

GET = """
UNWIND $ids AS id
MATCH (p:Pair {id: id})
RETURN p.id AS id, p.value AS value
"""

SET = """
UNWIND $pairs AS pair
MERGE (p:Pair {id: pair.id})
SET p.key = pair.key, p.value = pair.value
"""

DELETE = """
UNWIND $ids AS id
MATCH (p:Pair {id: id})
DELETE p
"""

KEYS = """
MATCH (p:Pair)
WHERE p.id > $after AND p.key STARTS WITH $prefix
RETURN p.id AS id, p.key AS key
ORDER BY id
LIMIT $limit
"""
