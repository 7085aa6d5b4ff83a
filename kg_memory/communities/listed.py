"""The communities as users get them: listed, and what a refresh made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_memory.effects import read
from kg_memory.falkor import community_cypher as cypher
from kg_memory.flow import Flow
from kg_memory.model import Community, CommunityRefresh
from kg_memory.reading import counted
from kg_memory.usage import StepUsage, Usage


def listed(limit: int, skip: int) -> Flow[list[Community]]:
    """Return the communities with the names of their members, largest first."""
    found = yield from read(cypher.COMMUNITIES, limit=counted("limit", limit), skip=counted("skip", skip, 0))
    return [Community(**row["community"], members=tuple(row["members"])) for row in found]


def refreshed(state: Mapping[str, Any]) -> CommunityRefresh:
    """Return what a run of the communities graph did."""
    return CommunityRefresh(
        communities=state["found"],
        changed=len(state["groups"]),
        unchanged=state["unchanged"],
        removed=len(state["removed"]),
        asked=state["asked"],
        usage=sum((StepUsage(**each) for each in state["steps"]), Usage()),
    )
