"""Step 1, detect: find the communities of entities from the facts that hold now, and the communities above them.

The graph that this step reads is never stored in the state: a checkpoint with the links of 100,000 entities and 500,000
facts would take 60 MB.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

from kg_memory.communities.records import CommunitiesState, EntityCluster, Membership, Row, Update
from kg_memory.falkor.queries import communities as cypher
from kg_memory.falkor.rows import list_pages
from kg_memory.runtime.effects import fetch, now, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import community_id
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

PAGE = 2_000
"""The number of internal node ids that one query covers. Decoding a larger answer would block an event loop."""
ROUNDS = 50
"""The most rounds of label propagation."""
SMALLEST = 2
"""The fewest members of a community."""
FEW = 50
"""At most this many communities are not grouped into a higher level."""

Neighbours = dict[int, dict[int, int]]
"""The number of links of each node to each of its neighbours; nodes are indexes in `Links.entities`."""
Level = list[list[int]]
"""The communities of one level: the indexes of their members in `Links.entities`, or of communities one level below."""


class Links(NamedTuple):
    """The entities and facts of a namespace, in which communities (groups of connected entities) are detected."""

    entities: list[str]
    facts: dict[str, tuple[int, ...]]
    stored: Mapping[str, str] = MappingProxyType({})
    wholes: Mapping[str, str] = MappingProxyType({})


def detect(state: CommunitiesState, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Detect the communities (groups of connected entities) of a namespace: step 1 of a refresh."""
    links = yield from load_links()
    namespace = validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
    tries = state.get("tries") or 0  # the step runs again if another refresh saved first
    full = bool(state.get("full"))
    groups: list[EntityCluster] = yield from work(lambda: find_communities(namespace, links, full=full))
    return {**_compare_memberships(links, groups), "tries": tries, "questions": state["questions"] if tries else 0}


def _compare_memberships(links: Links, groups: list[EntityCluster]) -> Update:
    """Compare the detected communities, *groups*, with the stored ones in *links*, and return state updates."""
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
    """Return the share of entities, 0 to 1, whose community changed; None if no communities are stored."""
    if not stored:
        return None
    entities = stored.keys() | detected.keys()
    return round(sum(stored.get(entity) != detected.get(entity) for entity in entities) / len(entities), 6)


# Loading


def load_links() -> Flow[Links]:
    """Read all entities, all facts that are true now, and all stored communities of the namespace."""
    instant = yield from now()
    stored: dict[str, str] = {}
    ends: dict[str, tuple[str, ...]] = defaultdict(tuple)
    created: list[tuple[int, str]] = []

    def add_fact(row: Row) -> None:
        new = [entity for entity in (row["subject"], row["object"]) if entity not in ends[row["id"]]]
        ends[row["id"]] = (*ends[row["id"]], *new)

    # Read memberships first, so that the facts that led to them are found below.
    yield from _read_pages(
        cypher.LAST_ENTITY, cypher.MEMBERSHIPS, lambda row: stored.update({row["entity"]: row["community"]})
    )
    wholes = {row["part"]: row["whole"] for row in (yield from fetch(cypher.WHOLES))}
    yield from _read_pages(cypher.LAST_FACT, cypher.FACTS, add_fact, now=instant)
    # Read entities last, so that the entities of all facts that were read are found.
    yield from _read_pages(
        cypher.LAST_ENTITY, cypher.ENTITIES, lambda row: created.append((row["created_at"], row["id"]))
    )
    entities = [id_ for _, id_ in sorted(created)]
    place_of = {id_: place for place, id_ in enumerate(entities)}
    # An entity that was deleted in the meantime has no index.
    facts = {fact: tuple(sorted(place_of[id_] for id_ in members if id_ in place_of)) for fact, members in ends.items()}
    return Links(entities, facts, stored, wholes)


def _read_pages(last: str, page: str, take: Callable[[Row], None], **params: Any) -> Flow[None]:
    """Run the query *page* for each range of node ids in turn, and call ``take(row)`` for each result row."""
    rows = yield from fetch(last)
    for ids in list_pages(rows[0]["last"] if rows else None, PAGE):
        for row in (yield from fetch(page, **ids, **params)):
            take(row)


# Groups


class _Part(NamedTuple):
    """A detected community, the index of its oldest entity in `Links.entities`, and the number of its entities."""

    group: EntityCluster
    oldest: int
    size: int


