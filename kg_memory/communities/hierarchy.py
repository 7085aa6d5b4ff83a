"""Communities of communities, purely: the same propagation once more, on what facts join groups to each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from kg_memory.communities.propagation import communities

FEW = 50
"""So many communities need none above them."""


Groups = list[list[int]]
Before = Callable[[list[Groups]], Mapping[int, Hashable]]
"""Where the things of the next level were before, by their places, of all levels below it."""


def hierarchy(links: Collection[Sequence[int]], before: Before = lambda _: {}) -> list[Groups]:
    """Return the levels of communities: first those of what *links* join, then each of places in the one below.

    A link between members of two communities is one between these; where things were *before* counts. No level follows
    one of `FEW` communities or less, and none is a single one; each has no more than half as many as the one below.
    """
    levels = [communities(links, before([]))]
    while len(levels[-1]) > FEW:
        place_of = {member: place for place, members in enumerate(levels[-1]) for member in members}
        links = [tuple({place_of[each] for each in link if each in place_of}) for link in links]
        links = [link for link in links if len(link) > 1]
        above = communities(links, before(levels))
        if len(above) < 2:
            break
        levels.append(above)
    return levels
