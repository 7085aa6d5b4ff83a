"""Evict: what is over, entities of which nothing is known, those above a number, and messages that have expired.

Each part is small and atomic by itself, and looks again whether what it lets go is still so: others may write
meanwhile, and one that was broken off is simply done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.ingestion.revise import revive
from kg_memory.maintenance.eviction import cypher
from kg_memory.maintenance.forgetting.forget import forget
from kg_memory.maintenance.forgetting.selection import Asked as Forgetting
from kg_memory.memory.reading import MOST, counted
from kg_memory.models.graph import EvictionResult
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END

DAY = 24 * 3600 * 1_000_000
RETENTION = 90.0
"""How many days what is over is kept where nothing else is said (C41)."""
LONGEST = 1_000_000.0
"""Days."""
PAGE = 2_000
"""How many internal ids one query looks at."""
AT_ONCE = 50
"""How many facts or entities go in one query: others wait as long as it takes, 1 to 3 ms for each."""
BELIEFS_AT_ONCE = 500
EXPIRED_AT_ONCE = 1_000
EXAMPLES = 20
"""Of how many of each kind it is told what they say."""
EXPIRED, WHY = "expired messages", "they had expired"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to evict; see `kg_memory.memory.evicting.Evicting.evict`."""

    expired_days: float | None = None
    orphans: bool = False
    max_entities: int | None = None
    expired_episodes: bool = False
    dry_run: bool = False
    tell: Callable[[EvictionResult], None] | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be evicted; of what is over for 0 days, something is."""
        return self.expired_days is self.max_entities is None and not self.orphans and not self.expired_episodes


@dataclass(slots=True)
class Sweep:
    """One run at the instant `time`: what went so far, or would."""

    asked: Asked
    time: int
    beliefs: int = 0
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def before(self) -> int:
        """The instant before which what is over was so for long enough."""
        days = RETENTION if self.asked.expired_days is None else self.asked.expired_days
        return self.time - int(days * DAY)

    def count(self, kind: list[str], found: Sequence[Row]) -> None:
        """Count *found* among those of a kind, and tell."""
        self.texts |= {row["id"]: row["text"] for row in found[: max(EXAMPLES - len(kind), 0)]}
        kind += [row["id"] for row in found]
        self.tell()

    def tell(self) -> None:
        if self.asked.tell:
            self.asked.tell(self.told())

    def told(self) -> EvictionResult:
        """Return what went so far."""
        return EvictionResult(
            beliefs=self.beliefs, facts=tuple(self.facts), entities=tuple(self.entities),
            episodes=tuple(self.episodes), dry_run=self.asked.dry_run, at=rows.to_datetime(self.time), texts=self.texts,
        )  # fmt: skip


def evict(asked: Asked, settings: Settings, namespace: str) -> Flow[EvictionResult]:
    """Evict what is *asked*, and return what went; what was told anew in the same moment is found again at the end.

    Errors: `InputError` where nothing is asked, or what cannot be.
    """
    _check(asked)
    sweep = Sweep(asked, (yield from now()))
    if not (yield from read(cypher.LAST)):
        return sweep.told()  # nothing was ever stored here
    if asked.expired_episodes:
        yield from _expired_episodes(sweep, settings, namespace)
    if asked.expired_days is not None:
        yield from _beliefs_over(sweep)
        yield from _facts_over(sweep)
    if asked.orphans:
        yield from _orphans(sweep)
    if asked.max_entities is not None:
        yield from _surplus(sweep, asked.max_entities)
    if not asked.dry_run:
        yield from _revived()
    return sweep.told()


def _check(asked: Asked) -> None:
    if asked.is_nothing:
        raise InputError("nothing is to be evicted: give expired_days, orphans, max_entities or expired_episodes")
    days = asked.expired_days
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= LONGEST):
        raise InputError(f"expired_days is {days!r}: give a number of days from 0 to {LONGEST:.0f}")
    if asked.max_entities is not None:
        counted("max_entities", asked.max_entities)


def _revived() -> Flow[None]:
    """Let facts be found that are believed again: their reader was killed, or did not see that they were evicted."""
    while found := (yield from read(cypher.HALF_REVIVED, limit=AT_ONCE)):
        yield from revive([row["id"] for row in found])


def _expired_episodes(sweep: Sweep, settings: Settings, namespace: str) -> Flow[None]:
    """Forget the messages that have expired, with all that only they support."""
    if sweep.asked.dry_run:
        sweep.count(sweep.episodes, (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=MOST)))
        return
    while found := (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)):
        ids, why = [row["id"] for row in found], Forgetting("episode", EXPIRED, EXPIRED, WHY)
        try:
            gone = yield from forget(why, settings, namespace, ids=ids)
        except InputError:
            if (yield from read(cypher.EXPIRED_EPISODES, now=sweep.time, limit=EXPIRED_AT_ONCE)) == found:
                raise
            continue  # another sweep was first
        sweep.count(sweep.episodes, [{"id": id_, "text": ""} for id_ in gone.episodes])


def _beliefs_over(sweep: Sweep) -> Flow[None]:
    """Let go of what was believed, and is not any more for long enough."""
    if sweep.asked.dry_run:
        sweep.beliefs = (yield from read(cypher.BELIEFS_OVER, before=sweep.before))[0]["n"]
        return
    while True:
        [gone] = yield from write(cypher.EVICT_BELIEFS, before=sweep.before, limit=BELIEFS_AT_ONCE)
        sweep.beliefs += gone["n"]
        sweep.tell()
        if gone["n"] < BELIEFS_AT_ONCE:
            return


def _facts_over(sweep: Sweep) -> Flow[None]:
    for page in (yield from _pages("fact")):
        yield from _evict_facts(sweep, (yield from read(cypher.FACTS_OVER, **page, before=sweep.before)))


def _orphans(sweep: Sweep) -> Flow[None]:
    """Let go of entities that were last seen long ago, and have no fact but such as are over (C42)."""
    for page in (yield from _pages("entity")):
        found = yield from read(cypher.ENTITIES, **page, before=sweep.before, now=sweep.time)
        unlinked = [row for row in found if not row["active"]]
        told = yield from read(cypher.FACTS_OF, ids=[row["id"] for row in unlinked], before=sweep.before)
        over = {row["id"] for row in told if row["over"]}
        orphans = [row for row in unlinked if over.issuperset(row["facts"])]
        own = {id_ for row in orphans for id_ in row["facts"]}
        yield from _evict_facts(sweep, [row for row in told if row["id"] in own])
        yield from _evict_entities(sweep, orphans)


def _surplus(sweep: Sweep, most: int) -> Flow[None]:
    """Let go of entities until *most* are left: those with the fewest facts that hold, the longest not seen (C43)."""
    gone = set(sweep.entities) if sweep.asked.dry_run else set()
    surplus = (yield from read(cypher.KEPT))[0]["n"] - len(gone) - most
    least: list[Row] = []
    for page in (yield from _pages("entity")) if surplus > 0 else ():
        told = yield from read(cypher.ENTITIES, **page, before=OPEN_END, now=sweep.time)
        likely = [*least, *(row for row in told if row["id"] not in gone)]
        least = nsmallest(surplus, likely, key=lambda row: (row["active"], row["last_seen"], row["id"]))
    for some in _parts(least):
        told = yield from read(cypher.FACTS_OF, ids=[row["id"] for row in some], before=sweep.before)
        waiting = {row["id"] for row in told if row["waits"]}
        going = [row for row in some if waiting.isdisjoint(row["facts"])]
        own = {id_ for row in going for id_ in row["facts"]}
        yield from _evict_facts(sweep, [row for row in told if row["id"] in own], until=OPEN_END)
        yield from _evict_entities(sweep, going)


def _evict_facts(sweep: Sweep, found: Sequence[Row], until: int | None = None) -> Flow[None]:
    """Evict the facts *found* where they are over, or whatever they tell *until* then."""
    if sweep.asked.dry_run:
        known = set(sweep.facts)
        sweep.count(sweep.facts, [row for row in found if row["id"] not in known])
        return
    how = {"before": sweep.before, "active": until is not None, "until": sweep.before if until is None else until}
    for some in _parts(found):
        facts = [{"id": row["id"], "said_at": row["said_at"]} for row in some]
        gone = yield from write(cypher.EVICT_FACTS, facts=facts, **how, now=(yield from now()))
        sweep.count(sweep.facts, _of(some, gone))


def _evict_entities(sweep: Sweep, found: Sequence[Row]) -> Flow[None]:
    if sweep.asked.dry_run:
        sweep.count(sweep.entities, found)
        return
    for some in _parts(found):
        entities = [{"id": row["id"], "last_seen": row["last_seen"]} for row in some]
        gone = yield from write(cypher.EVICT_ENTITIES, entities=entities, now=(yield from now()))
        sweep.count(sweep.entities, _of(some, gone))


def _of(found: Sequence[Row], gone: Sequence[Row]) -> list[Row]:
    ids = {row["id"] for row in gone}
    return [row for row in found if row["id"] in ids]


def _pages(kind: str) -> Flow[list[dict[str, int]]]:
    """Return the ranges of internal ids of all facts or entities, in parts."""
    last = (yield from read(cypher.LAST))[0][kind]
    return [{"first": first, "end": first + PAGE} for first in range(0, 0 if last is None else last + 1, PAGE)]


def _parts(found: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for first in range(0, len(found), AT_ONCE):
        yield found[first : first + AT_ONCE]