def find_communities(namespace: str, links: Links, *, full: bool = False) -> list[EntityCluster]:
    """Return the communities of all levels: level 0 groups entities, level 1 groups level-0 communities."""
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
    """Convert links between nodes to links between the communities of the nodes: ``[(2, 3)]`` -> ``[(0, 1)]``."""
    place_of = {member: place for place, members in enumerate(level) for member in members}
    connected = ({place_of[node] for node in link if node in place_of} for link in links)
    return [tuple(places) for places in connected if len(places) > 1]


def _group_entities(namespace: str, links: Links, communities: Level) -> list[_Part]:
    """Return a record (id, member ids, hash of members and facts) for each of *communities*.

    Members are ordered by their number of facts inside the community, highest first.
    """
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
        ids = [links.entities[member] for member in sorted(members, key=lambda member: (-shares[member], member))]
        community = EntityCluster(
            id=community_id(namespace, links.entities[members[0]]),  # of the oldest: it stays when others join
            level=0,
            members=ids,
            fingerprint=fingerprint(ids, inner[place]),
        )
        parts.append(_Part(community, members[0], len(members)))
    return parts


def _group_parts(namespace: str, links: Links, below: Sequence[_Part], places: Sequence[int]) -> _Part:
    """Return the higher-level community that consists of ``below[i]`` for each index *i* in *places*."""
    parts = sorted((below[place] for place in places), key=lambda part: (-part.size, part.oldest))
    oldest = min(part.oldest for part in parts)
    level = parts[0].group["level"] + 1
    members = [part.group["id"] for part in parts]
    community = EntityCluster(
        id=community_id(namespace, links.entities[oldest], level),
        level=level,
        members=members,
        fingerprint=fingerprint(members, (part.group["fingerprint"] for part in parts)),
    )
    return _Part(community, oldest, sum(part.size for part in parts))


def fingerprint(members: Iterable[str], facts: Iterable[str]) -> str:
    """Return a hash of a community's *members* and of the *facts* between them, to detect changes."""
    text = "\n".join(("members", *sorted(members), "facts", *sorted(facts)))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# Label propagation: nodes that share many links get the same label


def propagate(links: Iterable[Sequence[int]], before: Mapping[int, Hashable] | None = None) -> Level:
    """Return the communities of the nodes in *links*, found by label propagation: ``[[0, 1, 4], [2, 3]]``."""
    near = _count_links(links)
    labels = _propagate_from(near, before) if before else _propagate_labels(near)
    communities: Level = []
    seen: set[int] = set()
    for node in sorted(near):
        if node not in seen:
            communities.append(_component(node, near, labels))  # a label may be in places that are not connected
            seen.update(communities[-1])
    return [members for members in communities if len(members) >= SMALLEST]


def _component(first: int, near: Neighbours, labels: dict[int, int]) -> list[int]:
    """Return, sorted, the nodes that can be reached from the node *first* through nodes with the same label."""
    members = {first}
    open_ = [first]
    while open_:
        further = {node for node in near[open_.pop()] if labels[node] == labels[first]} - members
        members |= further
        open_ += further
    return sorted(members)


def _count_links(links: Iterable[Sequence[int]]) -> Neighbours:
    near: Neighbours = defaultdict(lambda: defaultdict(int))
    for link in links:
        for one, two in combinations(sorted(set(link)), 2):
            near[one][two] += 1
            near[two][one] += 1
    return near


def _propagate_labels(near: Neighbours) -> dict[int, int]:
    # In the first round all nodes change at once, so that no label spreads through the whole graph: planted groups of
    # 40 are found with a mutual information of 0.96 instead of 0.80. In later rounds, that could swap labels forever.
    alone = {node: node for node in near}
    return _spread(near, {node: _heaviest(near[node], alone) for node in near}, ROUNDS - 1)


def _propagate_from(near: Neighbours, before: Mapping[int, Hashable]) -> dict[int, int]:
    first = {before[node]: node for node in sorted(before, reverse=True)}
    labels = {node: first[before[node]] if node in before else node for node in near}
    return _spread(near, labels, ROUNDS, stay=True)


def _spread(near: Neighbours, labels: dict[int, int], rounds: int, *, stay: bool = False) -> dict[int, int]:
    """Run up to *rounds* rounds of label propagation: each node gets the most frequent label of its neighbours."""
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
    """Return the label to which a node has most links; on a tie, *own* if it is tied, else the smallest."""
    weights: dict[int, int] = defaultdict(int)
    for node, links in near.items():
        weights[labels[node]] += links
    most = max(weights.values())
    if own is not None and weights.get(own) == most:
        return own
    return min(label for label, weight in weights.items() if weight == most)
