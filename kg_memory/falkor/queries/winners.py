"""The query for the episodes that a search found, with remarks on what they state and the turns beside them."""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.temporal.interval import OPEN_END

_SAID = "[e {.at, offset: coalesce(e.offset, 0)}] AS said"

_DISPUTED = f"""MATCH (f)-[:JUDGED]->(v:Verdict)
WHERE v.ruling <> 'both' AND v.created_at <= $believed_at
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at
WITH e, f, v, b ORDER BY b.invalid_at DESC
WITH e, f, v, collect(b {{.invalid_at, .end_precision}})[0] AS last
WITH e, f, v, last.invalid_at AS until, last.end_precision AS precision
WITH e, f, v, until, precision, CASE
    WHEN v.ruling = 'waiting' THEN 'disputed'
    WHEN v.ruling = 'refused' AND v.refused = f.id THEN 'refused'
    WHEN v.ruling = 'conflicts' AND until IS NULL THEN 'contradicted'
    WHEN v.ruling = 'conflicts' THEN 'contradicts'
  END AS kind
WHERE kind IS NOT NULL
MATCH (other:Fact)-[:JUDGED]->(v)
WHERE other.id <> f.id
MATCH (x:Episode)-[:STATES]->(other)
WHERE x.created_at <= $believed_at
WITH e, f, kind, until, precision, x, CASE WHEN x.at >= e.at THEN x.at ELSE {OPEN_END} - x.at END AS near
ORDER BY near, x.id
WITH e, f, kind, until, precision, collect(x)[0] AS x
RETURN e.id AS id, kind, f.sentence AS sentence, until, precision, x.id AS by, x.source_id AS by_source_id, {_SAID}
ORDER BY id, kind, sentence"""
"""The disputed facts of an episode, each with the nearest episode after it that states a contradicting fact."""

_REFUSED = """MATCH (f)-[:JUDGED]->(v:Verdict)
WHERE v.new = v.known AND v.ruling = 'refused' AND v.refused_at <= $believed_at AND e.created_at <= v.refused_at
WITH DISTINCT e, f
RETURN e.id AS id, 'refused' AS kind, f.sentence AS sentence, NULL AS until, NULL AS precision, NULL AS by,
  NULL AS by_source_id, [] AS said
ORDER BY id, sentence"""
"""The facts of an episode that were retracted since then."""

_ENDED = f"""MATCH (f)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at
WITH e, f, b ORDER BY b.invalid_at DESC
WITH e, f, collect(b {{.invalid_at, .end_precision}})[0] AS last
WITH e, f, last.invalid_at AS until, last.end_precision AS precision
WHERE until < $until AND until < {OPEN_END}
OPTIONAL MATCH (x:Episode)-[s:STATES]->(f)
WHERE s.invalid_at = until AND x.created_at <= $believed_at
WITH e, f, until, precision, x ORDER BY x.at, x.created_at, x.id
WITH e, f, until, precision, collect(x {{.id, .source_id}}) AS telling,
  sum(CASE WHEN x.id = e.id THEN 1 ELSE 0 END) AS own
WHERE own = 0
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)<-[:JUDGED]-(other:Fact)-[:HELD]->(c:Belief)
WHERE v.ruling = 'supersedes' AND v.created_at <= $believed_at AND other.id <> f.id
  AND c.created_at <= $believed_at AND c.expired_at > $believed_at AND (c.valid_at = until OR c.known_from = until)
OPTIONAL MATCH (y:Episode)-[t:STATES]->(other)
WHERE y.created_at <= $believed_at AND y.id <> e.id
WITH e, f, until, precision, telling, y, CASE WHEN t.valid_at = until THEN 0 WHEN y.at >= e.at THEN 1 ELSE 2 END AS near
ORDER BY near, y.at, y.id
WITH e, f, until, precision, telling, collect(y {{.id, .source_id}}) AS next
WITH e, f, until, precision, coalesce(telling[0], next[0]) AS x
RETURN e.id AS id, 'ended' AS kind, f.sentence AS sentence, until, precision, x.id AS by, x.source_id AS by_source_id,
  {_SAID}
ORDER BY id, sentence"""
"""The ended facts of an episode, each with the first episode that states the end, or else that states what came next.

Among the latter an episode that states when the next fact began is best, then one after the episode itself. An episode
that states the end itself has no row.
"""
_COLUMNS = ("id", "kind", "sentence", "until", "precision", "by", "by_source_id", "said")


def _remarks(ids: str, remarks: str) -> str:
    """Return the step that adds the list *remarks* on the episodes of the list *ids*."""
    first = "WITH stated\nUNWIND stated AS pair\nWITH pair[0] AS e, pair[1] AS f\n"
    branches = "\nUNION ALL\n".join(first + each for each in (_DISPUTED, _REFUSED, _ENDED))
    return f"""
CALL {{
  WITH {ids}
  UNWIND {ids} AS id
  MATCH (e:Episode {{id: id}})-[:STATES]->(f:Fact)
  WITH DISTINCT e, f
  RETURN collect([e, f]) AS stated
}}
CALL {{
  WITH stated
  CALL {{
{branches}
  }}
  RETURN collect({{{", ".join(f"{name}: {name}" for name in _COLUMNS)}}}) AS {remarks}
}}"""


def _of_another(turn: str) -> str:
    """Return *turn* beside the message ``e`` of another speaker, as far as searches may show it; else null."""
    return f"""CASE WHEN {turn}.kind = 'message' AND e.kind = 'message' AND {turn}.speaker <> e.speaker
    AND abs({turn}.at - e.at) <= $gap AND {turn}.created_at <= $believed_at AND size({turn}.content) <= $length
    AND (size(coalesce({turn}.flags, [])) = 0 OR {turn}.status = 'done')
    AND ({turn}.expires_at IS NULL OR {turn}.expires_at > timestamp() * 1000)
  THEN {turn} {{.id, .source_id, .speaker, .content}} END"""


# As for `search._WITH_NEIGHBOURS`, no WHERE stands behind OPTIONAL MATCH.
EPISODES_WITH_REMARKS = f"""
WITH $ids AS ids{_remarks("ids", "first")}
WITH ids, first, [remark IN first WHERE remark.by IS NOT NULL AND NOT remark.by IN ids | remark.by] AS others
{_remarks("others", "second")}
WITH ids + others AS ids, first + second AS remarks
UNWIND ids AS id
WITH DISTINCT id, remarks
MATCH (e:Episode {{id: id}})
WHERE e.expires_at IS NULL OR e.expires_at > timestamp() * 1000
OPTIONAL MATCH (p)-[:NEXT]->(e)
OPTIONAL MATCH (e)-[:NEXT]->(n)
RETURN {part.EPISODE_MAP} AS episode, [remark IN remarks WHERE remark.id = id] AS remarks,
  {_of_another("p")} AS before, {_of_another("n")} AS after
"""
"""Unexpired episodes and those that remarks on them refer to, with remarks, and the turns of others beside each."""
