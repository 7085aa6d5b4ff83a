"""Merge and split entities, decide whether two similar entities are the same, and undo these decisions.

Each decision is stored as an ``Identity`` node with author, time and reason. Its changes are written in one atomic
query. Episodes (stored messages) whose facts are being extracted at that time are read again, so that they use the new
entities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from kg_memory.errors import DatabaseUnavailable, InputError, NotFound
from kg_memory.falkor import rows
from kg_memory.falkor.queries import identities as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import read_history, revise_beliefs
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.identities.move import LINKS, EntityNode, Move, entity_row, move_all, names_with, read_nodes
from kg_memory.maintenance.identities.split import SplitRequest, annul_verdicts, plan_split, plan_unsplit, read_facts
from kg_memory.models.graph import IdentityDecision
from kg_memory.runtime.effects import embed, fetch, now, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.temporal.interval import instant
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import alias_key, entity_id, identity_id, replace_unstorable
from kg_memory.validation import validate_author, validate_count, validate_name

ATTEMPTS = 50
"""The number of tries to write a decision while other writers change the same entities."""
MOST_KNOWN = 5
"""The number of fact sentences that are shown for each of the two entities of a doubt."""
NAME_HINT = "the name or id of an entity, as memory.entities.list() shows it"
KINDS = ("merge", "split", "doubt")
Plan = Callable[[int], Flow[Move]]
"""A function from a time (microseconds) to a decision's changes, called again if others changed the entities since."""


def merge(into: str, others: Sequence[str], by: str, reason: str, namespace: str) -> Flow[list[IdentityDecision]]:
    """Merge other entities into *into*, because they are the same; return one stored decision for each.

    Errors: `NotFound`; `InputError` for an ambiguous name, or an entity given twice.
    """
    validate_author(by, reason)
    target = yield from find_entity("into", into)
    if not others:
        raise InputError("others must be the entities to merge, got none; give at least one name or id")
    sources = yield from every(find_entity("others", second) for second in others)
    if target in sources or len(set(sources)) < len(sources):
        raise InputError("others must be other entities than `into`, each given once; memory.entities.list() shows ids")
    decisions: list[IdentityDecision] = []
    for source in sources:

        def plan(time: int, source: str = source) -> Flow[Move]:
            one, second = yield from _read_all(target, source)
            doubts = [identity_id(namespace, *pair) for pair in ((target, source), (source, target))]
            for row in (yield from fetch(queries.IDENTITY, ids=doubts)):
                if row["identity"]["state"] == "waiting":
                    settled = {**row["identity"], "state": "done", **_author(by, reason, time)}
                    return _plan_merge(settled, one, second, time, "waiting")
            id_ = identity_id(namespace, target, source, time)
            return _plan_merge(_identity(id_, "merge", by, reason, time), one, second, time, None)

        decisions.append((yield from _carry_out(plan)))
    return decisions


def split(
    entity: str, request: SplitRequest, by: str, reason: str, policy: ConflictPolicy, namespace: str
) -> Flow[IdentityDecision]:
    """Split *entity*, which mixes two people or things: move some of its facts and episodes to a new entity.

    Errors: `NotFound`, `InputError`.
    """
    validate_author(by, reason)
    source = yield from find_entity("entity", entity)

    def plan(time: int) -> Flow[Move]:
        [old] = yield from _read_all(source)
        move = Move(_identity(identity_id(namespace, source, "split", time), "split", by, reason, time), [old], time)
        yield from plan_split(move, old, request, policy, namespace)
        return move

    return (yield from _carry_out(plan))


def decide_doubt(doubt: str, choice: Literal["accept", "reject"], by: str, reason: str) -> Flow[IdentityDecision]:
    """Decide whether two similar entities are the same; return the stored decision.

    Errors: `NotFound`, `InputError`.
    """
    validate_author(by, reason)
    if choice not in ("accept", "reject"):
        raise InputError(f"choice must be accept or reject, got {choice!r}; accept merges, reject keeps apart")
    row = yield from read_identity(doubt)
    identity = row["identity"]
    if identity["kind"] != "doubt" or identity["state"] != "waiting":
        raise InputError(f"{doubt!r} must be a waiting doubt, got one in the state {identity['state']}; undo it first")
    if choice == "reject":
        return (yield from _set_apart(identity, "apart", by, reason))

    def plan(time: int) -> Flow[Move]:
        about = _entity_ids(row)
        one, second = yield from _read_all(about["one"], about["other"])
        return _plan_merge({**identity, "state": "done", **_author(by, reason, time)}, one, second, time, "waiting")

    return (yield from _carry_out(plan))


