"""Evict what is over, entities without facts, those above a number, and messages that have expired.

Each part is small and atomic by itself, and checks again whether what it evicts is still so, as others may write
meanwhile. A run that was interrupted is simply repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.revise import revive
from kg_memory.maintenance import eviction_cypher as cypher
from kg_memory.maintenance.forgetting.forget import forget
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.models.operations import EvictionResult
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END
from kg_memory.validation import MAX_COUNT, validate_count

DAY = 24 * 3600 * 1_000_000
RETENTION = 90.0
"""The days that what is over is kept by default (C41)."""
LONGEST = 1_000_000.0
"""Days."""
PAGE = 2_000
"""The internal ids that one query looks at."""
AT_ONCE = 50
"""The facts or entities that go in one query: others wait as long as it takes, 1 to 3 ms for each."""
BELIEFS_AT_ONCE = 500
EXPIRED_AT_ONCE = 1_000
EXAMPLES = 20
"""The most texts of each kind that a result has."""
EXPIRED, REASON = "expired messages", "they had expired"


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """The arguments of `GraphMemory.privacy.evict`, which see."""

    expired_days: float | None = None
    orphans: bool = False
    max_entities: int | None = None
    expired_episodes: bool = False
    dry_run: bool = False
    on_progress: Callable[[EvictionResult], None] | None = None

    def is_empty(self) -> bool:
        """Return whether nothing is to be evicted; of what is over for 0 days, something is."""
        return self.expired_days is self.max_entities is None and not self.orphans and not self.expired_episodes


@dataclass(slots=True)
class Sweep:
    """The progress of one run at the instant `time`: what it evicted so far, or would."""

    request: EvictionRequest
    time: int
    beliefs: int = 0
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def before(self) -> int:
        """The instant before which what is over must have been so."""
        days = RETENTION if self.request.expired_days is None else self.request.expired_days
        return self.time - int(days * DAY)

    def add(self, kind: list[str], evicted: Sequence[Row]) -> None:
        """Add *evicted* to those of a kind, and report progress."""
        self.texts |= {row["id"]: row["text"] for row in evicted[: max(EXAMPLES - len(kind), 0)]}
        kind += [row["id"] for row in evicted]
        self.report()

    def report(self) -> None:
        """Report what went so far."""
        if self.request.on_progress:
            self.request.on_progress(self.result())

    def result(self) -> EvictionResult:
        """Return what went so far."""
        return EvictionResult(
            beliefs=self.beliefs,
            facts=tuple(self.facts),
            entities=tuple(self.entities),
            episodes=tuple(self.episodes),
            dry_run=self.request.dry_run,
            at=rows.to_datetime(self.time),
            texts=self.texts,
        )


def evict(request: EvictionRequest, settings: Settings, namespace: str) -> Flow[EvictionResult]:
    """Evict what is requested, and return what went; facts that were stated anew meanwhile are revived at the end.

    Errors: `InputError` for a request that is empty or invalid.
    """
    _validate(request)
    sweep = Sweep(request, (yield from now()))
    if not (yield from read(cypher.LAST)):
        return sweep.result()  # nothing was ever stored here
    if request.expired_episodes:
        yield from _forget_expired(sweep, settings, namespace)
    if request.expired_days is not None:
        yield from _evict_beliefs(sweep)
        for page in (yield from _list_pages("fact")):
            yield from _evict_facts(sweep, (yield from read(cypher.FACTS_OVER, **page, before=sweep.before)))
    if request.orphans:
        yield from _evict_orphans(sweep)
    if request.max_entities is not None:
        yield from _evict_surplus(sweep, request.max_entities)
    if not request.dry_run:
        yield from _revive_believed()
    return sweep.result()


def _validate(request: EvictionRequest) -> None:
    if request.is_empty():
        raise InputError("nothing to evict: give expired_days, orphans, max_entities or expired_episodes")
    days = request.expired_days
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= LONGEST):
        raise InputError(f"expired_days must be a number from 0 to {LONGEST:.0f}, got {days!r}")
    if request.max_entities is not None:
        validate_count("max_entities", request.max_entities)


def _revive_believed() -> Flow[None]:
    """Let searches find evicted facts that are believed again: their writer was killed, or did not see the eviction."""
    while half_revived := (yield from read(cypher.HALF_REVIVED, limit=AT_ONCE)):
        yield from revive([row["id"] for row in half_revived])


def _forget_expired(sweep: Sweep, settings: Settings, namespace: str) -> Flow[None]:
    """Forget the messages that have expired, with all that only they support."""
    if sweep.request.dry_run:
        sweep.add(sweep.episodes, (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=MAX_COUNT)))
        return
    request = ForgetRequest("episode", EXPIRED, EXPIRED, REASON)
    while expired := (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)):
        try:
            receipt = yield from forget(request, settings, namespace, ids=[row["id"] for row in expired])
        except InputError:
            if (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)) == expired:
                raise
            continue  # another sweep was first
        sweep.add(sweep.episodes, [{"id": id_, "text": ""} for id_ in receipt.episodes])


def _evict_beliefs(sweep: Sweep) -> Flow[None]:
    """Delete the beliefs that were closed long enough ago."""
    if sweep.request.dry_run:
        sweep.beliefs = (yield from read(cypher.BELIEFS_OVER, before=sweep.before))[0]["n"]
        return
    while True:
        [deleted] = yield from write(cypher.EVICT_BELIEFS, before=sweep.before, limit=BELIEFS_AT_ONCE)
        sweep.beliefs += deleted["n"]
        sweep.report()
        if deleted["n"] < BELIEFS_AT_ONCE:
            return


def _evict_orphans(sweep: Sweep) -> Flow[None]:
    """Evict entities that were last seen long ago, and have no facts but such as are over (C42)."""
    for page in (yield from _list_pages("entity")):
        unseen = yield from read(cypher.ENTITIES, **page, before=sweep.before, now=sweep.time)
        inactive = [row for row in unseen if not row["active"]]
        facts = yield from read(cypher.FACTS_OF, ids=[row["id"] for row in inactive], before=sweep.before)
        over = {row["id"] for row in facts if row["over"]}
        orphans = [row for row in inactive if over.issuperset(row["facts"])]
        yield from _evict_facts(sweep, _facts_of(orphans, facts))
        yield from _evict_entities(sweep, orphans)


def _evict_surplus(sweep: Sweep, most: int) -> Flow[None]:
    """Evict entities until *most* are left: those with the fewest facts that hold, the longest not seen (C43)."""
    evicted = set(sweep.entities) if sweep.request.dry_run else set[str]()
    surplus = (yield from read(cypher.KEPT))[0]["n"] - len(evicted) - most
    least: list[Row] = []
    for page in (yield from _list_pages("entity")) if surplus > 0 else ():
        entities = yield from read(cypher.ENTITIES, **page, before=OPEN_END, now=sweep.time)
        candidates = [*least, *(row for row in entities if row["id"] not in evicted)]
        least = nsmallest(surplus, candidates, key=lambda row: (row["active"], row["last_seen"], row["id"]))
    for part in _split(least):
        facts = yield from read(cypher.FACTS_OF, ids=[row["id"] for row in part], before=sweep.before)
        waiting = {row["id"] for row in facts if row["waits"]}
        going = [row for row in part if waiting.isdisjoint(row["facts"])]
        yield from _evict_facts(sweep, _facts_of(going, facts), until=OPEN_END)
        yield from _evict_entities(sweep, going)


def _facts_of(entities: Sequence[Row], facts: Sequence[Row]) -> list[Row]:
    ids = set[str]().union(*(row["facts"] for row in entities))
    return [row for row in facts if row["id"] in ids]


def _evict_facts(sweep: Sweep, facts: Sequence[Row], until: int | None = None) -> Flow[None]:
    """Evict those of *facts* that are over; with *until*, all, for what held until then."""
    if sweep.request.dry_run:
        counted_facts = set(sweep.facts)
        sweep.add(sweep.facts, [row for row in facts if row["id"] not in counted_facts])
        return
    active, until = until is not None, sweep.before if until is None else until
    for part in _split(facts):
        some = [{"id": row["id"], "said_at": row["said_at"]} for row in part]
        time = yield from now()
        evicted = yield from write(
            cypher.EVICT_FACTS, facts=some, before=sweep.before, active=active, until=until, now=time
        )
        sweep.add(sweep.facts, _select(part, evicted))


def _evict_entities(sweep: Sweep, entities: Sequence[Row]) -> Flow[None]:
    if sweep.request.dry_run:
        sweep.add(sweep.entities, entities)
        return
    for part in _split(entities):
        some = [{"id": row["id"], "last_seen": row["last_seen"]} for row in part]
        evicted = yield from write(cypher.EVICT_ENTITIES, entities=some, now=(yield from now()))
        sweep.add(sweep.entities, _select(part, evicted))


def _select(part: Sequence[Row], evicted: Sequence[Row]) -> list[Row]:
    ids = {row["id"] for row in evicted}
    return [row for row in part if row["id"] in ids]


def _list_pages(kind: str) -> Flow[list[dict[str, int]]]:
    """Return the ranges of internal ids of all facts or entities."""
    last = (yield from read(cypher.LAST))[0][kind]
    return [{"first": first, "end": first + PAGE} for first in range(0, 0 if last is None else last + 1, PAGE)]


def _split(evictable: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for first in range(0, len(evictable), AT_ONCE):
        yield evictable[first : first + AT_ONCE]
