"""How far candidates are from where a question looks: the shortest path, one query a hop, never through one twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kg_memory.errors import InputError
from kg_memory.falkor.queries import features as cypher
from kg_memory.retrieval.records import Instants
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key

MOST_ENTITIES = 2000
"""How many entities are walked over; what lies beyond them counts as not connected."""


def called(name: str) -> Flow[list[str]]:
    """Return the ids of the entities that have *name* as their name or alias.

    Errors: `InputError` when there is none.
    """
    [row] = (yield from read(cypher.CALLED, key=alias_key(name))) or [{"entities": ""}]
    if not row["entities"]:
        raise InputError(f"nothing is known of the center {name!r}: give the name of an entity, or no center")
    return sorted(row["entities"].split())


def distances(
    start: Collection[str], wanted: Collection[str], max_hops: int, instants: Instants
) -> Flow[dict[str, int]]:
    """Return the hops from the nearest of *start* to entities, along facts that hold, until it has all *wanted*."""
    hops = dict.fromkeys(sorted(start)[:MOST_ENTITIES], 0)
    edge, missing = list(hops), set(wanted) - hops.keys()
    for distance in range(1, max_hops + 1):
        room = MOST_ENTITIES - len(hops)
        if not (edge and missing and room):
            break
        # It finds again those that are known; with as many more it finds enough others.
        [row] = (yield from read(cypher.NEXT_TO, ids=edge, limit=MOST_ENTITIES, **instants)) or [{"entities": ""}]
        edge = sorted(set(row["entities"].split()) - hops.keys())[:room]
        hops |= dict.fromkeys(edge, distance)
        missing -= hops.keys()
    return hops


def nearest(entities: Mapping[str, Collection[str]], hops: Mapping[str, int]) -> dict[str, int]:
    """Return how far each id is by the nearest of its *entities*; without those that are not connected."""
    found = {id_: [hops[each] for each in ends if each in hops] for id_, ends in entities.items()}
    return {id_: min(ends) for id_, ends in found.items() if ends}
