"""The queries about episodes that wait for others, to be read with them."""

from __future__ import annotations

from kg_memory.falkor import fragments as part

KEEP_AHEAD = """
UNWIND $episodes AS row
MATCH (e:Episode {id: row.id})
WHERE NOT e.status IN ['done', 'skipped']
SET e.answers = coalesce(e.answers, []) + [$key, row.kept]
"""
"""Keep what was asked ahead about some episodes, until they are done."""

WAIT = f"""
MATCH (e:Episode {{id: $id}})
WHERE NOT e.status IN ['done', 'skipped']
SET e.status = 'waiting', e.reason = $reason, e.step = NULL
WITH e
MATCH (w:Episode {{status: 'waiting'}})
WHERE w.thread_key = e.thread_key AND w.reason = $reason
WITH DISTINCT w AS e
ORDER BY e.created_at
RETURN {part.EPISODE_MAP} AS episode
"""
"""Let an episode wait for others of its thread, and return those that do, the first to arrive first."""

WAITING = f"""
MATCH (e:Episode {{status: 'waiting'}})
WHERE e.reason = $reason
WITH e ORDER BY e.created_at
RETURN {part.EPISODE_MAP} AS episode
"""
"""All episodes that wait for others, the first to arrive first."""
