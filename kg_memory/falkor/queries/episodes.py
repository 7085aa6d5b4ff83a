"""Queries about episodes (stored messages and texts): save them, their status, lists of them, and remarks on them.

Times are microseconds since the epoch.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.queries import usage as spent
from kg_memory.models.graph import OUTCOMES
from kg_memory.temporal.interval import OPEN_END

NEIGHBOURS = f"""
MATCH (e:Episode {{thread_key: $thread_key}})
WHERE e.id <> $id AND e.at <= $at AND (e.at < $at OR e.created_at <= $created_at) AND coalesce(e.kind, '') <> 'block'
WITH e ORDER BY e.at DESC, e.created_at DESC LIMIT $limit
RETURN -1 AS side, e.id AS id, e.kind AS kind, e.speaker AS speaker, e.at AS at, coalesce(e.offset, 0) AS offset,
  {part.truncate("e.content")} AS content,
  size(coalesce(e.flags, [])) > 0 AND e.status <> 'done'
    OR e.status = 'skipped' AND coalesce(e.reason, '') = $refused AS withheld
UNION ALL
MATCH (e:Episode {{thread_key: $thread_key}})
WHERE e.id <> $id AND e.at >= $at AND (e.at > $at OR e.created_at > $created_at) AND coalesce(e.kind, '') <> 'block'
WITH e ORDER BY e.at, e.created_at LIMIT 2
RETURN 1 AS side, e.id AS id, e.kind AS kind, e.speaker AS speaker, e.at AS at, coalesce(e.offset, 0) AS offset,
  {part.truncate("e.content")} AS content, false AS withheld
"""

PREVIOUS_STATUSES = """
MATCH (e:Episode {thread_key: $thread_key})
WHERE e.id <> $id AND e.at <= $at AND (e.at < $at OR e.created_at <= $created_at) AND coalesce(e.kind, '') <> 'block'
RETURN e.status AS status ORDER BY e.at DESC, e.created_at DESC LIMIT $limit
"""
"""Returns the statuses of the latest episodes before ``$id`` in its thread."""

SAVE_EPISODE = (
    """
UNWIND $around AS id
OPTIONAL MATCH (d:Episode {id: id})
WITH sum(CASE WHEN d IS NULL THEN 1 ELSE 0 END) AS gone
MATCH (m:Meta {id: 'schema'})
WHERE gone = 0
OPTIONAL MATCH (old:Episode {id: $episode.id})
WITH m, old
WHERE m.paused IS NULL OR old IS NOT NULL
MERGE (e:Episode {id: $episode.id})
WITH m, e, e.status IS NULL AS new
WHERE size(labels(e)) > 0
FOREACH (_ IN CASE WHEN new THEN [1] ELSE [] END | SET e = $episode)
WITH m, e, new
CALL {
  WITH e, new
  UNWIND CASE WHEN new THEN $lengths ELSE [] END AS row
  MATCH (d:Episode {id: row.id})
  SET d.n = coalesce(d.n, 0) + row.n
}
CALL {
  WITH e, new
  UNWIND CASE WHEN new THEN $postings ELSE [] END AS row
  MERGE (t:Term {s: row.term})
  WITH t, row
  UNWIND row.in AS place
  MATCH (d:Episode {id: place.id})
  MERGE (t)-[p:IN_EPISODE]->(d)
  ON CREATE SET p.f = CASE WHEN place.f <> 1 THEN place.f END
  ON MATCH SET p.f = coalesce(p.f, 1) + place.f
}
CALL {
  WITH e, new
  MATCH (p:Episode {thread_key: e.thread_key})
  WHERE new AND p.at <= e.at AND (p.at < e.at OR p.created_at < e.created_at
    OR (p.created_at = e.created_at AND p.id < e.id))
  WITH e, p ORDER BY p.at DESC, p.created_at DESC, p.id DESC LIMIT 1
  MERGE (p)-[:NEXT]->(e)
}
CALL {
  WITH e, new
  MATCH (n:Episode {thread_key: e.thread_key})
  WHERE new AND n.at >= e.at AND (n.at > e.at OR n.created_at > e.created_at
    OR (n.created_at = e.created_at AND n.id > e.id))
  WITH e, n ORDER BY n.at, n.created_at, n.id LIMIT 1
  OPTIONAL MATCH (:Episode)-[old:NEXT]->(n)
  DELETE old
  WITH DISTINCT e, n
  MERGE (e)-[:NEXT]->(n)
}
WITH m, e, new, $reading AND NOT e.status IN ['done', 'skipped'] AS begun,
  CASE WHEN e.status = 'working' THEN e.reader END AS reader, coalesce(e.reading_since, 0) AS reading_since
