"""Step 4, save: all that changed in one atomic query, unless others refreshed the communities meanwhile."""

from __future__ import annotations

from typing import Any

from kg_memory.communities.records import CommunitiesState, Group, Told
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.runtime.effects import Vector, embed, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import tokenise

TRIES = 5
"""How often it is tried to save while others save; what one of them wrote, the next try finds unchanged."""


def save(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Write the communities that changed, with their members and words, and remove those that are no more.

    Where others wrote some since they were compared, nothing is written, and `tries` tells so. Errors:
    `DatabaseUnavailable` where that never ends.
    """
    told = state["told"]
    vectors = yield from embed([each["name"] for each in told])
    rows = [_row(*each) for each in zip(state["groups"], told, vectors, strict=True)]
    members = [member for each in rows for member in each["members"]]
    kept = {name: state[name] for name in ("removed", "strayed", "revision")}
    if (yield from write(cypher.SAVE, communities=rows, members=members, **kept, **NO_USAGE)):
        return {"tries": 0}
    tries = state["tries"] + 1
    if tries == TRIES:
        raise DatabaseUnavailable(f"others changed the communities {TRIES} times meanwhile: refresh them again later")
    return {"tries": tries}


def _row(group: Group, told: Told, vector: Vector) -> dict[str, Any]:
    terms = tokenise.count(told["summary"]) + tokenise.count(told["name"], NAME_WEIGHT)
    lowest = group["level"] == 0
    return {
        **told, "level": group["level"], "embedding": vector, "n": terms.total(),
        "members": group["members"] if lowest else [], "parts": [] if lowest else group["members"],
        "terms": [{"term": term, "f": f} for term, f in sorted(terms.items())],
    }  # fmt: skip
