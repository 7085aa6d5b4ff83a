"""Step 1, detect: the communities of the entities, by the facts that are so now (Zep 2.3)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from kg_memory.communities.load import Links, load
from kg_memory.communities.propagation import communities
from kg_memory.communities.state import CommunitiesState, Group
from kg_memory.effects import work
from kg_memory.flow import Flow
from kg_memory.identity import checked_namespace, community_id
from kg_memory.settings import Settings


def detect(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Read the graph and find what belongs together in it."""
    links = yield from load()
    namespace = checked_namespace(state.get("namespace"))
    groups: list[Group] = yield from work(lambda: grouped(namespace, links))
    tries = state.get("tries") or 0  # a run that others got in the way of comes here again, and counts on
    return {"found": len(groups), "groups": groups, "tries": tries, "asked": state["asked"] if tries else 0}


def grouped(namespace: str, links: Links) -> list[Group]:
    """Return the communities of *links*; each has an id by its oldest member, and so keeps it as others come."""
    found = communities(links.facts.values())
    group_of = {member: place for place, members in enumerate(found) for member in members}
    inner: dict[int, list[str]] = defaultdict(list)
    shares: Counter[int] = Counter()
    for fact, ends in links.facts.items():
        places = {group_of.get(each, -1) for each in ends}
        if len(places) == 1 and -1 not in places:
            inner[places.pop()].append(fact)
            shares.update(ends)
    return [
        Group(
            id=community_id(namespace, links.entities[members[0]]),
            members=[links.entities[each] for each in sorted(members, key=lambda one: (-shares[one], one))],
            fingerprint=fingerprint((links.entities[each] for each in members), inner[place]),
        )
        for place, members in enumerate(found)
    ]


def fingerprint(members: Iterable[str], facts: Iterable[str]) -> str:
    """Return what tells a community from what it was: of its members and the facts among them (C38)."""
    told = "\n".join(("members", *sorted(members), "facts", *sorted(facts)))
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