SET e.reader = CASE WHEN begun THEN $reader ELSE e.reader END,
  e.reading_since = CASE WHEN begun THEN $begun_at ELSE e.reading_since END,
  e.status = CASE WHEN begun THEN 'working' ELSE e.status END,
  e.attempts = coalesce(e.attempts, 0) + CASE WHEN begun THEN 1 ELSE 0 END, e.flags = $episode.flags,
  e.reason = CASE WHEN begun THEN NULL ELSE e.reason END, e.step = CASE WHEN begun THEN NULL ELSE e.step END
WITH m, e, new, reader, reading_since"""
    + spent.read_ledger_before("m", "e", "new", "reader", "reading_since")
    + """
RETURN new, reader, reading_since, coalesce(e.interrupted, 0) AS interrupted, ledger,
  e.status AS status, e.content AS content, e.kind AS kind, e.at AS at, e.speaker AS speaker,
  e.created_at AS created_at, e.thread AS thread, e.thread_key AS thread_key, e.source AS source, e.trust AS trust,
  coalesce(e.offset, 0) AS offset, coalesce(m.forgotten, 0) AS forgotten, coalesce(e.answers, []) AS answers
"""
)
"""Saves an episode, marks it as being read, and returns how often something was forgotten so far.

`reader` in the result is the process that began to read it before and did not finish.

Returns no row if an episode around it was deleted, or if it is new and the namespace is paused. The condition on the
labels of the new node is always true: asking for them makes FalkorDB move new nodes to where it looks labels up, which
every writing query would otherwise wait for, 4 ms at 250,000 nodes. See docs/decisions.md.
"""

PAUSE = """
MATCH (m:Meta {id: 'schema'})
WITH m, m.paused IS NOT NULL AS before
SET m.paused = CASE WHEN $paused THEN coalesce(m.paused, $now) END
RETURN before
"""

PAUSED = """
MATCH (m:Meta {id: 'schema'})
WHERE m.paused IS NOT NULL
RETURN m.paused AS since
"""

KEEP_ANSWER = f"""{spent.ADD_USAGE}
MATCH (e:Episode {{id: $id}})
WHERE NOT e.status IN ['done', 'skipped']
SET e.answers = coalesce(e.answers, []) + [$key, $answer]
"""
"""Caches a model's answer about an episode until the episode is done, so that a crash does not cost it twice."""

MARK = f"""{spent.ADD_USAGE}
MATCH (e:Episode {{id: $id}})
WHERE NOT e.status IN ['done', 'skipped']
SET e.status = $status, e.reason = $reason, e.step = $step, e.answers = CASE WHEN $kept THEN e.answers END,
  e.interrupted = $interrupted, e.reader = NULL
"""
"""Records why an episode could not be read to its end, and at which step."""

INTERRUPTED = """
MATCH (e:Episode {id: $id})
SET e.interrupted = $interrupted
"""
"""Records how often a process ended while it read the episode."""

HAND_BACK = f"""{part.each("e:Episode")}
WHERE e.status = 'working' AND e.reader = $reader
SET e.status = 'waiting', e.reason = $reason, e.reader = NULL
"""
"""Makes episodes wait that this process began to read, and will not read because of an outage."""

