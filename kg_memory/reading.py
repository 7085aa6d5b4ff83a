"""Reading memory without a question: what is known of a name, the lists, the counts."""

from __future__ import annotations

from kg_memory.effects import now, read
from kg_memory.errors import InputError
from kg_memory.falkor import cypher, rows
from kg_memory.flow import Flow
from kg_memory.identity import alias_key
from kg_memory.model import SOURCES, Entity, Episode, EpisodeStatus, Fact, Stats


def facts_about(name: str, limit: int) -> Flow[list[Fact]]:
    """Return the facts about the entity called *name*, current and ended, latest first."""
    if not name.strip():
        raise InputError("the name is empty: give an entity's name or one of its aliases")
    found = yield from read(cypher.FACTS_ABOUT, alias=alias_key(name), limit=_checked(limit), sources=SOURCES)
    return [rows.fact(row) for row in found]


def entities(limit: int, skip: int) -> Flow[list[Entity]]:
    """Return the entities, last seen first."""
    found = yield from read(cypher.ENTITIES, limit=_checked(limit), skip=_skipped(skip))
    return [rows.entity(row["entity"]) for row in found]


def episodes(limit: int, skip: int, status: EpisodeStatus | None) -> Flow[list[Episode]]:
    """Return the episodes, latest first; only those of *status* if one is given."""
    page = {"limit": _checked(limit), "skip": _skipped(skip)}
    if status is None:
        found = yield from read(cypher.EPISODES, **page)
    elif status in set(EpisodeStatus):
        found = yield from read(cypher.EPISODES_BY_STATUS, status=str(status), **page)
    else:
        raise InputError(f"the status is {status!r}: use one of {', '.join(EpisodeStatus)}")
    return [rows.episode(row["episode"]) for row in found]


def waiting(limit: int, skip: int = 0) -> Flow[list[Episode]]:
    """Return the episodes that are saved but not yet done, earliest first."""
    found = yield from read(cypher.WAITING, limit=_checked(limit), skip=skip)
    return [rows.episode(row["episode"]) for row in found]


def stats() -> Flow[Stats]:
    """Count what the namespace holds."""
    micros = yield from now()
    found = yield from read(cypher.STATS, now=micros)
    return Stats.model_validate(found[0]) if found else Stats()


def _checked(limit: int) -> int:
    if limit < 1:
        raise InputError(f"limit is {limit}: give 1 or more")
    return limit


def _skipped(skip: int) -> int:
    if skip < 0:
        raise InputError(f"skip is {skip}: give 0 or more")
    return skip
