"""Reading memory without a question: the lists and the counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as episode_cypher
from kg_memory.falkor.queries import facts, search, usage
from kg_memory.models.graph import Entity, Episode, EpisodeStatus, Stats
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.text.tokenise import terms as tokens

Status = EpisodeStatus | Iterable[EpisodeStatus] | None
UNREAD = (EpisodeStatus.SAVED, EpisodeStatus.WAITING, EpisodeStatus.WORKING)
"""The states of episodes that are still to be read."""
MOST = 10**9
"""The largest number that may be asked for; from 2^63 on, the database refuses it."""


def entities(limit: int, skip: int, like: str | None = None) -> Flow[list[Entity]]:
    """Return the entities, last seen first; or those with words *like* these, the best first."""
    page = {"limit": counted("limit", limit), "skip": counted("skip", skip, 0)}
    if like is None:
        found = yield from read(facts.LIST_ENTITIES, **page)
        return [rows.to_entity(row["entity"]) for row in found]
    if not isinstance(like, str):
        raise InputError(f"like is {like!r}: give words, or the beginning of one")
    terms = tokens(replace_unstorable(like))
    if not terms:
        return []
    found = yield from read(facts.ENTITIES_LIKE, terms=terms, beginning=terms[-1], **page)
    return [rows.to_entity(row["entity"], row["score"]) for row in found]


def similar(name: str, limit: int) -> Flow[list[Entity]]:
    """Return the entities that are linked with those called *name*, nearest first."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the name is {name!r}: give an entity's name or one of its aliases")
    alias, most = alias_key(replace_unstorable(name)), counted("limit", limit)
    found = yield from read(facts.SIMILAR_TO, alias=alias, limit=most)
    return [rows.to_entity(row["entity"], round(row["similarity"], 6)) for row in found]


def episodes(limit: int, skip: int, status: Status) -> Flow[list[Episode]]:
    """Return the episodes, latest first; only those of *status*, one or several, if given."""
    page = {"limit": counted("limit", limit), "skip": counted("skip", skip, 0)}
    if status is None:
        found = yield from read(episode_cypher.EPISODES, **page)
    else:
        statuses = [status] if isinstance(status, str) else list(status) if isinstance(status, Iterable) else [status]
        if unknown := [each for each in statuses if each not in set(EpisodeStatus)]:
            raise InputError(f"the status is {unknown[0]!r}: use one of {', '.join(EpisodeStatus)}")
        found = yield from read(episode_cypher.EPISODES_BY_STATUS, statuses=[str(each) for each in statuses], **page)
    return [rows.to_episode(row["episode"]) for row in found]


def to_read(statuses: Iterable[EpisodeStatus], limit: int, skip: int = 0) -> Flow[list[Episode]]:
    """Return the episodes in one of these states, earliest first."""
    names = [str(each) for each in statuses]
    found = yield from read(episode_cypher.EPISODES_TO_READ, statuses=names, limit=limit, skip=skip)
    return [rows.to_episode(row["episode"]) for row in found]


def reopened(statuses: Iterable[EpisodeStatus], ids: Iterable[str] | None = None) -> Flow[list[Episode]]:
    """Mark the episodes in one of these states, of *ids* if given, as to be read, and return them, earliest first.

    What was skipped for its flags is only meant where its id is given. Errors: `InputError` names an id that is none.
    """
    names, wanted = [str(each) for each in statuses], None if ids is None else set(ids)
    there = yield from to_read(statuses, MOST)
    episodes = [each for each in there if (not _is_suspect(each) if wanted is None else each.id in wanted)]
    if wanted is not None and (unknown := sorted(wanted - {each.id for each in episodes})):
        raise InputError(f"no episode {unknown[0]!r} is {' or '.join(names)}: list them by state to see which are")
    yield from write(episode_cypher.REOPEN, ids=[each.id for each in episodes], statuses=names)
    return episodes


def _is_suspect(episode: Episode) -> bool:
    return bool(episode.flags) and episode.status is EpisodeStatus.SKIPPED


def stored(episode: str) -> Flow[Episode | None]:
    """Return the episode with that id, if there is one."""
    found = yield from read(search.EPISODES_BY_ID, ids=[episode])
    return rows.to_episode(found[0]["episode"]) if found else None


def stats() -> Flow[Stats]:
    """Count what the namespace holds."""
    micros = yield from now()
    found = yield from read(usage.STATS, now=micros)
    return Stats.model_validate(found[0]) if found else Stats()


def counted(name: str, value: Any, least: int = 1) -> int:
    """Return *value*, which must be a whole number from *least* to `MOST`.

    Errors: `InputError` when it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InputError(f"{name} is {value!r}: give a whole number from {least} to {MOST}")
    return value