REOPEN = f"""{part.each("e:Episode")}
WHERE e.status IN $statuses
SET e.status = 'saved', e.reason = NULL, e.step = NULL, e.interrupted = NULL
"""

SHALLOW = """
MATCH (e:Episode)
WHERE e.status IN $statuses AND coalesce(e.kind, '') <> 'block' AND coalesce(e.plan, '') IN $plans
  AND (e.status = 'done' OR size(coalesce(e.flags, [])) = 0)
WITH e ORDER BY e.at, e.created_at LIMIT $limit
RETURN e.id AS id, e.status AS status
"""
"""Returns the episodes that one of ``$plans`` read or skipped, earliest first, without those skipped as suspicious."""

REOPEN_SHALLOW = f"""
MATCH (e:Episode {{id: $id}})
WHERE e.status IN $statuses AND coalesce(e.plan, '') IN $plans
  AND (e.status = 'done' OR size(coalesce(e.flags, [])) = 0)
SET e.status = 'saved', e.reason = NULL, e.step = NULL
RETURN {part.EPISODE_MAP} AS episode
"""
"""Reopens an episode so that it is read again; returns no row if none of ``$plans`` read it."""

STATUS = """
MATCH (m:Meta {id: 'schema'})
MATCH (e:Episode {id: $id})
RETURN e.status AS status, coalesce(m.forgotten, 0) AS forgotten
"""

EPISODES_ABOUT = f"""{part.each("n:Entity")}
MATCH (e:Episode)-[:MENTIONS]->(n)
WITH DISTINCT e ORDER BY e.at DESC, e.created_at DESC LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""

ALL_EPISODES = "MATCH (d:Episode)\nWITH d"


def list_episodes(first: str) -> str:
    """Return the Cypher query for a page of episodes (stored messages and texts), latest first."""
    return f"""{first}
WITH d AS e
WHERE $statuses IS NULL OR e.status IN $statuses
WITH e ORDER BY e.at DESC, e.created_at DESC SKIP $skip LIMIT $limit
WITH collect(e) AS page
WITH page, CASE WHEN $characters IS NULL THEN [] ELSE [e IN page | size(e.content)] END AS sizes
UNWIND range(0, size(page) - 1) AS place
WITH page[place] AS e, CASE WHEN place = 0 THEN 0 ELSE reduce(sum = 0, one IN sizes[..place] | sum + one) END AS before
WHERE $characters IS NULL OR before < $characters
RETURN {part.EPISODE_MAP} AS episode
"""


EPISODES = list_episodes(ALL_EPISODES)
EPISODES_BY_STATUS = list_episodes("MATCH (d:Episode)\nWHERE d.status IN $statuses\nWITH d")

EPISODES_TO_READ = f"""
MATCH (e:Episode)
WHERE e.status IN $statuses AND coalesce(e.kind, '') <> 'block'
WITH e ORDER BY e.at, e.created_at SKIP $skip LIMIT $limit
RETURN {part.EPISODE_MAP} AS episode
"""
"""Returns the episodes with one of ``$statuses``, earliest first."""


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
"""Marks an episode as waiting for others of its thread, and returns all that wait there, in order of arrival."""

WAITING = f"""
MATCH (e:Episode {{status: 'waiting'}})
WHERE e.reason = $reason
WITH e ORDER BY e.created_at
RETURN {part.EPISODE_MAP} AS episode
"""
"""Returns all episodes that wait for others, in order of arrival."""


IDS_BEGINNING = {
    label: f"MATCH (n:{label}) WHERE n.id STARTS WITH $begin RETURN n.id AS id ORDER BY id LIMIT 2"
    for label in ("Episode", "Fact", "Verdict", "Identity")
}
"""For each label, the query for two of the ids that begin with ``$begin``."""


# The episodes that a search found

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
"""Returns the disputed facts of an episode, each with the nearest episode after it that states a contradicting fact."""

_REFUSED = """MATCH (f)-[:JUDGED]->(v:Verdict)
WHERE v.new = v.known AND v.ruling = 'refused' AND v.refused_at <= $believed_at AND e.created_at <= v.refused_at
WITH DISTINCT e, f
RETURN e.id AS id, 'refused' AS kind, f.sentence AS sentence, NULL AS until, NULL AS precision, NULL AS by,
  NULL AS by_source_id, [] AS said
