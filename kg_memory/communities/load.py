"""The graph as communities see it: entities, and the facts that join them now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kg_memory.effects import now, read
from kg_memory.falkor import community_cypher as cypher
from kg_memory.flow import Flow

PAGE = 2_000
"""How many internal ids one query looks at (C35); reading the answer to more would hold an event loop up."""


class Links(NamedTuple):
    """The ids of the entities, the oldest first, and of each current fact the places of its entities among them."""

    entities: list[str]
    facts: dict[str, tuple[int, ...]]


def load() -> Flow[Links]:
    """Return all entities and current facts of a namespace, read page by page."""
    instant = yield from now()
    joined: dict[str, set[str]] = {}

    def join(row: dict[str, Any]) -> None:
        joined.setdefault(row["id"], set()).update((row["subject"], row["object"]))

    yield from _each(cypher.LAST_FACT, cypher.FACTS, join, now=instant)
    # The entities come last: those of all the facts that were read are there by then.
    known: list[tuple[int, str]] = []
    yield from _each(cypher.LAST_ENTITY, cypher.ENTITIES, lambda row: known.append((row["created_at"], row["id"])))
    entities = [id_ for _, id_ in sorted(known)]
    places = {id_: place for place, id_ in enumerate(entities)}
    return Links(entities, {fact: _placed(ends, places) for fact, ends in joined.items()})


def _placed(ends: set[str], places: dict[str, int]) -> tuple[int, ...]:
    """Return the places of *ends*, without one that was deleted meanwhile."""
    return tuple(sorted(places[each] for each in ends if each in places))


def _each(last: str, page: str, take: Callable[[dict[str, Any]], None], **params: Any) -> Flow[None]:
    """Let *take* see every row of all pages."""
    found = yield from read(last)
    end = found[0]["last"] if found else None
    for first in range(0, 0 if end is None else end + 1, PAGE):
        for row in (yield from read(page, first=first, end=first + PAGE, **params)):
            take(row)
