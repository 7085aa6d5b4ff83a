"""The graph as communities see it: entities, the facts that join them now, and which communities they are in.

A part of the step `detect`, and none by itself: what it reads is too much for a state (see `state`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kg_memory.falkor.queries import communities as cypher
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow

PAGE = 2_000
"""How many internal ids one query looks at (C35); reading the answer to more would hold an event loop up."""


class Links(NamedTuple):
    """The ids of the entities, the oldest first, and of each current fact the places of its entities among them.

    `stored` is in which community an entity is, if it is in one, and of which it is a part.
    """

    entities: list[str]
    facts: dict[str, tuple[int, ...]]
    stored: Mapping[str, str] = MappingProxyType({})
    wholes: Mapping[str, str] = MappingProxyType({})


def load() -> Flow[Links]:
    """Return all entities and current facts of a namespace, read page by page."""
    instant = yield from now()
    stored: dict[str, str] = {}
    joined: dict[str, tuple[str, ...]] = {}

    def join(row: dict[str, Any]) -> None:
        ends = joined.get(row["id"], ())
        joined[row["id"]] = (*ends, *(each for each in (row["subject"], row["object"]) if each not in ends))

    def place(row: dict[str, Any]) -> None:
        stored[row["entity"]] = row["community"]

    # Memberships come first: all that joined their entities is there by then.
    yield from _each(cypher.LAST_ENTITY, cypher.MEMBERSHIPS, place)
    wholes = {row["part"]: row["whole"] for row in (yield from read(cypher.WHOLES))}
    yield from _each(cypher.LAST_FACT, cypher.FACTS, join, now=instant)
    # The entities come last: those of all the facts that were read are there by then.
    known: list[tuple[int, str]] = []
    yield from _each(cypher.LAST_ENTITY, cypher.ENTITIES, lambda row: known.append((row["created_at"], row["id"])))
    entities = [id_ for _, id_ in sorted(known)]
    places = {id_: place for place, id_ in enumerate(entities)}
    return Links(entities, {fact: _placed(ends, places) for fact, ends in joined.items()}, stored, wholes)


def _placed(ends: tuple[str, ...], places: dict[str, int]) -> tuple[int, ...]:
    """Return the places of *ends*, without one that was deleted meanwhile."""
    return tuple(sorted(places[each] for each in ends if each in places))


def _each(last: str, page: str, take: Callable[[dict[str, Any]], None], **params: Any) -> Flow[None]:
    """Let *take* see every row of all pages."""
    found = yield from read(last)
    end = found[0]["last"] if found else None
    for first in range(0, 0 if end is None else end + 1, PAGE):
        for row in (yield from read(page, first=first, end=first + PAGE, **params)):
            take(row)
