"""Plan the split of an entity, and the undo of a split.

A split moves some facts and episodes (stored messages) of an entity to a new entity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kg_memory.errors import InputError
from kg_memory.falkor.queries import identities as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import read_history, revise_beliefs
from kg_memory.maintenance.identities.move import LINKS, EntityNode, Move, entity_row, evidence_of, move_all, names_with
from kg_memory.runtime.effects import embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import alias_key, entity_id, entity_key, fact_id


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A request to split an entity: which facts and episodes, by id, move to a new entity.

    *name* and *type* describe the new entity; None means the name or type of the old entity.
    """

    facts: tuple[str, ...]
    episodes: tuple[str, ...]
    name: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Division:
    """How a split divides the facts and episodes (messages) of an entity between it and a new entity.

    `parts`: facts that both get, with the episodes that state the new copy. An episode can be in both `moving` and
    `staying`.
    """

    whole: frozenset[str]
    parts: Mapping[str, frozenset[str]]
    moving: frozenset[str]
    staying: frozenset[str]


def read_facts(ids: Iterable[str]) -> Flow[dict[str, Row]]:
    """Return ``{id: row}`` with subject, objects, statements and verdicts of each of the facts *ids*."""
    return {row["fact"]["id"]: row for row in (yield from fetch(queries.FACTS, ids=sorted(ids)))}


def plan_split(
    move: Move, old: EntityNode, request: SplitRequest, policy: ConflictPolicy, namespace: str
) -> Flow[None]:
    """Add a split to *move*: a new entity gets some facts, episodes (messages) and names of the entity *old*.

    Errors: `InputError`.
    """
    rows = yield from read_facts(old.facts)
    division = divide(old, rows, request)
    key = entity_key(request.name or old.names[0], request.type or old.entity["type"], move.identity["id"])
    id_ = entity_id(namespace, key)
    names, own = yield from _share_names(old, division, request)
    for kind, label, role in LINKS[:2]:
        for fact in sorted(division.whole & getattr(old, kind)):
            move.remove_link(kind, fact, old.id)
            move.add_link(kind, fact, id_)
            move.record(label, role, fact)
    for episode in sorted(division.moving & old.mentions.keys()):
        move.add_link("mentions", episode, id_)
        if episode not in division.staying:
            move.remove_link("mentions", episode, old.id)
        move.record("Episode", "mention", episode, kept=episode in division.staying)
    for alias in sorted(set(map(alias_key, own)).difference(map(alias_key, names))):
        move.remove_link("aliases", alias, old.id)
        move.record("Alias", "alias", alias)
    history = yield from read_history((*division.whole, *division.parts))
    yield from _copy_facts(move, division.parts, rows, history, (old, key, id_), namespace)
    annul_verdicts(move, rows, division.whole, old.id, history)
    move.revision = revise_beliefs(history, policy, namespace, move.identity["id"])
    move.revision.touched.extend(division.parts)
    move.entities.append(entity_row(old.id, names, (old.mentions[episode] for episode in division.staying)))
    [vector] = yield from embed([own[0]])
    seen = (old.mentions[episode] for episode in division.moving if episode in old.mentions)
    move.create(entity_row(id_, own, seen), key, request.type or old.entity["type"], vector, move.now)
    for alias in sorted(set(map(alias_key, own))):
        move.add_link("aliases", alias, id_)
    if alias_key(own[0]) not in old.aliases:
        move.identity["former_name"] = alias_key(own[0])  # a name given by this split: an undo may remove it
    move.about = [{"role": "one", "id": old.id}, {"role": "other", "id": id_}]
    move.apart.append({"one": old.id, "other": id_})


