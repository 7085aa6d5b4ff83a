"""`GraphMemory.entities`: list, show, merge and split entities, and find paths between them."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Sequence

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import communities as community_queries
from kg_memory.falkor.queries import episodes as episode_queries
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.queries import features as cypher
from kg_memory.falkor.queries.search import ENTITIES_BY_ID, FACTS_BY_ID
from kg_memory.ingestion.extract import entity_type
from kg_memory.maintenance.identities.decisions import list_identities, merge, split, undo
from kg_memory.maintenance.identities.split import SplitRequest
from kg_memory.memory._verb import Group, verb
from kg_memory.memory.listing import NAME_HINT, During, Time, belief_params, read_times, to_facts
from kg_memory.models.graph import SOURCES, Entity, Fact, IdentityDecision
from kg_memory.models.results import EntityCard, Neighbour, Neighbourhood
from kg_memory.retrieval.clocks import Window, add_warnings, point_of
from kg_memory.runtime.effects import fetch, in_step, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import alias_key, display_name, replace_unstorable
from kg_memory.text.tokenise import terms
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count, validate_name, validate_text

MAX_STEPS = 6
CARD_FACTS = 1000
"""The most facts from which an entity card counts the neighbours."""
MOST_LINKS = 5_000
"""The most facts that a path search follows at each step, the latest first."""

Came = dict[str, tuple[str, str]]
"""For each entity id that a path search reached: the ids of the entity and of the fact from which it was reached."""


class Entities(Group):
    """`GraphMemory.entities`: the people, places and things that the stored messages and texts mention."""

    _group = "entities"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, like: str | None = None, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Entity]]:
        """Return the entities of a namespace, last seen first; with *like* only matching ones, best match first.

        *like*: a text to find in names and summaries; its last word may be incomplete: ``"rus"`` finds Rust. *limit*:
        the maximum number of entities. *skip*: how many of the first to leave out.
        """
        return read_entities(limit, skip, like)

    list, alist = verb(_list)

    def _similar(
        self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 10
    ) -> Flow[builtins.list[Entity]]:
        """Return stored entities with names that mean nearly the same as *name*, best first.

        Only entities that were added while `Settings.note_linking` was on are found. `Entity.score` is the similarity
        of the names, up to 1. *limit*: the maximum number of entities.
        """
        alias = alias_key(replace_unstorable(validate_name("name", name, NAME_HINT)))
        linked = yield from fetch(queries.SIMILAR_TO, alias=alias, limit=validate_count("limit", limit))
        return [rows.to_entity(row["entity"], round(row["similarity"], 6)) for row in linked]

    similar, asimilar = verb(_similar)

    def _card(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 10,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> Flow[EntityCard | None]:
        """Return an overview of the entity *name*: latest facts, neighbours, latest messages about it, and communities.

        *name* is a name, an alias or an id. *limit* is the maximum number of facts, of neighbours and of messages.
        *as_of*, *during* and *believed_at* choose another time than the present; see `Facts`. Returns None if no entity
        has that name.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        limit = validate_count("limit", limit)
        near = yield from read_neighbourhood(name, 1, CARD_FACTS, window, believed)
        entities = [entity for entity in near.entities if near.depths[entity.id] == 0]
        if not entities:
            return None
        ids = [entity.id for entity in entities]
        episodes, communities = yield from in_step(
            (
                fetch(episode_queries.EPISODES_ABOUT, ids=ids, limit=limit),
                fetch(community_queries.COMMUNITIES_ABOUT, ids=ids),
            )
        )
        return EntityCard(
            entity=entities[0],
            facts=near.facts[:limit],
            neighbours=_neighbours(near, {entity.name for entity in entities}, limit),
            episodes=tuple(rows.to_episode(row["episode"]) for row in episodes),
            communities=tuple(rows.to_community(row["community"]) for row in communities),
        )

    card, acard = verb(_card)

    def _around(
        self,
        name: str,
        steps: int = 2,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> Flow[Neighbourhood]:
        """Return the facts around the entity *name*, and the entities that they connect, the nearest first.

        *name*: a name, an alias or an id. *steps*: the maximum distance, 1 to 6 facts. *limit*: the maximum number of
        facts. *as_of*, *during* and *believed_at*: another time than now, as in `Facts`. Raises `InputError`.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        return (yield from read_neighbourhood(name, steps, limit, window, believed))

    around, aaround = verb(_around)

    def _path(
        self,
        name: str,
        target: str,
        steps: int = 4,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> Flow[builtins.list[Fact]]:
        """Return the shortest chain of facts that connects the entity *name* to the entity *target*, in order.

        ``path("Ann", "Oslo")`` may return "Ann works at Acme" and "Acme is in Oslo". Both entities are given by a name,
        an alias or an id. *steps* is the maximum number of facts (1 to 6); if more are needed, the list is empty. Only
        facts that hold now are used; *as_of*, *during* and *believed_at* choose another time, see `Facts`. Raises
        `InputError`.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        steps = _validate_steps(steps)
        starts, ends = (yield from find_named("name", name)), (yield from find_named("target", target))
        window = window or (yield from read_present())
        seen = yield from belief_params(window, believed)
        came: Came = {}
        reached, edge = set(starts), sorted(starts)
        for _ in range(steps):
            if not edge or reached & ends.keys():
                break
            edge = _follow_links((yield from fetch(cypher.LINKS, ids=edge, limit=MOST_LINKS, **seen)), reached, came)
        facts = _trace_path(min(reached & ends.keys(), default=None), came)
        stored = yield from fetch(FACTS_BY_ID, ids=facts, sources=SOURCES, **seen)
        by_id = {fact.id: fact for fact in (yield from to_facts(stored, window, seen["believed_at"]))}
        return [by_id[fact] for fact in facts if fact in by_id]

    path, apath = verb(_path)

    def _merge(
        self, into: str, *others: str, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[builtins.list[IdentityDecision]]:
        """Merge the entities *others* into *into*, because all are the same person or thing; return the decisions.

        Entities are given by a name, or by an id if several have that name. Their facts, mentions and names move to
        *into*, and later episodes use the merged entity. *by* (who decides) and *reason* are stored.
        ``entities.undo(decision.id)`` reverses a merge. Raises `InputError`.
        """
        return merge(into, others, by, reason, namespace)

    merge, amerge = verb(_merge)

    def _split(
        self,
        entity: str,
        *,
        facts: Sequence[str] = (),
        episodes: Sequence[str] = (),
        name: str | None = None,
        type: str | None = None,  # noqa: A002 - the name of the field
        by: str = "user",
        reason: str = "",
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[IdentityDecision]:
        """Split an entity that mixes two people or things: move some of its facts to a new entity; return the decision.

        - *entity*: a name or an id. *name* and *type*: those of the new entity.
        - *facts*: ids of the facts to move. *episodes*: ids of messages whose facts about the entity are moved.
        - *by* (who decides) and *reason* are stored.

        A fact that other messages state too stays with both entities. The two entities are not merged automatically
        again. `undo` reverses the split. Raises `InputError`.
        """
        request = SplitRequest(
            _validate_ids("facts", facts),
            _validate_ids("episodes", episodes),
            None if name is None else display_name(validate_name("name", name, NAME_HINT)),
            None if type is None else entity_type(validate_name("type", type, "a type"), self._engine.settings),
        )
        return split(entity, request, by, reason, ConflictPolicy.from_settings(self._engine.settings), namespace)

    split, asplit = verb(_split)

    def _undo(
        self, decision: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[IdentityDecision]:
        """Undo a merge, a split, or the decision whether two entities are the same; return the undone decision.

        *decision*: its id. *by* (who decides) and *reason* are stored. Facts that were added since stay where they are.
        Raises `InputError` if the decision is undone already.
        """
        return undo(decision, by, reason, ConflictPolicy.from_settings(self._engine.settings), namespace)

    undo, aundo = verb(_undo)

    def _decisions(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[IdentityDecision]]:
        """Return the decisions to merge, split or keep apart entities, latest first, including undone ones.

        *limit*: the maximum number of decisions. *skip*: how many of the latest to leave out.
        """
        return list_identities(("done", "apart", "undone"), limit, skip)

    decisions, adecisions = verb(_decisions)


def _validate_ids(name: str, ids: object) -> tuple[str, ...]:
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise InputError(f"{name} must be a list of ids, got {ids!r}; put a single id into a list")
    return tuple(dict.fromkeys(validate_name(name, id_, "ids") for id_ in ids))


def read_entities(limit: int, skip: int, like: str | None = None) -> Flow[list[Entity]]:
    """Return the entities of the namespace, last seen first; with *like* only matching ones, best match first."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    if like is None:
        return [rows.to_entity(row["entity"]) for row in (yield from fetch(queries.LIST_ENTITIES, **page))]
    words = terms(replace_unstorable(validate_text("like", like, "words, or the beginning of one")))
    if not words:
        return []
    matching = yield from fetch(queries.ENTITIES_LIKE, terms=words, beginning=words[-1], **page)
    return [rows.to_entity(row["entity"], row["score"]) for row in matching]


def read_neighbourhood(
    name: str, steps: int, limit: int, window: Window | None = None, believed_at: int | None = None
) -> Flow[Neighbourhood]:
    """Return the facts around the entity *name*, and the entities that they connect, the nearest first."""
    limit, steps = validate_count("limit", limit), _validate_steps(steps)
    window = window or (yield from read_present())
    beliefs = yield from belief_params(window, believed_at)
    entities = yield from find_named("name", name)
    depths = dict.fromkeys(entities, 0)
    facts: dict[str, Fact] = {}
    edge = sorted(entities)
    for depth in range(1, steps + 1):
        if not edge or len(facts) >= limit:
            break
        stated = yield from fetch(
            queries.FACTS_AROUND, ids=edge, known=list(facts), limit=limit - len(facts), sources=SOURCES,
            **beliefs,
        )  # fmt: skip
        new: dict[str, Fact] = {}
        marked = yield from add_warnings(stated, point_of(window, beliefs["believed_at"]))
        for row in marked:  # the latest period of each fact comes first: keep that one
            new.setdefault(row["fact"]["id"], rows.to_fact(row))
        facts |= new
        ends = yield from fetch(queries.ENTITIES_OF_FACTS, ids=list(new))
        reached = {row["entity"]["id"]: row["entity"] for row in ends if row["entity"]["id"] not in entities}
        entities |= reached
        depths |= dict.fromkeys(reached, depth)
        edge = sorted(reached)
    return Neighbourhood(
        depths=depths, entities=tuple(map(rows.to_entity, entities.values())), facts=tuple(facts.values())
    )


def read_present() -> Flow[Window]:
    """Return the present as a period of one microsecond, ``(now, now + 1)``, in microseconds since the epoch."""
    time = yield from now()
    return time, time + 1


def _validate_steps(steps: int) -> int:
    if validate_count("steps", steps) > MAX_STEPS:
        raise InputError(f"steps must be at most {MAX_STEPS}, got {steps}")
    return steps


def _neighbours(near: Neighbourhood, own: set[str], limit: int) -> tuple[Neighbour, ...]:
    """Return the entities that occur in the most facts of *near* together with one entity, whose names are *own*."""
    shared: Counter[str] = Counter()
    for fact in near.facts:
        shared.update({fact.subject, *fact.objects} - own)
    types = {entity.name: entity.type for entity in near.entities}
    ranked = sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return tuple(Neighbour(name=name, type=types.get(name, "Entity"), facts=count) for name, count in ranked)


# Paths


def find_named(argument: str, name: str) -> Flow[dict[str, rows.Row]]:
    """Return the stored entities with the name or alias *name*, or else with that id, as ``{id: row}``.

    Errors: `InputError` if *name* is not text.
    """
    name = replace_unstorable(validate_name(argument, name, NAME_HINT))
    called = (yield from fetch(queries.CALLED, alias=alias_key(name))) or (yield from fetch(ENTITIES_BY_ID, ids=[name]))
    return {row["entity"]["id"]: row["entity"] for row in called}


def _follow_links(links: Sequence[rows.Row], reached: set[str], came: Came) -> list[str]:
    """Return the entities newly reached by one step of a breadth-first path search along *links*.

    They are also added to *reached* and, as ``{entity id: (previous entity id, fact id)}``, to *came*.
    """
    new: list[str] = []
    for link in links:
        for end in sorted(link["ends"]):
            if end not in reached:
                reached.add(end)
                came[end] = link["id"], link["fact"]
                new.append(end)
    return new


def _trace_path(end: str | None, came: Came) -> list[str]:
    """Return the fact ids on the path to the entity *end*, in path order; *came* has the last step to each entity."""
    facts: list[str] = []
    while end in came:
        end, fact = came[end]
        facts.append(fact)
    return facts[::-1]
