"""Queries about usage: the ledger (counts of model calls and tokens, one node a day), and the contents of a namespace.

Days are days since the epoch in UTC, times microseconds. The ledger is written and read by queries that run anyway:
`ADD_USAGE` is put before their other clauses, `read_ledger_before` before their RETURN.
"""

from __future__ import annotations

from kg_memory.falkor.wire import Params
from kg_memory.temporal.interval import OPEN_END, OPEN_START

NEVER = 10**9  # a day that never comes
NO_USAGE: Params = {"spent": []}
"""The default parameter of `ADD_USAGE`; a run fills in what it spent."""
NO_LEDGER: Params = {"spent_since": NEVER, "spent_today": NEVER}
"""The default parameters of `read_ledger_before`; a run with a budget fills in its period."""
COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")

_SUMS = ", ".join(f"sum(s.{count})" for count in COUNTS)
_SUMS_TODAY = ", ".join(f"sum(CASE WHEN s.day = $spent_today THEN s.{count} END)" for count in COUNTS)

ADD_USAGE = f"""
CALL {{
  UNWIND $spent AS row
  MERGE (s:Spent {{day: row.day}})
  SET {", ".join(f"s.{count} = coalesce(s.{count}, 0) + row.{count}" for count in COUNTS)}
}}"""
"""Adds what a run spent, even if the rest of the query writes nothing."""

LEDGER = f"{{since: [{_SUMS}], today: [{_SUMS_TODAY}]}} AS ledger"


def read_ledger_before(*carried: str) -> str:
    """Return Cypher clauses, to be put before RETURN, that read the counts of model calls and tokens as ``ledger``."""
    return f"""
OPTIONAL MATCH (s:Spent)
WHERE s.day >= $spent_since
WITH {", ".join((*carried, LEDGER))}"""


READ_LEDGER = f"""
OPTIONAL MATCH (s:Spent)
WHERE s.day >= $spent_since
RETURN {LEDGER}
"""

DAILY_USAGE = f"""
MATCH (s:Spent)
WHERE s.day >= $first AND s.day <= $last
RETURN s.day AS day, {", ".join(f"coalesce(s.{count}, 0) AS {count}" for count in COUNTS)}
ORDER BY day DESC
"""

_COUNTED = (
    "MATCH (e:Episode) WHERE e.status IN ['saved', 'waiting', 'working'] RETURN count(e) AS waiting",
    "MATCH (e:Episode {status: 'failed'}) RETURN count(e) AS failed",
    """MATCH (e:Episode {status: 'skipped'})
  RETURN count(e) AS all_skipped, sum(CASE WHEN e.kind = 'block' THEN 1 ELSE 0 END) AS blocks""",
    "MATCH (e:Episode) WHERE e.kind = 'message' RETURN count(e) AS messages",
    f"MATCH (n:Entity) WHERE n.evicted > {OPEN_START} RETURN count(n) AS evicted_entities",
    f"""MATCH (b:Belief)
  WHERE b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now
  RETURN sum(indegree(b, 'HELD')) AS current_facts""",
    "MATCH (v:Verdict {ruling: 'waiting'}) RETURN count(v) AS reviews",
)
_COUNT_ALL = "".join(f"\nCALL {{\n  {count}\n}}" for count in _COUNTED)
STATS = f"""
CALL db.meta.stats() YIELD labels{_COUNT_ALL}
OPTIONAL MATCH (m:Meta {{id: 'schema'}})
RETURN coalesce(labels.Episode, 0) - blocks AS episodes, messages, blocks, waiting, failed,
  all_skipped - blocks AS skipped, coalesce(labels.Entity, 0) - evicted_entities AS entities,
  coalesce(labels.Fact, 0) AS facts, current_facts,
  coalesce(labels.Community, 0) AS communities, reviews, m.paused IS NOT NULL AS paused
"""
"""Returns counts of what a namespace holds; counts of whole labels come from the database's own statistics.

In a graph that is still being made, some labels are missing and count as 0.
"""

CAUSES = """
UNWIND $instants AS at
MATCH (b:Belief {created_at: at})
RETURN at, min(b.cause) AS cause
"""
"""Returns, for some times, the episode or decision that caused the beliefs recorded then."""

SAVED_LATER = """
MATCH (e:Episode)
WHERE e.created_at > $now
WITH e LIMIT 1
RETURN count(e) AS some
"""
"""Returns whether an episode was saved later than ``$now``, because of a wrong clock."""