def divide(old: EntityNode, rows: Mapping[str, Row], request: SplitRequest) -> Division:
    """Divide the facts and episodes (messages) of the entity *old* between it and a new entity.

    Errors: `InputError`.
    """
    unknown = sorted(set(request.facts) - rows.keys())
    if unknown:
        raise InputError(f"facts must be about {old.names[0]!r}, got {unknown[0]!r}; memory.facts.about(...) has ids")
    strange = sorted(set(request.episodes) - old.mentions.keys())
    if strange:
        raise InputError(f"episodes must mention {old.names[0]!r}, got {strange[0]!r}; memory.entities.card lists them")
    named = frozenset(request.episodes)
    moved, parts = set(request.facts), dict[str, frozenset[str]]()
    for fact, row in rows.items():
        stating = frozenset(statement["id"] for statement in row["statements"])
        if fact not in moved and stating & named:
            if stating <= named:
                moved.add(fact)
            else:
                parts[fact] = stating & named
    moving = named | {statement["id"] for fact in moved for statement in rows[fact]["statements"]}
    remaining = {statement["id"] for fact in rows.keys() - moved for statement in rows[fact]["statements"]}
    staying = (old.mentions.keys() - moving) | ((remaining & old.mentions.keys()) - named)
    if not moved and not parts and not named:
        raise InputError("nothing is split off: give facts or episodes")
    if not staying and rows.keys() == moved:
        raise InputError(f"all of {old.names[0]!r} would be split off: leave out facts and episodes for it to keep")
    return Division(frozenset(moved), parts, frozenset(moving), frozenset(staying))


def _share_names(old: EntityNode, division: Division, request: SplitRequest) -> Flow[tuple[list[str], list[str]]]:
    """Return the names of the entity *old* and of the new entity after a split, display names first."""
    rows = yield from fetch(queries.NAMES_IN_USE, episodes=sorted(division.moving | division.staying), names=old.names)
    used = {(row["name"], row["episode"]) for row in rows}
    goes = {name for name, episode in used if episode in division.moving}
    stays = {name for name, episode in used if episode in division.staying}
    first = request.name or old.names[0]
    others = [name for name in old.names if name in goes]
    remaining = [name for name in old.names if name == old.names[0] or name not in goes or name in stays]
    return remaining, list(dict.fromkeys((first, *others)))


def _copy_facts(
    move: Move,
    parts: Mapping[str, frozenset[str]],
    rows: Mapping[str, Row],
    history: History,
    ends: tuple[EntityNode, str, str],
    namespace: str,
) -> Flow[None]:
    """Add copies of facts for the new entity of a split to *move* and *history*."""
    old, key, id_ = ends
    vectors = yield from embed([rows[fact]["fact"]["sentence"] for fact in sorted(parts)])
    for (fact, episodes), vector in zip(sorted(parts.items()), vectors, strict=True):
        row = rows[fact]
        subject = key if row["subject"] == old.id else row["subject_key"]
        pairs = zip(row["objects"], row["object_keys"], strict=True)
        objects = [key if end == old.id else end_key for end, end_key in pairs]
        copy = fact_id(namespace, subject, row["fact"]["predicate"], objects, row["fact"]["sentence"])
        stating, rest = divide_statements(row["statements"], episodes)
        properties = {name: value for name, value in row["fact"].items() if value is not None}
        properties |= {**evidence_of(stating), "id": copy, "created_at": move.now}
        move.facts.append({"origin": fact, "properties": properties, "embedding": vector})
        move.statements += [{"episode": episode, "origin": fact, "fact": copy} for episode in sorted(episodes)]
        move.evidence.append({"id": fact, **evidence_of(rest)})
        for kind, role in (("subjects", "subject"), ("objects", "object")):
            if fact in getattr(old, kind):
                move.remove_link(kind, copy, old.id)
                move.add_link(kind, copy, id_)
                move.record("Fact", role, copy)
        move.record("Fact", "copy", copy, origin=fact)
        move_statements(history, fact, copy, episodes)


def divide_statements(statements: Iterable[Row], episodes: Collection[str]) -> tuple[list[Row], list[Row]]:
    """Return two lists: the statements made by one of *episodes* (ids), and all other statements."""
    stating, rest = list[Row](), list[Row]()
    for statement in statements:
        (stating if statement["id"] in episodes else rest).append(statement)
    return stating, rest


