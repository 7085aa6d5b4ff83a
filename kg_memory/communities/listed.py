"""The communities as users get them: listed, and what a refresh made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.queries import communities as cypher
from kg_memory.memory.reading import counted
from kg_memory.models.graph import SOURCES, Community, CommunityRefresh
from kg_memory.models.surroundings import CommunityCard
from kg_memory.models.usage import StepUsage, Usage
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import clean


def listed(limit: int, skip: int, level: int | None = None) -> Flow[list[Community]]:
    """Return the communities, of one *level* or all, with the names of their members; the highest and largest first."""
    page = {"limit": counted("limit", limit), "skip": counted("skip", skip, 0)}
    level = None if level is None else counted("level", level, 0)
    found = yield from read(cypher.COMMUNITIES, **page, level=level)
    return [_whole(row) for row in found]


def card(name: str, limit: int) -> Flow[CommunityCard | None]:
    """Return the community with the id *name*, or a name that begins so, with *limit* of its facts; if it is there."""
    found = yield from read(cypher.FIND, name=clean(name))
    told = (yield from read(cypher.ONE, id=found[0]["id"])) if found else []
    if not told:
        return None
    [row] = told
    parts = tuple(map(rows.community, row["parts"]))
    instant = yield from now()
    facts = yield from read(
        cypher.TELL_FACTS_AMONG, ids=row["ids"], now=instant, limit=counted("limit", limit), sources=SOURCES
    )
    return CommunityCard(
        community=_whole({**row, "parts": [each.name for each in parts]}),
        facts=tuple(map(rows.fact, facts)),
        parts=parts,
        part_of=rows.community(row["above"][0]) if row["above"] else None,
    )


def _whole(row: Mapping[str, Any]) -> Community:
    inside = {name: tuple(row[name]) for name in ("members", "parts")}
    return rows.community(row["community"]).model_copy(update={**inside, "joined": row["joined"]})


def refreshed(state: Mapping[str, Any]) -> CommunityRefresh:
    """Return what a run of the communities graph did."""
    return CommunityRefresh(
        communities=state["found"],
        levels=state["levels"],
        changed=len(state["groups"]),
        unchanged=state["unchanged"],
        removed=len(state["removed"]),
        drift=state["drift"],
        asked=state["asked"],
        usage=sum((StepUsage(**each) for each in state["steps"]), Usage()),
    )
