"""Eviction: removes old data from the search indexes or deletes it, to limit the size of a memory.

It applies to ended facts, entities without facts, entities beyond `max_entities`, and expired messages. Each write is
small and atomic. It checks again whether its nodes still qualify, since other processes may write meanwhile. An
interrupted run can simply be repeated.

An evicted fact or entity loses its vector and its entries in the word index, so that no search finds it. Its names,
statements and periods of validity stay stored, and still count when later facts are compared. `evicted` is the time of
eviction. If a message states or mentions it again, the ingestion step `save` indexes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.rows import Row, list_pages, to_datetime
from kg_memory.ingestion.save import index_again
from kg_memory.maintenance.forgetting.forget import forget
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.models.operations import EvictionResult
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import DAY, OPEN_END, OPEN_START
from kg_memory.validation import MAX_COUNT, validate_count, validate_number

RETENTION = 90.0
"""The default number of days for which ended facts are kept."""
LONGEST_DAYS = 1_000_000.0
PAGE = 2_000
"""The number of internal ids that one query covers."""
AT_ONCE = 50
"""The facts or entities evicted in one query. Other queries wait meanwhile: 1 to 3 ms for each."""
BELIEFS_AT_ONCE, EXPIRED_AT_ONCE = 500, 1_000
EXAMPLES = 20
"""The most texts of each kind in a result."""
EXPIRED, REASON = "expired messages", "they had expired"


@dataclass(slots=True)
class Sweep:
    """The state of one eviction run: its settings, and the ids of what was evicted so far.

    Facts that ended before `before` are evicted. `time` is the start; both are microseconds since the epoch.
    """

    time: int
    before: int
    dry_run: bool
    on_progress: Callable[[EvictionResult], None] | None
    beliefs: int = 0
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, kind: list[str], evicted: Sequence[Row]) -> None:
        """Append the ids of *evicted* (database rows) to the list *kind*, such as `facts`, and report the progress."""
        self.texts |= {row["id"]: row["text"] for row in evicted[: max(EXAMPLES - len(kind), 0)]}
        kind += [row["id"] for row in evicted]
        self.report()

    def report(self) -> None:
        """Call `on_progress`, if it is not None, with an `EvictionResult` of everything evicted so far."""
        if self.on_progress:
            self.on_progress(self.result())

    @property
    def at(self) -> datetime:
        """The start of the run."""
        return to_datetime(self.time)

    def result(self) -> EvictionResult:
        """Return the ids of evicted facts, entities and messages so far, and the number of deleted periods of facts."""
        return EvictionResult.model_validate(self, from_attributes=True)


def evict(
    settings: Settings,
    namespace: str,
    *,
    expired_days: float | None = None,
    orphans: bool = False,
    max_entities: int | None = None,
    expired_episodes: bool = False,
    dry_run: bool = False,
    on_progress: Callable[[EvictionResult], None] | None = None,
) -> Flow[EvictionResult]:
    """Remove old facts and entities from the search indexes, delete expired messages; return the removed data."""
    days = RETENTION if expired_days is None else validate_number("expired_days", expired_days, 0, LONGEST_DAYS)
    most = None if max_entities is None else validate_count("max_entities", max_entities)
    time = yield from now()
    sweep = Sweep(time, time - int(days * DAY), dry_run, on_progress)
    if not (yield from fetch(LAST)):
        return sweep.result()  # the namespace has no graph
    if expired_episodes or (expired_days is most is None and not orphans):
        yield from _forget_expired(sweep, settings, namespace)
    if expired_days is not None:
        yield from _evict_beliefs(sweep)
        for page in list_pages((yield from fetch(LAST))[0]["fact"], PAGE):
            yield from _evict_facts(sweep, (yield from fetch(FACTS_OVER, **page, before=sweep.before)))
    if orphans:
        yield from _evict_orphans(sweep)
    if most is not None:
        yield from _evict_surplus(sweep, most)
    # Evicted facts that have become true again are indexed again.
    while not dry_run and (returned := (yield from fetch(RETURNED, now=time, limit=AT_ONCE))):
        yield from index_again([row["id"] for row in returned])
    return sweep.result()


def _forget_expired(sweep: Sweep, settings: Settings, namespace: str) -> Flow[None]:
    if sweep.dry_run:
        sweep.add(sweep.episodes, (yield from fetch(EXPIRED_EPISODES, now=sweep.time, limit=MAX_COUNT)))
        return
    request = ForgetRequest("episode", EXPIRED, EXPIRED, REASON)
    while expired := (yield from fetch(EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)):
        try:
            receipt = yield from forget(request, settings, namespace, ids=[row["id"] for row in expired])
        except InputError:
            if (yield from fetch(EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)) == expired:
                raise
            continue  # another run deleted some of them first
        sweep.add(sweep.episodes, [{"id": id_, "text": ""} for id_ in receipt.episodes])


def _evict_beliefs(sweep: Sweep) -> Flow[None]:
    """Delete the periods in which the memory believed a fact, if they were over before `sweep.before`.

    A dry run only counts them.
    """
    if sweep.dry_run:
        sweep.beliefs = (yield from fetch(BELIEFS_OVER, before=sweep.before))[0]["n"]
        return
    deleted = BELIEFS_AT_ONCE
    while deleted == BELIEFS_AT_ONCE:
        deleted = (yield from write(EVICT_BELIEFS, before=sweep.before, limit=BELIEFS_AT_ONCE))[0]["n"]
        sweep.beliefs += deleted
        sweep.report()


def _evict_orphans(sweep: Sweep) -> Flow[None]:
    """Evict entities last mentioned before `sweep.before` whose facts, if any, have all ended by then."""
    for page in list_pages((yield from fetch(LAST))[0]["entity"], PAGE):
        unseen = yield from fetch(ENTITIES, **page, before=sweep.before, now=sweep.time)
        inactive = [row for row in unseen if not row["active"]]
        facts = yield from fetch(FACTS_OF, ids=[row["id"] for row in inactive], before=sweep.before)
        over = {row["id"] for row in facts if row["over"]}
        yield from _evict_entities(sweep, [row for row in inactive if over.issuperset(row["facts"])], facts)


def _evict_surplus(sweep: Sweep, most: int) -> Flow[None]:
    """Evict entities until at most *most* are left in the search indexes, fewest current facts first.

    Entities without facts are deleted; those that changed meanwhile or have a fact in review stay.
    """
    evicted = set(sweep.entities) if sweep.dry_run else set[str]()
    surplus = (yield from fetch(KEPT))[0]["n"] - len(evicted) - most
    least: list[Row] = []
    last = (yield from fetch(LAST))[0]["entity"] if surplus > 0 else None
    for page in list_pages(last, PAGE):
        entities = yield from fetch(ENTITIES, **page, before=OPEN_END, now=sweep.time)
        candidates = [*least, *(row for row in entities if row["id"] not in evicted)]
        least = nsmallest(surplus, candidates, key=lambda row: (row["active"], row["seen"], row["id"]))
    for part in _batches(least):
        facts = yield from fetch(FACTS_OF, ids=[row["id"] for row in part], before=sweep.before)
        waiting = {row["id"] for row in facts if row["waits"]}
        yield from _evict_entities(sweep, [row for row in part if waiting.isdisjoint(row["facts"])], facts, active=True)


def _evict_entities(sweep: Sweep, entities: Sequence[Row], facts: Sequence[Row], *, active: bool = False) -> Flow[None]:
    ids = {fact for row in entities for fact in row["facts"]}
    yield from _evict_facts(sweep, [row for row in facts if row["id"] in ids], active=active)
    yield from _evict(sweep, sweep.entities, entities, EVICT_ENTITIES)


def _evict_facts(sweep: Sweep, facts: Sequence[Row], *, active: bool = False) -> Flow[None]:
    """Evict *facts* that ended before `sweep.before`; with *active*, evict all that do not wait for a review."""
    yield from _evict(sweep, sweep.facts, facts, EVICT_FACTS, before=sweep.before, active=active)


def _evict(sweep: Sweep, evicted: list[str], rows: Sequence[Row], query: str, **params: Any) -> Flow[None]:
    """Run the Cypher *query*, which evicts nodes, on batches of *rows*; append their ids to *evicted*.

    A dry run runs no query, and appends all ids.
    """
    if sweep.dry_run:
        listed = set(evicted)
        sweep.add(evicted, [row for row in rows if row["id"] not in listed])
        return
    for part in _batches(rows):
        some = [{"id": row["id"], "seen": row["seen"]} for row in part]
        went = {row["id"] for row in (yield from write(query, rows=some, now=(yield from now()), **params))}
        sweep.add(evicted, [row for row in part if row["id"] in went])


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE]


# Queries: for each kind one that finds candidates, and one that evicts them in small parts

LAST = """
OPTIONAL MATCH (f:Fact)
WITH max(id(f)) AS fact
OPTIONAL MATCH (e:Entity)
RETURN fact, max(id(e)) AS entity
"""
"""The largest internal ids of facts and entities; pages by internal id need no sorting."""

_WEIGHED = f"""
OPTIONAL MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WITH f, sum(CASE
    WHEN b IS NULL OR b.expired_at <= $before THEN 0
    WHEN type(h) = 'HELD' AND b.invalid_at <= $before AND b.created_at <= $before THEN 0
    ELSE 1
  END) AS telling, sum(CASE WHEN type(h) = 'PROPOSED' AND b.expired_at = {OPEN_END} THEN 1 ELSE 0 END) AS proposed
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)
WITH f, telling, proposed, sum(CASE WHEN v.ruling = 'waiting' THEN 1 ELSE 0 END) AS judged
WITH f, proposed + judged AS waiting, telling + proposed + judged + indegree(f, 'RESTS_ON') = 0
  AND f.said_at <= $before AND f.created_at <= $before AS over"""
"""Computes ``over``: whether a fact had ended by ``$before``, as believed then too, and no other fact rests on it."""

FACTS_OVER = f"""
MATCH (f:Fact)
WHERE id(f) >= $first AND id(f) < $end AND f.evicted IS NULL
WITH f{_WEIGHED}
WHERE over
RETURN f.id AS id, f.said_at AS seen, f.sentence AS text
"""

FACTS_OF = f"""
UNWIND $ids AS id
MATCH (n:Entity {{id: id}})
WITH n
MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f)
WITH DISTINCT f
WHERE f.evicted IS NULL
WITH f{_WEIGHED}
RETURN f.id AS id, f.said_at AS seen, f.sentence AS text, over, waiting > 0 AS waits
"""

BELIEFS_OVER = """
MATCH (b:Belief)
WHERE b.expired_at <= $before
RETURN count(b) AS n
"""

ENTITIES = f"""
MATCH (n:Entity)
WHERE id(n) >= $first AND id(n) < $end AND n.evicted IS NULL AND n.last_seen <= $before AND n.created_at <= $before
WITH n
OPTIONAL MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH DISTINCT n, f
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
WITH n, f, max(CASE
    WHEN b.expired_at = {OPEN_END} AND b.known_from <= $now AND b.invalid_at > $now THEN 1 ELSE 0 END) AS holds
