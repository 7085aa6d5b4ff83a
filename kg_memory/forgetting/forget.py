"""Forget messages: their text, all that only they support, and what they brought about in what stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kg_memory.effects import now, read, write
from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor import rows
from kg_memory.flow import Flow
from kg_memory.forgetting import cypher
from kg_memory.forgetting.look import Ground, look
from kg_memory.forgetting.plan import Plan, planned
from kg_memory.identity import clean
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.model import Forgotten
from kg_memory.settings import Settings

ATTEMPTS = 50
"""How often it is tried to write while others write about the same things."""
LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True)
class Asked:
    """What to forget, an `episode` or a `fact` by its id, who asks for it and why."""

    episode: str | None
    fact: str | None
    by: str
    reason: str
    dry_run: bool


def forget(asked: Asked, settings: Settings, namespace: str) -> Flow[Forgotten]:
    """Forget an episode, or a fact with every episode that states it, and return what went.

    It is looked at again where others changed something of it meanwhile. Errors: `InputError` when it is not there.
    """
    _check(asked)
    for _ in range(ATTEMPTS):
        times = yield from read(cypher.FORGOTTEN)
        try:
            ground = yield from look((yield from _episodes(asked)), settings)
            time = yield from now()
            plan = yield from planned(ground, settings, namespace, time)
        except KeyError:  # one query told of what another no longer finds, as others forget too
            if (yield from read(cypher.FORGOTTEN)) == times:
                raise
            continue
        if asked.dry_run:
            return _receipt(asked, ground, plan, time)
        if (yield from write(cypher.FORGET, **plan.params, now=time)):
            yield from refresh(since=time, before=time - LEFT)
            return _receipt(asked, ground, plan, time)
    raise DatabaseUnavailable(f"others changed the same things {ATTEMPTS} times while this was forgotten: try again")


def _check(asked: Asked) -> None:
    if (asked.episode is None) == (asked.fact is None):
        raise InputError("give either episode or fact: the id of what is to be forgotten")
    if not isinstance(asked.by, str) or not asked.by.strip() or len(asked.by) > LONGEST_REASON:
        raise InputError(f"by is {asked.by!r}: say who asks, in at most {LONGEST_REASON} characters")
    if not isinstance(asked.reason, str) or len(asked.reason) > LONGEST_REASON:
        raise InputError(f"the reason is no text of at most {LONGEST_REASON} characters: make it shorter")


def _episodes(asked: Asked) -> Flow[list[dict[str, Any]]]:
    """Return the episodes that go."""
    name, id_ = ("episode", asked.episode) if asked.fact is None else ("fact", asked.fact)
    found: list[dict[str, Any]] = []
    if isinstance(id_, str) and id_:
        ids = [clean(id_)]
        if name == "fact":
            ids = [row["id"] for row in (yield from read(cypher.STATING, fact=ids[0]))]
        found = yield from read(cypher.EPISODES, ids=ids)
    if not found:
        where = "memory.episodes()" if name == "episode" else "memory.facts_about(name)"
        raise InputError(f"there is no {name} {id_!r} in this namespace, or it is forgotten: {where} has the ids")
    return found


def _receipt(asked: Asked, ground: Ground, plan: Plan, time: int) -> Forgotten:
    gone, params = ground.gone.ids, plan.params
    shown = {
        **{each["id"]: line(each) for each in ground.episodes},
        **{id_: ground.facts[id_]["sentence"] for id_ in plan.leaving},
        **{id_: ground.entities[id_]["name"] for id_ in ground.leaving},
        **plan.believed.sentences,
    }
    retold = {each["id"] for each in params["retold"]} - {*plan.believed.restored}
    return Forgotten(
        episodes=tuple(each["id"] for each in ground.episodes if each["id"] in gone),
        facts=tuple(plan.leaving), entities=tuple(params["gone_entities"]),
        restored=tuple(plan.believed.restored), changed=tuple(sorted({*plan.believed.changed, *retold})),
        unread=tuple(params["unread"]), dry_run=asked.dry_run, at=rows.moment(time), by=clean(asked.by),
        reason=clean(asked.reason), texts=shown if asked.dry_run else {},
    )  # fmt: skip
