"""One part of forgetting: some messages go, with all that only they support, in one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kg_memory.errors import DatabaseUnavailable
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.revise import revive
from kg_memory.maintenance.forgetting import cypher, outbox
from kg_memory.maintenance.forgetting.look import Ground, look
from kg_memory.maintenance.forgetting.plan import Plan, planned
from kg_memory.maintenance.forgetting.traces import Traces, traced
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

ATTEMPTS = 50
"""How often it is tried to write while others write about the same things."""
Row = Mapping[str, Any]


@dataclass(slots=True)
class Done:
    """What went, by ids: the sum of the parts so far."""

    episodes: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    restored: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)

    def add(self, ground: Ground, plan: Plan, time: int, *, texts: bool = False) -> None:
        """Add what *plan* does at that *time*, with its *texts* for one who looks first."""
        params, believed = plan.params, plan.believed
        new = [each["new_id"] for each in params["redacted"]]
        self.episodes += [each["id"] for each in ground.episodes]
        self.facts += plan.leaving
        self.entities += params["gone_entities"]
        self.restored.update(believed.restored)
        self.changed.update(believed.changed, (each["id"] for each in params["retold"]))
        self.unread.update(params["unread"], new)
        self.redacted += new
        self.times.append(time)
        for gone in (self.episodes, self.facts, self.entities):
            for kept in (self.restored, self.changed, self.unread):
                kept.difference_update(gone if gone is not self.episodes else set(gone) - set(new))
        if texts:
            self.texts |= shown(ground, plan)


@dataclass(frozen=True, slots=True)
class Going:
    """The messages of a part, how those *redacted* are said then, and the note that is left of it."""

    ids: Sequence[str]
    redacted: Mapping[str, Row] = field(default_factory=dict)
    note: Mapping[str, Any] | None = None


def shown(ground: Ground, plan: Plan) -> dict[str, str]:
    """Return what each id stands for that goes or changes."""
    return {
        **{each["id"]: line(each) for each in ground.episodes},
        **{id_: ground.facts[id_]["sentence"] for id_ in plan.leaving},
        **{id_: ground.entities[id_]["name"] for id_ in ground.leaving},
        **plan.believed.sentences,
    }


def looked(going: Going, settings: Settings, namespace: str) -> Flow[tuple[Ground, Plan, int] | None]:
    """Return what removing the messages of *going* does; nothing if none of them is there."""
    for _ in range(ATTEMPTS):
        times = yield from read(cypher.FORGOTTEN)
        try:
            episodes = yield from read(cypher.EPISODES, ids=list(going.ids))
            if not episodes:
                return None
            ground = yield from look(episodes, settings, going.redacted)
            time = yield from now()
            plan = yield from planned(ground, settings, namespace, time)
        except KeyError:  # one query told of what another no longer finds, as others forget too
            if (yield from read(cypher.FORGOTTEN)) == times:
                raise
            continue
        return ground, plan, time
    raise _never()


def removed(going: Going, settings: Settings, namespace: str, done: Done) -> Flow[Traces]:
    """Remove the messages of *going*, add what went to *done*, and return by what it would be known again.

    It is looked at again where others changed something of it meanwhile.
    """
    for _ in range(ATTEMPTS):
        found = yield from looked(going, settings, namespace)
        if found is None:
            return Traces()
        ground, plan, time = found
        traces = yield from traced(ground, plan.params)
        note = None if going.note is None else _noted(going.note, ground, plan)
        if (yield from write(cypher.FORGET, **{**plan.params, "note": note}, now=time)):
            yield from revive(plan.believed.revision.revived)
            done.add(ground, plan, time)
            return traces
    raise _never()


def _noted(note: Mapping[str, Any], ground: Ground, plan: Plan) -> str:
    masked = note["messages"]
    counts = {"episodes": len(ground.episodes), "facts": len(plan.leaving), "entities": len(ground.leaving)}
    return outbox.written({**note, **counts, "messages": [masked[each["id"]] for each in ground.episodes]})


def _never() -> DatabaseUnavailable:
    return DatabaseUnavailable(f"others changed the same things {ATTEMPTS} times while this was forgotten: try again")
