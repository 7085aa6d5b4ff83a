"""Reading memory without a question: the lists and the counts."""

from __future__ import annotations

from typing import Any

from kg_memory.effects import now, read
from kg_memory.errors import InputError
from kg_memory.falkor import cypher, rows, search_cypher
from kg_memory.flow import Flow
from kg_memory.identity import clean
from kg_memory.model import Entity, Episode, EpisodeStatus, Stats
from kg_memory.words import tokens

MOST = 10**9
"""The largest number that may be asked for; from 2^63 on, the database refuses it."""


def entities(limit: int, skip: int, like: str | None = None) -> Flow[list[Entity]]:
    """Return the entities, last seen first; or those with words *like* these, the best first."""
    page = {"limit": counted("limit", limit), "skip": counted("skip", skip, 0)}
    if like is None:
        found = yield from read(cypher.ENTITIES, **page)
        return [rows.entity(row["entity"]) for row in found]
    if not isinstance(like, str):
        raise InputError(f"like is {like!r}: give words, or the beginning of one")
    terms = tokens(clean(like))
    if not terms:
        return []
    found = yield from read(cypher.ENTITIES_LIKE, terms=terms, beginning=terms[-1], **page)
    return [rows.entity(row["entity"], row["score"]) for row in found]


def episodes(limit: int, skip: int, status: EpisodeStatus | None) -> Flow[list[Episode]]:
    """Return the episodes, latest first; only those of *status* if one is given."""
    page = {"limit": counted("limit", limit), "skip": counted("skip", skip, 0)}
    if status is None:
        found = yield from read(cypher.EPISODES, **page)
    elif isinstance(status, str) and status in set(EpisodeStatus):
        found = yield from read(cypher.EPISODES_BY_STATUS, status=str(status), **page)
    else:
        raise InputError(f"the status is {status!r}: use one of {', '.join(EpisodeStatus)}")
    return [rows.episode(row["episode"]) for row in found]


def waiting(limit: int, skip: int = 0) -> Flow[list[Episode]]:
    """Return the episodes that are saved but not yet done, earliest first."""
    found = yield from read(cypher.WAITING, limit=limit, skip=skip)
    return [rows.episode(row["episode"]) for row in found]


def stored(episode: str) -> Flow[Episode | None]:
    """Return the episode with that id, if there is one."""
    found = yield from read(search_cypher.EPISODES_BY_ID, ids=[episode])
    return rows.episode(found[0]["episode"]) if found else None


def stats() -> Flow[Stats]:
    """Count what the namespace holds."""
    micros = yield from now()
    found = yield from read(cypher.STATS, now=micros)
    return Stats.model_validate(found[0]) if found else Stats()


def counted(name: str, value: Any, least: int = 1) -> int:
    """Return *value*, which must be a whole number from *least* to `MOST`.

    Errors: `InputError` when it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InputError(f"{name} is {value!r}: give a whole number from {least} to {MOST}")
    return value
