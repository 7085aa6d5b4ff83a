"""Database queries of reports: numbers of changes in a period, reviews, and what expires or fades.

Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

COUNTS = """
OPTIONAL MATCH (e:Episode)
WHERE e.created_at >= $before AND e.created_at < $until
WITH sum(CASE WHEN e.created_at >= $since THEN 1 ELSE 0 END) AS episodes,
  sum(CASE WHEN e.created_at < $since THEN 1 ELSE 0 END) AS episodes_before
OPTIONAL MATCH (b:Belief)
WHERE b.created_at >= $before AND b.created_at < $until
WITH episodes, episodes_before, sum(CASE WHEN b.created_at >= $since THEN 1 ELSE 0 END) AS recorded,
  sum(CASE WHEN b.created_at < $since THEN 1 ELSE 0 END) AS recorded_before
OPTIONAL MATCH (b:Belief)
WHERE b.expired_at >= $before AND b.expired_at < $until
RETURN episodes, episodes_before, recorded, recorded_before,
  sum(CASE WHEN b.expired_at >= $since THEN 1 ELSE 0 END) AS closed,
  sum(CASE WHEN b.expired_at < $since THEN 1 ELSE 0 END) AS closed_before
"""
"""Count the episodes saved, and the beliefs recorded and closed, in a period and in the period before."""

WAITED = """
MATCH (v:Verdict)
WHERE (v.ruling = 'waiting' OR v.decided) AND v.created_at <= $believed_at
OPTIONAL MATCH (v)-[:DECIDED]->(d:Decision)
WITH v, d ORDER BY d.at
RETURN v.id AS id, v.ruling AS ruling, v.created_at AS created_at, collect(d {.at, .ruling, .before}) AS decisions
ORDER BY created_at, id
"""
"""The verdicts that wait or were decided, with the decisions on each."""

SETTLED = """
MATCH (v:Verdict)
WHERE v.ruling = 'conflicts' AND v.created_at >= $since AND v.created_at < $until
RETURN v.id AS id, v.created_at AS created_at
ORDER BY created_at DESC, id
LIMIT $limit
"""
"""The latest contradictions that were settled without a person in a period."""

EXPIRING = f"""
MATCH (e:Episode)
WHERE e.expires_at > $until AND e.expires_at <= $soon AND e.created_at <= $believed_at
WITH e ORDER BY e.expires_at, e.id LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

FAILED = f"""
MATCH (e:Episode)
WHERE e.status = 'failed' AND e.created_at <= $believed_at
WITH e ORDER BY e.created_at DESC, e.id LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

FADING = f"""
MATCH (f:Fact)
WHERE f.created_at <= $believed_at
MATCH (x:Episode)-[:STATES]->(f)
WHERE x.created_at <= $believed_at AND x.at < $until
WITH f, max(x.at) AS said
WITH f, CASE WHEN f.used_at > said AND f.used_at < $until THEN f.used_at ELSE said END AS last
WITH f, [end IN $ends WHERE last + end >= $since AND last + end < $until] AS passed, last
WHERE size(passed) > 0
MATCH (f)-[h:HELD]->(b:Belief)
WHERE {part.BELIEVED}
WITH f, last, h, b ORDER BY b.known_from DESC
WITH f, last, collect(h)[0] AS h, collect(b)[0] AS b
WITH f, last, h, b ORDER BY last DESC, f.id LIMIT $limit
{part.TELL_FACTS}
ORDER BY fact.id
"""
"""The facts that hold and reached a new state of decay in a period."""

SPEAKERS = """
MATCH (e:Episode)
WHERE e.speaker IS NOT NULL AND e.created_at <= $believed_at
RETURN e.speaker AS speaker, count(e) AS episodes
ORDER BY episodes DESC, speaker
LIMIT 20
"""
