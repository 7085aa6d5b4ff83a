"""Step 2, compare: which communities changed since they were stored, and which are no more (C38)."""

from __future__ import annotations

from typing import Any

from kg_memory.communities.records import CommunitiesState
from kg_memory.falkor.queries import communities as cypher
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings


def compare(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Keep only the groups that are to be summarised: with other members or facts than before, or all if asked."""
    found = yield from read(cypher.STORED)
    answered = yield from read(cypher.ANSWERS)
    known = {row["id"]: row["fingerprint"] for row in found[0]["stored"]} if found else {}
    groups = state["groups"]
    changed = [each for each in groups if state.get("full") or known.get(each["id"]) != each["fingerprint"]]
    removed = sorted(known.keys() - {each["id"] for each in groups})
    return {
        "groups": changed,
        "unchanged": len(groups) - len(changed),
        "removed": removed,
        "revision": found[0]["revision"] if found else 0,
        "answers": {row["key"]: row["answer"] for row in answered},
        "told": [],
        "tries": state["tries"] if changed or removed or state["strayed"] else 0,
    }
