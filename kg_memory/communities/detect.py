"""Step 1, detect: the communities of the entities, by the facts that are so now (Zep 2.3), and those above them."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kg_memory.communities.drift import drift
from kg_memory.communities.hierarchy import hierarchy
from kg_memory.communities.load import Links, load
from kg_memory.communities.records import CommunitiesState, Group, Membership
from kg_memory.runtime.effects import work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import checked_namespace, community_id


def detect(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Read the graph and find what belongs together in it, and who is stored as a member of something else."""
    links = yield from load()
    namespace = checked_namespace(state.get("namespace"))
    tries = state.get("tries") or 0  # a run that others got in the way of comes here again, and counts on
    anew = bool(state.get("full"))
    found: dict[str, Any] = yield from work(lambda: _found(links, grouped(namespace, links, anew=anew)))
    return {**found, "tries": tries, "asked": state["asked"] if tries else 0}


def _found(links: Links, groups: list[Group]) -> dict[str, Any]:
    community_of = {member: each["id"] for each in groups if each["level"] == 0 for member in each["members"]}
    return {
        "found": len(groups),
        "levels": max((each["level"] + 1 for each in groups), default=0),
        "groups": groups,
        "strayed": strayed(links.stored, community_of),
        "drift": drift(links.stored, community_of),
    }


def strayed(stored: Mapping[str, str], found: Mapping[str, str]) -> list[Membership]:
    """Return who is stored in another community than the one that is found."""
    return [
        {"community": community, "entity": entity}
        for entity, community in stored.items()
        if found.get(entity) != community
    ]


class _Part(NamedTuple):
    """A group, the place of its oldest entity, and how many entities are in it."""

    group: Group
    oldest: int
    size: int


def grouped(namespace: str, links: Links, *, anew: bool = False) -> list[Group]:
    """Return the communities of *links*, and those above them, level by level.

    They come from those that are stored, of which few change then, or are found *anew*, by the links alone. Each has an
    id by its oldest member, and so keeps it as others come.
    """

    def before(levels: list[list[list[int]]]) -> dict[int, str]:
        if not levels:
            return {place: links.stored[id_] for place, id_ in enumerate(links.entities) if id_ in links.stored}
        ids = enumerate(_ids(namespace, links, levels))
        return {place: links.wholes[id_] for place, id_ in ids if id_ in links.wholes}

    lowest, *higher = hierarchy(links.facts.values(), (lambda _: {}) if anew else before)
    below = _lowest(namespace, links, lowest)
    groups = [each.group for each in below]
    for level, found in enumerate(higher, 1):
        below = [_higher(namespace, links, level, [below[part] for part in parts]) for parts in found]
        groups += [each.group for each in below]
    return groups


def _ids(namespace: str, links: Links, levels: Sequence[Sequence[Sequence[int]]]) -> list[str]:
    """Return the ids of the communities of the highest of *levels*, by their oldest members."""
    oldest = [members[0] for members in levels[0]]
    for found in levels[1:]:
        oldest = [min(oldest[part] for part in parts) for parts in found]
    return [community_id(namespace, links.entities[each], len(levels) - 1) for each in oldest]


def _lowest(namespace: str, links: Links, found: Sequence[Sequence[int]]) -> list[_Part]:
    """Return the communities of entities, whose members are those with most facts in it first."""
    group_of = {member: place for place, members in enumerate(found) for member in members}
    inner: dict[int, list[str]] = defaultdict(list)
    shares: Counter[int] = Counter()
    for fact, ends in links.facts.items():
        places = {group_of.get(each, -1) for each in ends}
        if len(places) == 1 and -1 not in places:
            inner[places.pop()].append(fact)
            shares.update(ends)
    groups = [
        Group(
            id=community_id(namespace, links.entities[members[0]]),
            level=0,
            members=[links.entities[each] for each in sorted(members, key=lambda one: (-shares[one], one))],
            fingerprint=fingerprint((links.entities[each] for each in members), inner[place]),
        )
        for place, members in enumerate(found)
    ]
    return [_Part(group, members[0], len(members)) for group, members in zip(groups, found, strict=True)]


def _higher(namespace: str, links: Links, level: int, parts: Sequence[_Part]) -> _Part:
    """Return the community of communities that *parts* are, the largest of them first."""
    oldest = min(each.oldest for each in parts)
    below = [each.group for each in sorted(parts, key=lambda part: (-part.size, part.oldest))]
    group = Group(
        id=community_id(namespace, links.entities[oldest], level),
        level=level,
        members=[each["id"] for each in below],
        fingerprint=fingerprint((each["id"] for each in below), (each["fingerprint"] for each in below)),
    )
    return _Part(group, oldest, sum(each.size for each in parts))


def fingerprint(members: Iterable[str], facts: Iterable[str]) -> str:
    """Return what tells a community from what it was: of its members and the facts among them (C38).

    In place of the facts, that of a higher one has the fingerprints of its parts.
    """
    told = "\n".join(("members", *sorted(members), "facts", *sorted(facts)))
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