def undo(decision: str, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[IdentityDecision]:
    """Undo a stored decision that merged or split entities, or marked them as different; return the decision.

    Errors: `NotFound`, `InputError`.
    """
    validate_author(by, reason)
    row = yield from read_identity(decision)
    identity = row["identity"]
    if identity["state"] == "apart":
        return (yield from _set_apart(identity, "waiting", by, reason))
    if identity["state"] != "done":
        raise InputError(f"{decision!r} must be a decision in effect, got one in the state {identity['state']}")
    about = _entity_ids(row)
    state = "waiting" if identity["kind"] == "doubt" else "undone"

    def plan(time: int) -> Flow[Move]:
        """Return the database changes that undo the decision at *time* (microseconds since the epoch)."""
        nodes = yield from _read_all(*about.values())
        undone = {**identity, "state": state, **_author(by, reason, time, "undone_")}
        move = Move(undone, nodes, time, before="done")
        if identity["kind"] == "split":
            if len(about) < 2:
                raise InputError(f"{decision!r} cannot be undone: one of its two entities was merged or forgotten")
            yield from plan_unsplit(move, (nodes[0], nodes[1]), row["moved"], policy, namespace)
        else:
            yield from _plan_unmerge(move, nodes[0], row["moved"], policy, namespace)
        return move

    return (yield from _carry_out(plan))


def list_identities(
    states: Sequence[str], limit: int, skip: int = 0, kinds: Sequence[str] = KINDS
) -> Flow[list[IdentityDecision]]:
    """Return decisions to merge or split entities, and open questions whether two are the same, latest first."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    stored = yield from fetch(queries.IDENTITIES, states=list(states), kinds=list(kinds), **page)
    existing = [row for row in stored if "one" in _entity_ids(row)]
    shown = [row for row in existing if row["identity"]["state"] != "waiting" or "other" in _entity_ids(row)]
    ids = sorted({id_ for row in shown if row["identity"]["state"] == "waiting" for id_ in _entity_ids(row).values()})
    latest = yield from fetch(queries.KNOWN_OF, ids=ids, limit=MOST_KNOWN)
    sentences = {row["id"]: tuple(row["sentences"]) for row in latest}
    return [to_identity_decision(row, sentences) for row in shown]


def to_identity_decision(row: Row, sentences: dict[str, tuple[str, ...]] | None = None) -> IdentityDecision:
    """Convert a database row of a decision about entities to an `IdentityDecision`."""
    ends = {about["role"]: rows.to_entity(about["entity"]) for about in row["about"]}
    stored = {name: value for name, value in row["identity"].items() if value is not None}
    stored |= {name: instant(stored[name]) for name in ("created_at", "at", "undone_at") if name in stored}
    latest = [(sentences or {}).get(ends[role].id, ()) if role in ends else () for role in ("one", "other")]
    fields = {name: value for name, value in stored.items() if name in IdentityDecision.model_fields}
    return IdentityDecision(
        **fields, entity=ends["one"], second=ends.get("other"), facts=row["facts"], latest=(latest[0], latest[1])
    )


def find_entity(argument: str, name: object) -> Flow[str]:
    """Return the id of the entity that *name*, an id, a name or an alias, refers to.

    Errors: `NotFound`, `InputError`.
    """
    text = replace_unstorable(validate_name(argument, name, NAME_HINT))
    named = yield from fetch(queries.NAMED_OR_ID, name=text, alias=alias_key(text))
    ids = list(dict.fromkeys(row["entity"]["id"] for row in named))
    if text in ids:
        return text
    if not ids:
        raise NotFound(f"{argument} must be {NAME_HINT}, got {text!r}, which no entity is called")
    if len(ids) > 1:
        raise InputError(f"{text!r} names {len(ids)} entities ({', '.join(sorted(ids))}); give the id of one")
    return str(ids[0])


def read_identity(decision: object) -> Flow[Row]:
    """Return the database row of the decision with the id *decision*: to merge, split or keep apart entities.

    Errors: `NotFound`.
    """
    stored: Sequence[Row] = []
    if isinstance(decision, str) and decision:
        stored = yield from fetch(queries.IDENTITY, ids=[replace_unstorable(decision)])
    if not stored or "one" not in _entity_ids(stored[0]):
        raise NotFound(f"decision {decision!r} not found in this namespace; memory.entities.decisions() lists all")
    return stored[0]


def _carry_out(plan: Plan) -> Flow[IdentityDecision]:
    """Write a decision about entities to the database, and return the decision as stored.

    Errors: `DatabaseUnavailable`.
    """
    for _ in range(ATTEMPTS):
        time = yield from now()
        move = yield from plan(time)
        if (yield from move.write()):
            yield from refresh(since=time, before=time - LEFT)
            row = yield from read_identity(move.identity["id"])
            facts = {moved["id"] for moved in row["moved"] if moved["role"] in ("subject", "object")}
            return to_identity_decision({**row, "facts": len(facts)})
    raise DatabaseUnavailable(f"gave up after {ATTEMPTS} write conflicts about the same entities; try again later")


def _identity(id_: str, kind: str, by: str, reason: str, time: int) -> dict[str, object]:
    return {"id": id_, "kind": kind, "state": "done", **_author(by, reason, time), "created_at": time}


def _author(by: str, reason: str, time: int, prefix: str = "") -> dict[str, object]:
    author = {"by": replace_unstorable(by), "at": time, "reason": replace_unstorable(reason)}
    return {f"{prefix}{name}": value for name, value in author.items()}


def _entity_ids(row: Row) -> dict[str, str]:
    # A deleted entity is missing in the result.
    ends = {about["role"]: about["entity"]["id"] for about in row["about"]}
    return {role: ends[role] for role in ("one", "other") if role in ends}


def _read_all(*ids: str) -> Flow[list[EntityNode]]:
    nodes = yield from read_nodes(*ids)
    if len(nodes) < len(ids):
        raise InputError("an entity of this decision was merged or forgotten meanwhile: list the entities again")
    return nodes


def _plan_merge(identity: Row, one: EntityNode, second: EntityNode, time: int, before: str | None) -> Move:
    former = {"former_key": second.entity["key"], "former_type": second.entity["type"]}
    former |= {"former_name": alias_key(second.names[0]), "former_created_at": second.entity["created_at"]}
    move = Move({**identity, **former}, [one, second], time, before=before)
    move_all(move, second, one)
    move.about = [{"role": "one", "id": one.id}]
    return move


def _plan_unmerge(
    move: Move, target: EntityNode, moved: Sequence[Row], policy: ConflictPolicy, namespace: str
) -> Flow[None]:
    """Add to *move* the changes that undo a merge: the merged entity gets back its facts, messages and names.

    Errors: `InputError`.
    """
    identity = move.identity
    id_ = entity_id(namespace, identity["former_key"])
    if (yield from read_nodes(id_)):
        raise InputError("the merged entity exists again, made by a later episode: merge or split the entities instead")
    had_before = {row["id"]: row["kept"] for row in moved if row["role"] == "alias"}
    back = names_with(target.names, had_before) or target.names[:1]
    names = list(dict.fromkeys((*names_with(back, [identity["former_name"]])[:1], *back)))
    stays = [name for name in target.names if name == target.names[0] or had_before.get(alias_key(name), True)]
    times: list[int] = []
    left = dict(target.mentions)
    for kind, _, role in LINKS:
        for row in moved:
            if row["role"] == role and row["id"] in getattr(target, kind):
                move.add_link(kind, row["id"], id_)
                if kind == "mentions":
                    times.append(target.mentions[row["id"]])
                if not row["kept"]:
                    move.remove_link(kind, row["id"], target.id)
                    left.pop(row["id"] if kind == "mentions" else "", None)
    for key, kept in had_before.items():
        if key in target.aliases:
            move.add_link("aliases", key, id_)
            if not kept and key not in set(map(alias_key, stays)):
                move.remove_link("aliases", key, target.id)
    facts = yield from read_facts(target.facts)
    returned = facts.keys() & {row["id"] for row in moved if not row["kept"]}
    history = yield from read_history(returned)
    annul_verdicts(move, facts, returned, target.id, history)
    move.revision = revise_beliefs(history, policy, namespace, f"{identity['id']} undone")
    move.moved = []
    [vector] = yield from embed([names[0]])
    row = entity_row(id_, names, times)
    move.create(row, identity["former_key"], identity["former_type"], vector, identity["former_created_at"])
    move.entities.append(entity_row(target.id, stays, left.values()))
    move.apart = [{"one": second, "other": id_} for second in sorted(target.apart)]
    move.about = [{"role": "one", "id": target.id}, {"role": "other", "id": id_}]


def _set_apart(identity: Row, state: str, by: str, reason: str) -> Flow[IdentityDecision]:
    """Store that two entities are different (*state* "apart") or undecided again ("waiting").

    Errors: `InputError` if somebody else decided it meanwhile, or an entity no longer exists.
    """
    time = yield from now()
    fields = {name: identity[name] for name in ("by", "at", "reason", "undone_by", "undone_at", "undone_reason")}
    fields |= _author(by, reason, time, "" if state == "apart" else "undone_")
    id_ = identity["id"]
    if not (yield from write(queries.DECIDE_APART, id=id_, expected=identity["state"], state=state, author=fields)):
        raise InputError(f"doubt {id_!r} was decided by somebody else, or an entity is gone: list the doubts again")
    return to_identity_decision({**(yield from read_identity(id_)), "facts": 0})
