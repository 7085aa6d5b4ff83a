"""The ledger: what was spent in a namespace, a node a day (days since the epoch, UTC).

It is written and read by queries that run anyway: `ADD` stands before what they do, `before` before what they return.
"""

from __future__ import annotations

from typing import Any

NEVER = 10**9
"""A day that does not come."""
NOTHING: dict[str, Any] = {"spent": []}
"""The parameter of `ADD` by itself; a run puts in what it spent."""
UNASKED: dict[str, Any] = {"spent_since": NEVER, "spent_today": NEVER}
"""The parameters of `BEFORE` by themselves; a run that has a budget puts in what it counts."""
COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")

_SUMS = ", ".join(f"sum(s.{each})" for each in COUNTS)
_SUMS_TODAY = ", ".join(f"sum(CASE WHEN s.day = $spent_today THEN s.{each} END)" for each in COUNTS)

ADD = f"""
CALL {{
  UNWIND $spent AS row
  MERGE (s:Spent {{day: row.day}})
  SET {", ".join(f"s.{each} = coalesce(s.{each}, 0) + row.{each}" for each in COUNTS)}
}}"""
"""Add what a run spent. What follows it may find that it is to write nothing; what was spent is spent."""

LEDGER = f"{{since: [{_SUMS}], today: [{_SUMS_TODAY}]}} AS ledger"


def before(*carried: str) -> str:
    """Return the clauses that read the ledger as `ledger`, and carry these names along."""
    return f"""
OPTIONAL MATCH (s:Spent)
WHERE s.day >= $spent_since
WITH {", ".join((*carried, LEDGER))}"""


READ_LEDGER = f"""
OPTIONAL MATCH (s:Spent)
WHERE s.day >= $spent_since
RETURN {LEDGER}
"""

KNOWN = """
UNWIND $ids AS id
MATCH (e:Episode {id: id})
WHERE e.status IN $statuses
RETURN e.id AS id
"""
"""Which of some episodes are there, in one of these states."""

TOOK = """
MATCH (e:Episode)
WHERE e.status = 'done' AND e.plan = $plan AND e.took[0] > 0
WITH e.took AS took ORDER BY e.created_at DESC LIMIT $limit
RETURN count(took) AS episodes, avg(took[3]) AS seconds,
  [avg(took[0]), avg(took[1]), avg(took[2])] AS all, [avg(took[4]), avg(took[5]), avg(took[6])] AS reading
"""
"""What the episodes that were read last by a plan took, on average: calls, tokens in and out, seconds."""

SPENT = f"""
MATCH (s:Spent)
WHERE s.day >= $first AND s.day <= $last
RETURN s.day AS day, {", ".join(f"coalesce(s.{each}, 0) AS {each}" for each in COUNTS)}
ORDER BY day DESC
"""