def move_statements(history: History, origin: str, fact: str, episodes: Collection[str]) -> None:
    """Move the statements of *episodes* from the fact *origin* to *fact* in *history*, not in the database."""
    for statement in list(history.statements[origin].values()):
        if statement.id in episodes:
            history.add_statement(replace(statement, fact=fact))
    for episode in episodes:
        history.remove_statements(origin, episode)
    history.sentences.setdefault(fact, history.sentences.get(origin, ""))


def annul_verdicts(move: Move, rows: Mapping[str, Row], moved: Collection[str], entity: str, history: History) -> None:
    """Cancel, in *move* and *history*, the verdicts between facts that get different entities.

    Then neither fact ends the other.
    """
    for fact in sorted(moved):
        ends = {rows[fact]["subject"], *rows[fact]["objects"]} - {entity}
        for verdict in rows[fact]["verdicts"]:
            opponent = verdict["known"] if verdict["new"] == fact else verdict["new"]
            if verdict["ruling"] == "both" or opponent in moved or opponent not in rows:
                continue
            if ends.isdisjoint((rows[opponent]["subject"], *rows[opponent]["objects"])):
                move.verdicts.append({"id": verdict["id"], "ruling": "both", "refused": None})
                move.record("Verdict", "verdict", verdict["id"], ruling=verdict["ruling"], refused=verdict["refused"])
                set_ruling(history, verdict["id"], "both", None)


def set_ruling(history: History, verdict: str, ruling: str, refused: str | None) -> None:
    """Change the effect of a verdict in *history*; do nothing for an unknown id."""
    if verdict in history.verdicts:
        changed = replace(history.verdicts[verdict], ruling=ruling, refused=refused)  # type: ignore[arg-type]
        history.set_verdict(verdict, changed, history.edits.get(verdict))


def plan_unsplit(
    move: Move, nodes: tuple[EntityNode, EntityNode], moved: Sequence[Row], policy: ConflictPolicy, namespace: str
) -> Flow[None]:
    """Add the undo of a split to *move*: the new entity is merged back into the old entity."""
    old, new = nodes
    copies = {row["id"]: row["origin"] for row in moved if row["role"] == "copy"}
    verdicts = [row for row in moved if row["role"] == "verdict"]
    rows = yield from read_facts({*copies, *copies.values()})
    move_all(move, new, old, without=(yield from _find_unused_name(move, new)))
    move.moved = []
    judged = yield from fetch(queries.FACTS_OF_VERDICTS, ids=[row["id"] for row in verdicts])
    history = yield from read_history((*rows, *(row["id"] for row in judged)))
    for copy, origin in copies.items():
        if copy in rows and origin in rows:
            episodes = {statement["id"] for statement in rows[copy]["statements"]}
            move.statements += [{"episode": id_, "origin": copy, "fact": origin} for id_ in sorted(episodes)]
            stated = (*rows[origin]["statements"], *rows[copy]["statements"])
            move.evidence.append({"id": origin, **evidence_of(stated)})
            move.gone_facts.append(copy)
            move_statements(history, copy, origin, episodes)
            for record in (history.statements, history.beliefs, history.sentences):
                record.pop(copy, None)
    for row in verdicts:
        move.verdicts.append({"id": row["id"], "ruling": row["ruling"], "refused": row["refused"]})
        set_ruling(history, row["id"], row["ruling"], row["refused"])
    move.revision = revise_beliefs(history, policy, namespace, f"{move.identity['id']} undone")
    move.revision.touched.extend(origin for copy, origin in copies.items() if copy in rows and origin in rows)
    move.about = [{"role": "one", "id": old.id}]


def _find_unused_name(move: Move, new: EntityNode) -> Flow[list[str]]:
    """Return a list with the name that the split gave to *new*, to delete it, or [] if a message uses it."""
    named = names_with(new.names, [move.identity["former_name"] or ""])
    return [] if (yield from fetch(queries.NAMES_IN_USE, episodes=sorted(new.mentions), names=named)) else named
