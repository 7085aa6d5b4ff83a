"""The queries by which the messages are found that are to be forgotten, in the order in which they came."""

from __future__ import annotations

EPISODE = """
MATCH (e:Episode {id: $id})
RETURN e.id AS id
"""

STATING = """
MATCH (f:Fact {id: $fact})
MATCH (e:Episode)-[:STATES]->(f)
WITH DISTINCT e
RETURN e.id AS id
ORDER BY e.created_at, id
"""

OF_THREAD = """
MATCH (e:Episode {thread_key: $key})
RETURN e.id AS id
ORDER BY e.created_at, id
"""

SPEAKERS = """
MATCH (e:Episode)
WHERE e.speaker IS NOT NULL
RETURN DISTINCT e.speaker AS speaker
"""

OF_SPEAKERS = """
MATCH (e:Episode)
WHERE e.speaker IN $speakers
RETURN e.id AS id
ORDER BY e.created_at, id
"""

OF_SOURCE = """
MATCH (e:Episode)
WHERE e.source = $source
RETURN e.id AS id
ORDER BY e.created_at, id
"""

ENTITY = """
MATCH (n:Entity {id: $id})
RETURN n {.id, .name, .type, .aliases} AS entity
UNION
MATCH (:Alias {key: $alias})-[:NAMES]->(n:Entity)
RETURN n {.id, .name, .type, .aliases} AS entity
"""
"""The entities that have this id, or this name."""

MENTIONING = """
MATCH (n:Entity {id: $id})
MATCH (e:Episode)-[:MENTIONS]->(n)
WITH DISTINCT e
RETURN e.id AS id, e.created_at AS created_at
"""

NAMESAKES = """
MATCH (n:Entity {id: $id})
UNWIND $keys AS key
MATCH (:Alias {key: key})-[:NAMES]->(other:Entity)
WHERE other.id <> n.id
WITH DISTINCT other
MATCH (e:Episode)-[:MENTIONS]->(other)
RETURN DISTINCT e.id AS episode
"""
"""The messages that mention another entity of one of these names."""

LAST_EPISODE = """
MATCH (e:Episode)
RETURN max(id(e)) AS last
"""

PAGE = """
MATCH (e:Episode)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.id AS id, e.speaker AS speaker, e.content AS content, e.created_at AS created_at
"""

WHOLE = """
MATCH (e:Episode {id: $id})
RETURN e {.id, .kind, .content, .speaker, .thread, .source, .source_id, .at, .trust, .created_at} AS episode
"""

COUNTS = """
MATCH (m:Meta {id: 'schema'})
OPTIONAL MATCH (e:Episode)
WITH m, collect(e.id) AS episodes
OPTIONAL MATCH (f:Fact)
WITH m, episodes, collect(f.id) AS facts
OPTIONAL MATCH (n:Entity)
RETURN episodes, facts, collect(n.id) AS entities
"""
"""The ids of all there is."""

THREADS = """
UNWIND $ids AS id
MATCH (e:Episode {id: id})
WHERE e.thread IS NOT NULL
RETURN DISTINCT e.thread AS thread
"""

ALL_THREADS = """
MATCH (e:Episode)
WHERE e.thread IS NOT NULL
RETURN DISTINCT e.thread AS thread
"""
