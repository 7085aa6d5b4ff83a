"""Step 1, detect: find the communities of the entities by the facts that hold now (Zep 2.3), and those above them.

What the step reads never enters the state: the links of 100,000 entities and 500,000 facts would make a checkpoint of
sixty megabytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

from kg_memory.communities.records import CommunitiesState, Group, Membership, Row, Update
from kg_memory.falkor.queries import communities as cypher
from kg_memory.falkor.rows import list_pages
from kg_memory.runtime.effects import now, read, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import community_id
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

PAGE = 2_000
"""Internal ids that one query covers (C35); decoding a larger answer would block an event loop."""
ROUNDS = 50
"""The most rounds of label propagation."""
SMALLEST = 2
"""The fewest members of a community."""
FEW = 50
"""At most this many communities need no level above them."""

Neighbours = dict[int, dict[int, int]]
"""The number of links of each node with each of its neighbours."""
Level = list[list[int]]
"""The communities of one level: their members, or the places of their parts in the level below."""


class Links(NamedTuple):
    """The graph of a namespace as far as communities need it.

    `entities` are ids, the oldest first; `facts` has for each current fact the places of its entities among them.
    `stored` is the community of each entity that has one, and `wholes` the community that each community is part of.
    """

    entities: list[str]
    facts: dict[str, tuple[int, ...]]
    stored: Mapping[str, str] = MappingProxyType({})
    wholes: Mapping[str, str] = MappingProxyType({})


def detect(state: CommunitiesState, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Load the graph, find its communities, and list the entities that are stored in another one."""
    links = yield from load_links()
    namespace = validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
    tries = state.get("tries") or 0  # a run that another refresh overtook comes here again, and counts on
    full = bool(state.get("full"))
    groups: list[Group] = yield from work(lambda: find_communities(namespace, links, full=full))
    update = _compare_memberships(links, groups)
    return {**update, "tries": tries, "questions": state["questions"] if tries else 0}


def _compare_memberships(links: Links, groups: list[Group]) -> Update:
    lowest = [community for community in groups if community["level"] == 0]
    community_of = {member: community["id"] for community in lowest for member in community["members"]}
    strayed: list[Membership] = [
        {"community": community, "entity": entity}
        for entity, community in links.stored.items()
        if community_of.get(entity) != community
    ]
    return {
        "communities": len(groups),
        "levels": max((community["level"] + 1 for community in groups), default=0),
        "groups": groups,
        "strayed": strayed,
        "drift": drift(links.stored, community_of),
    }


def drift(stored: Mapping[str, str], detected: Mapping[str, str]) -> float | None:
    """Return the share of the entities whose stored community is not the detected one, ``None`` if none is stored.

    An entity that only one of the two mappings has counts as well (Zep 2.3).
    """
    if not stored:
        return None
    entities = stored.keys() | detected.keys()
    moved = sum(stored.get(entity) != detected.get(entity) for entity in entities)
    return round(moved / len(entities), 6)


# Loading.


def load_links() -> Flow[Links]:
    """Return all entities and current facts of a namespace, read page by page."""
    instant = yield from now()
    stored: dict[str, str] = {}
    ends: dict[str, tuple[str, ...]] = defaultdict(tuple)
    created: list[tuple[int, str]] = []

    def add_membership(row: Row) -> None:
        stored[row["entity"]] = row["community"]

    def add_fact(row: Row) -> None:
        new = [entity for entity in (row["subject"], row["object"]) if entity not in ends[row["id"]]]
        ends[row["id"]] = (*ends[row["id"]], *new)

    # Memberships come first: all that joined their entities is there by then.
    yield from _read_pages(cypher.LAST_ENTITY, cypher.MEMBERSHIPS, add_membership)
    wholes = {row["part"]: row["whole"] for row in (yield from read(cypher.WHOLES))}
    yield from _read_pages(cypher.LAST_FACT, cypher.FACTS, add_fact, now=instant)
    # Entities come last: those of all the facts that were read are there by then.
    yield from _read_pages(
        cypher.LAST_ENTITY, cypher.ENTITIES, lambda row: created.append((row["created_at"], row["id"]))
    )
    entities = [id_ for _, id_ in sorted(created)]
    place_of = {id_: place for place, id_ in enumerate(entities)}
    facts = {}
    for fact, members in ends.items():
        # An entity that was deleted meanwhile has no place.
        facts[fact] = tuple(sorted(place_of[entity] for entity in members if entity in place_of))
    return Links(entities, facts, stored, wholes)


