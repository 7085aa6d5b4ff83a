"""An entity at a glance (D11): what is known of it, whom it is linked with, and where it was last spoken of."""

from __future__ import annotations

from collections import Counter

from kg_memory.falkor import rows
from kg_memory.falkor.queries import communities, episodes
from kg_memory.memory.past import Believed, around
from kg_memory.memory.reading import counted
from kg_memory.models.surroundings import EntityCard, Neighbour
from kg_memory.retrieval.time_window import Window
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, replace_unstorable

MOST_FACTS = 1000
"""So many facts are looked at for the neighbours."""


def card(name: str, limit: int, window: Window | None = None, believed_at: Believed = None) -> Flow[EntityCard | None]:
    """Return the entity called *name* with *limit* of each: its latest facts, neighbours and mentions; if it is there.

    Facts and neighbours are by what was so in *window*, else now.
    """
    limit = counted("limit", limit)
    near = yield from around(name, 1, MOST_FACTS, window, believed_at)
    alias = alias_key(replace_unstorable(name))
    mentioned, grouped = yield from in_step(
        (read(episodes.EPISODES_ABOUT, alias=alias, limit=limit), read(communities.COMMUNITIES_ABOUT, alias=alias))
    )
    entities = [each for each in near.entities if near.depths[each.name] == 0]
    if not entities:
        return None
    own = entities[0]
    shared = Counter(
        end for fact in near.facts for end in {fact.subject, *fact.objects} - {each.name for each in entities}
    )
    types = {each.name: each.type for each in near.entities}
    return EntityCard(
        entity=own,
        facts=near.facts[:limit],
        neighbours=tuple(
            Neighbour(name=other, type=types.get(other, "Entity"), facts=count)
            for other, count in sorted(shared.items(), key=lambda one: (-one[1], one[0]))[:limit]
        ),
        episodes=tuple(rows.to_episode(row["episode"]) for row in mentioned),
        communities=tuple(rows.to_community(row["community"]) for row in grouped),
    )
