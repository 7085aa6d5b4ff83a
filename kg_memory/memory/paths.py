"""The shortest path of facts between two entities: how one is related to the other (C57)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.queries import paths as cypher
from kg_memory.falkor.queries.search import ENTITIES_BY_ID, FACTS_BY_ID
from kg_memory.memory.listing import NAME_HINT, belief_params, to_facts
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.retrieval.time_window import Window
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.validation import validate_name

MOST_LINKS = 5_000
"""The facts that are followed at each step, the latest first."""

Came = dict[str, tuple[str, str]]
"""From which entity, and along which fact, each entity was reached."""


def find_named(argument: str, name: str) -> Flow[dict[str, rows.Row]]:
    """Return the entities called *name*, or the one with that id, by their ids.

    Errors: `InputError`.
    """
    name = replace_unstorable(validate_name(argument, name, NAME_HINT))
    called = yield from read(queries.CALLED, alias=alias_key(name))
    if not called:
        called = yield from read(ENTITIES_BY_ID, ids=[name])
    return {row["entity"]["id"]: row["entity"] for row in called}


def read_path(name: str, target: str, steps: int, window: Window | None, believed_at: int | None) -> Flow[list[Fact]]:
    """Return the facts of a shortest path between two entities, in its order; none if they are further apart."""
    starts = yield from find_named("name", name)
    ends = yield from find_named("target", target)
    if window is None:
        time = yield from now()
        window = time, time + 1
    seen = yield from belief_params(window, believed_at)
    came: Came = {}
    reached, edge = set(starts), sorted(starts)
    for _ in range(steps):
        if not edge or reached & ends.keys():
            break
        links = yield from read(cypher.LINKS, ids=edge, limit=MOST_LINKS, **seen)
        edge = _go_on(links, reached, came)
    facts = _go_back(min(reached & ends.keys(), default=None), came)
    stored = yield from read(FACTS_BY_ID, ids=facts, sources=SOURCES, **seen)
    by_id = {fact.id: fact for fact in (yield from to_facts(stored, window, seen["believed_at"]))}
    return [by_id[fact] for fact in facts if fact in by_id]


def _go_on(links: Collection[Mapping[str, object]], reached: set[str], came: Came) -> list[str]:
    """Note how the entities of *links* are reached, and return the new ones."""
    new: list[str] = []
    for link in links:
        for end in sorted(link["ends"]):  # type: ignore[call-overload]
            if end not in reached:
                reached.add(end)
                came[end] = str(link["id"]), str(link["fact"])
                new.append(end)
    return new


def _go_back(end: str | None, came: Came) -> list[str]:
    """Return the facts that lead to *end*, the first one first."""
    facts: list[str] = []
    while end in came:
        end, fact = came[end]
        facts.append(fact)
    return facts[::-1]