def _read_pages(last: str, page: str, take: Callable[[Row], None], **params: Any) -> Flow[None]:
    """Call *take* with every row of all pages."""
    rows = yield from read(last)
    for ids in list_pages(rows[0]["last"] if rows else None, PAGE):
        for row in (yield from read(page, **ids, **params)):
            take(row)


# Groups.


class _Part(NamedTuple):
    """A group, the place of its oldest entity, and how many entities it has."""

    group: Group
    oldest: int
    size: int


def find_communities(namespace: str, links: Links, *, full: bool = False) -> list[Group]:
    """Return the communities of *links*, and those above them, level by level.

    They start from the stored communities, so that few change; *full* starts from the links alone. A community has an
    id by its oldest member, and so keeps it as others join. A link between members of two communities is a link between
    the two. No level follows one of `FEW` communities or fewer, and none has a single community; each has at most half
    as many as the one below.
    """
    stored, wholes = ({}, {}) if full else (links.stored, links.wholes)
    joined: Collection[Sequence[int]] = links.facts.values()
    level = propagate(joined, {place: stored[id_] for place, id_ in enumerate(links.entities) if id_ in stored})
    parts = _group_entities(namespace, links, level)
    groups = [part.group for part in parts]
    while len(parts) > FEW:
        joined = _lift(joined, level)
        ids = enumerate(part.group["id"] for part in parts)
        level = propagate(joined, {place: wholes[id_] for place, id_ in ids if id_ in wholes})
        if len(level) < 2:
            break
        parts = [_group_parts(namespace, links, parts, places) for places in level]
        groups += [part.group for part in parts]
    return groups


def _lift(links: Iterable[Sequence[int]], level: Level) -> list[tuple[int, ...]]:
    """Return the *links* between the communities of a *level*: those of their members."""
    place_of = {member: place for place, members in enumerate(level) for member in members}
    connected = ({place_of[node] for node in link if node in place_of} for link in links)
    return [tuple(places) for places in connected if len(places) > 1]


def _group_entities(namespace: str, links: Links, communities: Level) -> list[_Part]:
    """Return the communities of entities; the members that share most facts inside come first."""
    group_of = {member: place for place, members in enumerate(communities) for member in members}
    inner: dict[int, list[str]] = defaultdict(list)
    shares: Counter[int] = Counter()
    for fact, ends in links.facts.items():
        places = {group_of.get(entity, -1) for entity in ends}
        if len(places) == 1 and -1 not in places:
            inner[places.pop()].append(fact)
            shares.update(ends)
    parts = []
    for place, members in enumerate(communities):
        ranked = sorted(members, key=lambda member: (-shares[member], member))
        ids = [links.entities[member] for member in ranked]
        community = Group(
            id=community_id(namespace, links.entities[members[0]]),
            level=0,
            members=ids,
            fingerprint=fingerprint(ids, inner[place]),
        )
        parts.append(_Part(community, members[0], len(members)))
    return parts


def _group_parts(namespace: str, links: Links, below: Sequence[_Part], places: Sequence[int]) -> _Part:
    """Return the community of those communities *below* that stand at *places*, the largest of them first."""
    parts = sorted((below[place] for place in places), key=lambda part: (-part.size, part.oldest))
    oldest = min(part.oldest for part in parts)
    level = parts[0].group["level"] + 1
    members = [part.group["id"] for part in parts]
    community = Group(
        id=community_id(namespace, links.entities[oldest], level),
        level=level,
        members=members,
        fingerprint=fingerprint(members, (part.group["fingerprint"] for part in parts)),
    )
    return _Part(community, oldest, sum(part.size for part in parts))


