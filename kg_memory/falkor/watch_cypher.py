"""The queries of who watches a namespace: they are asked again and again, and each goes by an index.

Times are microseconds since the epoch, days are days since then.
"""

from __future__ import annotations

from kg_memory.falkor import fragments as part

_SEEN = f"""e {{.id, .speaker, .thread, .source_id, .at, .created_at, .status, .reason, .step, .plan,
  attempts: coalesce(e.attempts, 0), .took, content: {part.beginning("e.content")}}}"""

HOW_MANY = """
MATCH (e:Episode)
RETURN count(e) AS episodes
"""
"""How many episodes there are: the database knows it without looking at them."""

STATES = """
MATCH (e:Episode)
WHERE e.status IN $statuses
RETURN e.status AS status, count(e) AS many
"""

SPENT_SINCE = """
MATCH (s:Spent)
WHERE s.day >= $first
RETURN sum(s.calls) AS calls, sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens,
  sum(s.cached_tokens) AS cached_tokens
"""

NEW_EPISODES = f"""
MATCH (e:Episode)
WHERE e.created_at >= $since
WITH e ORDER BY e.created_at LIMIT $limit
RETURN {_SEEN} AS episode
"""

EPISODES_IN = f"""
MATCH (e:Episode)
WHERE e.status IN $statuses
WITH e ORDER BY e.created_at DESC LIMIT $limit
RETURN {_SEEN} AS episode
"""

EPISODES_WITH = f"""
UNWIND $ids AS id
MATCH (e:Episode {{id: id}})
RETURN {_SEEN} AS episode
"""