WITH n, sum(holds) AS active, collect(CASE WHEN f.evicted IS NULL THEN f.id END) AS facts
RETURN n.id AS id, n.last_seen AS seen, n.name AS text, active, facts
"""
"""The entities of a page last seen by ``$before``, with the number of facts that hold and all facts not evicted."""

KEPT = f"""
OPTIONAL MATCH (n:Entity)
WITH count(n) AS entities
OPTIONAL MATCH (n:Entity)
WHERE n.evicted > {OPEN_START}
WITH entities, count(n) AS evicted
RETURN entities - evicted AS n
"""
"""The number of entities that are not evicted."""

EXPIRED_EPISODES = """
MATCH (e:Episode)
WHERE e.expires_at <= $now
WITH e ORDER BY e.at, e.id LIMIT $limit
RETURN e.id AS id, e.content AS text
"""


def _for_each(nodes: str, name: str, body: str) -> str:
    """Return Cypher that runs *body* for each item of the list variable *nodes*; *name* is the variable of an item."""
    return f"""CALL {{
  WITH {nodes}
  UNWIND {nodes} AS {name}
  {body}
}}"""


def _without_words(label: str) -> str:
    """Return Cypher that removes the nodes in its list ``going`` from the word index; *label*: "fact" or "entity"."""
    unused = "WITH DISTINCT t WHERE indegree(t) + outdegree(t) = 0 DELETE t"
    return _for_each("going", "d", f"MATCH (t:Term)-[p:IN_{label.upper()}]->(d) DELETE p {unused}")


_REVISED = "n.revision = coalesce(n.revision, 0) + 1"

EVICT_BELIEFS = f"""
MATCH (b:Belief)
WHERE b.expired_at <= $before
WITH b LIMIT $limit
WITH collect(b) AS gone
{_for_each("gone", "b", "DELETE b")}
RETURN size(gone) AS n
"""

EVICT_FACTS = f"""
UNWIND $rows AS row
MATCH (f:Fact {{id: row.id}})
WHERE f.evicted IS NULL AND f.said_at = row.seen
WITH f{_WEIGHED}
WHERE over OR ($active AND waiting = 0)
WITH collect(f) AS going
{_without_words("fact")}
{_for_each("going", "f", "SET f.evicted = $now, f.embedding = NULL, f.n = NULL, f.used = NULL, f.used_at = NULL")}
{_for_each("going", "f", f"MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity) WITH DISTINCT n SET {_REVISED}")}
UNWIND going AS f
RETURN f.id AS id
"""
"""Evict facts that have not changed since they were found: ended facts, or any if ``$active``.

