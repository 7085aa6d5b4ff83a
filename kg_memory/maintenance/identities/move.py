"""Build the query that merges or splits entities: it moves facts, mentions and names from one entity to another.

The query is `identities.MOVE`; `Move` collects its parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kg_memory.falkor.queries import identities as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.postings import to_terms
from kg_memory.ingestion.records import Revision
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.runtime.effects import Vector, fetch, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_START
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key

Parameters = dict[str, Any]
"""One row of a list parameter of a query."""


@dataclass(frozen=True, slots=True)
class EntityNode:
    """An entity with the ids of all nodes linked to it, to plan the links that a merge or split moves."""

    entity: Row
    revision: int
    mentions: Mapping[str, int]
    subjects: frozenset[str]
    objects: frozenset[str]
    aliases: frozenset[str]
    apart: frozenset[str]

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Build an `EntityNode`, an entity with the ids of its facts, mentions and names, from a row of its query."""
        mentions = {mention["id"]: mention["at"] for mention in row["mentions"]}
        parts = (frozenset(row[name]) for name in ("subjects", "objects", "aliases", "apart"))
        return cls(row["entity"], row["revision"], mentions, *parts)

    @property
    def id(self) -> str:
        """The id of the entity."""
        return str(self.entity["id"])

    @property
    def names(self) -> list[str]:
        """The name of the entity, followed by its aliases."""
        return [self.entity["name"], *self.entity["aliases"]]

    @property
    def facts(self) -> frozenset[str]:
        """The ids of the facts of which the entity is the subject or an object."""
        return self.subjects | self.objects

    def expect(self) -> Parameters:
        """Return the entity's state as it was read; a merge or split is written only if it is still the same."""
        names = {"name": self.entity["name"], "aliases": list(self.entity["aliases"])}
        return {"id": self.id, **names, "revision": self.revision, "mentions": len(self.mentions)}


def read_nodes(*ids: str) -> Flow[list[EntityNode]]:
    """Read the entities with these ids, in this order, each with the ids of its facts, episodes and names.

    Unknown ids are skipped.
    """
    rows = yield from fetch(queries.ENTITY_NODES, ids=list(ids))
    nodes = {row["entity"]["id"]: EntityNode.from_row(row) for row in rows}
    return [nodes[id_] for id_ in ids if id_ in nodes]


def entity_row(id_: str, names: Sequence[str], times: Iterable[int]) -> Parameters:
    """Return query parameters that store an entity's names, search terms, and times of first and last mention."""
    counts = tokenise.count_terms(" ".join(names), NAME_WEIGHT)
    seen = sorted(times)
    first, last = (seen[0], seen[-1]) if seen else (None, None)
    row = {"id": id_, "name": names[0], "aliases": list(names[1:]), "first_seen": first, "last_seen": last}
    return {**row, "n": counts.total(), "terms": to_terms(counts)}


def evidence_of(statements: Sequence[Row]) -> Parameters:
    """Compute the properties of a fact from the messages that state it, such as its confidence."""
    ends, at, _, by = min((_only_ends(row), row["said_at"], row["arrived_at"], row["id"]) for row in statements)
    last = max(row["said_at"] for row in statements)
    confidence = max(row["confidence"] for row in statements)
    return {"told_at": at, "told_by": by, "told_end": ends, "said_at": last, "confidence": confidence}


def _only_ends(statement: Row) -> bool:
    return bool(statement["valid_at"] == OPEN_START and statement["invalid_at"] <= statement["said_at"])


LINKS = (("subjects", "Fact", "subject"), ("objects", "Fact", "object"), ("mentions", "Episode", "mention"))
"""The kinds of links of an entity: field of `EntityNode`, label of the linked node, and role in the stored decision."""
WAYS = tuple(f"{kind}_{way}" for kind in ("subjects", "objects", "mentions", "aliases") for way in ("out", "in"))
"""The list parameters of the query: links to remove from an entity (``_out``) and to add to one (``_in``)."""