def fingerprint(members: Iterable[str], facts: Iterable[str]) -> str:
    """Return a digest of a community's members and the facts among them; it changes when they do (C38).

    A community of communities has the fingerprints of its parts in place of facts.
    """
    text = "\n".join(("members", *sorted(members), "facts", *sorted(facts)))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# Label propagation: nodes that share many links end with the same label.


def propagate(links: Iterable[Sequence[int]], before: Mapping[int, Hashable] | None = None) -> Level:
    """Return the communities of the nodes of *links*, each in ascending order, by their first members (Zep 2.3).

    A link joins any two of its ends; a link of a node with itself counts nothing. The order of links has no effect.
    With the communities *before*, few nodes move, and none if the links are the same. O(links x rounds).
    """
    near = _neighbours(links)
    labels = _labels_from(near, before) if before else _labels(near)
    communities: Level = []
    seen: set[int] = set()
    for node in sorted(near):
        if node not in seen:
            communities.append(_component(node, near, labels))
            seen.update(communities[-1])
    return [members for members in communities if len(members) >= SMALLEST]


def _component(first: int, near: Neighbours, labels: dict[int, int]) -> list[int]:
    """Return all nodes with the label of *first* that links connect to it; a label may have spread to two places."""
    members = {first}
    open_ = [first]
    while open_:
        further = {node for node in near[open_.pop()] if labels[node] == labels[first]} - members
        members |= further
        open_ += further
    return sorted(members)


def _neighbours(links: Iterable[Sequence[int]]) -> Neighbours:
    near: Neighbours = defaultdict(lambda: defaultdict(int))
    for link in links:
        for one, two in combinations(sorted(set(link)), 2):
            near[one][two] += 1
            near[two][one] += 1
    return near


def _labels(near: Neighbours) -> dict[int, int]:
    """Give each node the label that weighs most among its neighbours, the smallest of several, until none changes.

    All labels change at once only in the first round, so that no label runs through the whole graph while every other
    stands alone: planted groups of 40 are found again with a mutual information of 0.96 in place of 0.80. Then they
    change one after the other, the smallest node first. So each change joins more links within labels, or as many
    under a smaller label, and the rounds end; labels that all change at once could swap for ever.
    """
    alone = {node: node for node in near}
    return _spread(near, {node: _heaviest(near[node], alone) for node in near}, ROUNDS - 1)


def _labels_from(near: Neighbours, before: Mapping[int, Hashable]) -> dict[int, int]:
    """Return the labels that the communities *before* end with; a node moves only where another label weighs more."""
    first: dict[Hashable, int] = {}
    for node in sorted(before):
        first.setdefault(before[node], node)
    labels = {node: first[before[node]] if node in before else node for node in near}
    return _spread(near, labels, ROUNDS, stay=True)


def _spread(near: Neighbours, labels: dict[int, int], rounds: int, *, stay: bool = False) -> dict[int, int]:
    """Change *labels* one by one until none changes; with *stay*, a node keeps its label if none weighs more."""
    order = sorted(near)
    due = set(order)
    for _ in range(rounds):
        if not due:
            break
        for node in order:
            if node in due:
                due.discard(node)
                label = _heaviest(near[node], labels, labels[node] if stay else None)
                if label != labels[node]:
                    labels[node] = label
                    due.update(near[node])
    return labels


def _heaviest(near: dict[int, int], labels: dict[int, int], own: int | None = None) -> int:
    weights: dict[int, int] = defaultdict(int)
    for node, links in near.items():
        weights[labels[node]] += links
    most = max(weights.values())
    if own is not None and weights.get(own) == most:
        return own
    return min(label for label, weight in weights.items() if weight == most)