The revision of their entities is raised: an episode about them that is being read is judged again.
"""

EVICT_ENTITIES = f"""
UNWIND $rows AS row
MATCH (n:Entity {{id: row.id}})
WHERE n.evicted IS NULL AND n.last_seen = row.seen
OPTIONAL MATCH (n)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH n, count(f) AS facts, sum(CASE WHEN f IS NULL OR f.evicted IS NOT NULL THEN 0 ELSE 1 END) AS held
WHERE held = 0
WITH collect(n) AS going, collect(n.id) AS ids, collect(CASE WHEN facts = 0 THEN n END) AS unknown,
  collect(CASE WHEN facts > 0 THEN n END) AS known
MATCH (m:Meta {{id: 'schema'}})
WHERE size(going) > 0
SET m.forgotten = coalesce(m.forgotten, 0) + 1, m.communities = coalesce(m.communities, 0) + 1
WITH going, ids, unknown, known
{_without_words("entity")}
{_for_each("going", "n", "MATCH (n)-[r:SIMILAR_TO|HAS_MEMBER]-() WITH DISTINCT r DELETE r")}
{_for_each("going", "n", "MATCH (n)-[:MEANS]->(v) DELETE v")}
{_for_each("unknown", "n", "MATCH (a:Alias)-[:NAMES]->(n) WHERE outdegree(a) = 1 DELETE a")}
{_for_each("known", "n", f"SET n.evicted = $now, n.summary = '', n.stale = NULL, n.n = 0, {_REVISED}")}
{_for_each("unknown", "n", "DELETE n")}
UNWIND ids AS id
RETURN id
"""
"""Evict entities that were not seen meanwhile and have only evicted facts; entities without facts are deleted.

Episodes that are being read, and communities being computed, are started again, as they may involve these entities.
"""

RETURNED = f"""
MATCH (f:Fact)
WHERE f.evicted > {OPEN_START}
WITH f
MATCH (f)-[:HELD|PROPOSED]->(b:Belief)
WHERE b.expired_at = {OPEN_END} AND b.invalid_at > $now
WITH DISTINCT f
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity)
WITH f, count(n.evicted) AS evicted
WHERE evicted = 0
RETURN f.id AS id
LIMIT $limit
"""
"""The evicted facts that hold again and whose entities are not evicted."""