ORDER BY id, sentence"""
"""Returns the facts of an episode that were retracted after it was saved."""

_ENDED = f"""MATCH (f)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at
WITH e, f, b ORDER BY b.invalid_at DESC
WITH e, f, collect(b {{.invalid_at, .end_precision}})[0] AS last
WITH e, f, last.invalid_at AS until, last.end_precision AS precision
WHERE until < $until AND until < {OPEN_END}
OPTIONAL MATCH (x:Episode)-[s:STATES]->(f)
WHERE (s.invalid_at = until OR (x.id = e.id AND s.invalid_at <= e.at)) AND x.created_at <= $believed_at
WITH e, f, until, precision, x ORDER BY x.at, x.created_at, x.id
WITH e, f, until, precision, collect(x {{.id, .source_id}}) AS telling,
  sum(CASE WHEN x.id = e.id THEN 1 ELSE 0 END) AS own
WHERE own = 0
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)<-[:JUDGED]-(other:Fact)-[:HELD]->(c:Belief)
WHERE v.created_at <= $believed_at AND other.id <> f.id AND c.created_at <= $believed_at AND c.expired_at > $believed_at
  AND (v.ruling = 'supersedes' AND (c.valid_at = until OR c.known_from = until)
    OR v.ruling IN {[*OUTCOMES]} AND {part.PREFERS_OTHER})
OPTIONAL MATCH (y:Episode)-[t:STATES]->(other)
WHERE y.created_at <= $believed_at AND y.id <> e.id
WITH e, f, until, precision, telling, v, y,
  CASE WHEN t.valid_at = until THEN 0 WHEN y.at >= e.at THEN 1 ELSE 2 END AS near
ORDER BY near, y.at, y.id
WITH e, f, until, precision, telling, collect(v.ruling)[0] AS ruling, collect(y {{.id, .source_id}}) AS next
WITH e, f, until, precision, coalesce(telling[0], next[0]) AS x,
  CASE WHEN ruling <> 'supersedes' THEN ruling ELSE 'ended' END AS kind
RETURN e.id AS id, kind, f.sentence AS sentence, until, precision, x.id AS by, x.source_id AS by_source_id,
  {_SAID}
ORDER BY id, sentence"""
"""Returns the ended facts of an episode, each with the first episode that states the end, or else the following fact.

The kind of a plan is what became of it, such as "fulfilled".

Among episodes that state the following fact, one that states when that fact began is preferred, then one after the
episode itself. An episode that states that the fact has ended has no row.
"""
_COLUMNS = ("id", "kind", "sentence", "until", "precision", "by", "by_source_id", "said")


def _remarks(ids: str, remarks: str) -> str:
    """Return Cypher clauses that list the facts of messages that have ended since, are disputed or were refused."""
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
    """Return Cypher: the message *turn* if it has another speaker than the message ``e``, else null.

    Also null if *turn* has expired, is flagged, is too long, or is too far away in time.
    """
    return f"""CASE WHEN {turn}.kind = 'message' AND e.kind = 'message' AND {turn}.speaker <> e.speaker
    AND abs({turn}.at - e.at) <= $gap AND {turn}.created_at <= $believed_at AND size({turn}.content) <= $length
    AND (size(coalesce({turn}.flags, [])) = 0 OR {turn}.status = 'done')
    AND ({turn}.expires_at IS NULL OR {turn}.expires_at > timestamp() * 1000)
  THEN {turn} {{.id, .source_id, .speaker, .content}} END"""


# No WHERE directly after OPTIONAL MATCH: see `search._WITH_NEIGHBOURS`.
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
"""Returns unexpired episodes and those that remarks on them name, with remarks and the neighbouring turns of others."""