@dataclass(slots=True)
class Move:
    """The database changes of one merge or split of entities, or of its undo; `write` writes them in one query."""

    identity: Parameters
    expected: list[EntityNode]
    now: int
    before: str | None = None
    created: list[Parameters] = field(default_factory=list)
    entities: list[Parameters] = field(default_factory=list)
    links: dict[str, list[Parameters]] = field(default_factory=lambda: {way: [] for way in WAYS})
    facts: list[Parameters] = field(default_factory=list)
    statements: list[Parameters] = field(default_factory=list)
    evidence: list[Parameters] = field(default_factory=list)
    moved: list[Parameters] = field(default_factory=list)
    about: list[Parameters] = field(default_factory=list)
    apart: list[Parameters] = field(default_factory=list)
    together: list[Parameters] = field(default_factory=list)
    verdicts: list[Parameters] = field(default_factory=list)
    gone_facts: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    revision: Revision = field(default_factory=Revision)

    def create(self, row: Parameters, key: str, type_: str, vector: Vector, created_at: int) -> None:
        """Plan the creation of a new entity."""
        properties = {name: value for name, value in row.items() if name != "terms" and value is not None}
        properties |= {"key": key, "type": type_, "summary": "", "created_at": created_at}
        self.created.append({"properties": properties, "embedding": vector})
        self.entities.append(row)

    def remove_link(self, kind: str, id_: str, entity: str) -> None:
        """Plan the removal of the link between *entity* (an id) and *id_*, a fact, message or name.

        *kind*: "subjects" or "objects" (of facts), "mentions" (messages) or "aliases" (names, by hash).
        """
        self.links[f"{kind}_out"].append({"id": id_, "entity": entity})

    def add_link(self, kind: str, id_: str, entity: str) -> None:
        """Plan a new link between *entity* (an id) and *id_*, a fact, message or name.

        *kind*: "subjects" or "objects" (of facts), "mentions" (messages) or "aliases" (names, by hash).
        """
        self.links[f"{kind}_in"].append({"id": id_, "entity": entity})

    def record(self, label: str, role: str, id_: str, **fields: Any) -> None:
        """Plan to store which entity a node was linked to, so that an undo can move it back.

        ``kept=True`` in *fields*: both entities are linked to the node after the move.
        """
        empty = {"kept": False, "origin": None, "ruling": None, "refused": None}
        self.moved.append({"label": label, "role": role, "id": id_, **empty, **fields})

    def write(self) -> Flow[bool]:
        """Write all planned changes in one atomic query, and return True.

        If an entity has changed since it was read, write nothing and return False.
        """
        parameters = {each.name: getattr(self, each.name) for each in fields(self)}
        parameters |= {**parameters.pop("links"), **parameters.pop("revision").to_parameters()}
        rows = yield from write(queries.MOVE, **{**parameters, "expected": list(map(EntityNode.expect, self.expected))})
        return bool(rows)


def move_all(move: Move, source: EntityNode, target: EntityNode, without: Sequence[str] = ()) -> None:
    """Plan a merge: all facts, episodes and names of *source* go to *target*; *source* is deleted.

    *without*: names of *source* that are dropped instead of moved.
    """
    dropped = set(map(alias_key, without))
    for kind, label, role in (*LINKS, ("aliases", "Alias", "alias")):
        own = getattr(target, kind)
        for id_ in sorted(getattr(source, kind)):
            move.remove_link(kind, id_, source.id)
            if id_ not in dropped:
                move.add_link(kind, id_, target.id)
                move.record(label, role, id_, kept=id_ in own)
    names = list(dict.fromkeys((*target.names, *(name for name in source.names if name not in without))))
    move.entities.append(entity_row(target.id, names, (*target.mentions.values(), *source.mentions.values())))
    move.apart += [{"one": id_, "other": target.id} for id_ in sorted(source.apart - {target.id})]
    move.together.append({"one": target.id, "other": source.id})
    move.gone.append(source.id)


def names_with(names: Iterable[str], keys: Iterable[str]) -> list[str]:
    """Return the names whose hash is in *keys*; the hash of a name ignores case."""
    among = frozenset(keys)
    return [name for name in names if alias_key(name) in among]
