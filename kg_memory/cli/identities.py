"""``kg-memory entities``: list the entities, merge and split them, undo that; and decide doubts about who is who."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Literal

from kg_memory.cli.command import explain_nothing, namespace_of, open_to_change, open_to_look, whole_ids
from kg_memory.cli.keyboard import END, Keyboard
from kg_memory.cli.output import SHORT, Cell, Screen, cell, count_noun, login, when
from kg_memory.errors import InputError
from kg_memory.models.graph import Entity, IdentityDecision

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

_STYLES = ("dim", "yellow", "", "bold", "bold", "", "", "dim")
_COLUMNS = ("id", "what", "state", "entity", "other", "by", "at", "why")
_DECISIONS = 10_000
"""The most decisions that are looked through for one whose id is shortened."""
_PROMPT = "[a]ccept: they are one  [r]eject: they are two  [s]kip  [q]uit > "


def entities(arguments: Namespace, screen: Screen) -> int:
    """List the entities or the decisions about them, merge, split, or undo."""
    _check(arguments)
    action = arguments.action or "list"
    looks = action in ("list", "decisions")
    opened = open_to_look(arguments, screen) if looks else open_to_change(arguments, screen)
    with opened as memory:
        _ACTIONS[action](memory, arguments, screen)
    return 0


def _check(arguments: Namespace) -> None:
    """Refuse options that would go unheard. Errors: `InputError`."""
    action, names = arguments.action or "list", arguments.names
    most = {"merge": None, "split": 1, "undo": 1}.get(action, 0)
    if most is not None and len(names) > most:
        raise InputError(f"entities {action} takes {most} names, got {len(names)}; quote names with spaces")
    if action == "merge" and len(names) < 2:
        raise InputError("entities merge needs the entity to keep and those to merge into it; give two names or ids")
    if action in ("split", "undo") and not names:
        raise InputError(f"entities {action} needs {'the name of an entity' if action == 'split' else 'an ID'}")
    if action != "split" and (arguments.facts or arguments.episodes or arguments.new_name or arguments.type):
        raise InputError("--fact, --episode, --as and --type can be given only to entities split")
    if arguments.reason and action not in ("merge", "split", "undo"):
        raise InputError("--reason goes with entities merge, split or undo")


def entity_row(entity: Entity) -> tuple[Cell, ...]:
    """Return the columns of an entity."""
    return entity.name, entity.type, ", ".join(entity.aliases), entity.last_seen, entity.summary


def _list(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    listed = memory.entities.list(namespace=namespace_of(arguments), limit=arguments.limit)
    columns: tuple[str, ...] = ("name", "type", "also called", "last seen", "summary")
    rows = [entity_row(entity) for entity in listed]
    if arguments.ids:
        columns, rows = (*columns, "id"), [(*row, entity.id) for row, entity in zip(rows, listed, strict=True)]
    otherwise = "No entities yet. Tell the memory something: kg-memory ingest FILE"
    empty = "" if listed else explain_nothing(memory, arguments, otherwise)
    screen.values(listed, columns, rows, ("cyan", "bold"), empty=empty)


def _merge(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    into, *others = arguments.names
    _tell(memory.entities.merge(into, *others, **_why(arguments)), arguments, screen)


def _split(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    decision = memory.entities.split(
        arguments.names[0],
        facts=whole_ids(memory, arguments, "Fact", arguments.facts),
        episodes=whole_ids(memory, arguments, "Episode", arguments.episodes),
        name=arguments.new_name,
        type=arguments.type,
        **_why(arguments),
    )
    _tell([decision], arguments, screen)


def _undo(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    begin, namespace = arguments.names[0], namespace_of(arguments)
    decisions = memory.entities.decisions(namespace=namespace, limit=_DECISIONS)
    undone = memory.entities.undo(_whole(begin, decisions), **_why(arguments))
    if screen.as_json:
        screen.json(undone.model_dump(mode="json"))
    else:
        screen.line(describe(undone))


def _decisions(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    decisions = memory.entities.decisions(namespace=namespace_of(arguments), limit=arguments.limit)
    screen.values(
        decisions, _COLUMNS, list(map(_decision_row, decisions)), _STYLES, empty="Nothing was merged or split."
    )


_ACTIONS = {"list": _list, "merge": _merge, "split": _split, "undo": _undo, "decisions": _decisions}


def _why(arguments: Namespace) -> dict[str, str]:
    by = arguments.by or login()
    return {"by": by, "reason": arguments.reason, "namespace": namespace_of(arguments)}


def _whole(begin: str, decisions: list[IdentityDecision]) -> str:
    """Return the id that *begin* begins. Errors: `InputError` where it begins several."""
    ids = sorted({decision.id for decision in decisions if begin and decision.id.startswith(begin)})
    if len(ids) > 1:
        raise InputError(f"{begin!r} begins more than one decision ({len(ids)}): give more of the id")
    return ids[0] if ids else begin


def _decision_row(decision: IdentityDecision) -> tuple[str, ...]:
    second = decision.second.name if decision.second else ""
    by, at = decision.undone_by or decision.by, decision.undone_at or decision.at
    last = decision.undone_reason or decision.reason
    id_ = decision.id[:SHORT]
    return id_, decision.kind, decision.state, decision.entity.name, second, by or "", when(at) if at else "", last


def describe(decision: IdentityDecision) -> str:
    """Return what became of a decision, in a sentence."""
    name, second = cell(decision.entity.name), cell(decision.second.name if decision.second else "")
    moved = f"; {count_noun(decision.facts, 'fact')} moved" if decision.facts else ""
    if decision.state == "undone":
        now = f"{name} is one" if decision.kind == "split" else f"{name} and {second} are two"
        return f"Undone: {now} again."
    if decision.state == "waiting":
        return f"Undone: whether {name} and {second} are one waits for review again."
    if decision.state == "apart":
        return f"Kept apart: {name} and {second} are two."
    if decision.kind == "split":
        return f"Split: {second} is another than {name}{moved}."
    return f"Merged into {name} ({', '.join(map(cell, decision.entity.aliases))}){moved}."


def _tell(decisions: list[IdentityDecision], arguments: Namespace, screen: Screen) -> None:
    if screen.as_json:
        screen.json([decision.model_dump(mode="json") for decision in decisions])
        return
    for decision in decisions:
        screen.line(describe(decision))
        screen.line(f"Undo it: kg-memory entities undo {decision.id}{_of_namespace(arguments)}", "dim")


def _of_namespace(arguments: Namespace) -> str:
    namespace = getattr(arguments, "namespace", None)
    return f" -n {namespace}" if namespace else ""


# Doubts in the review


def find_doubt(memory: GraphMemory, namespace: str, begin: str) -> IdentityDecision | None:
    """Return the doubt that waits whose id *begin* begins, if it is the only one."""
    doubts = memory.reviews.identities(namespace=namespace, limit=_DECISIONS)
    fitting = [doubt for doubt in doubts if begin and doubt.id.startswith(begin)]
    return fitting[0] if len(fitting) == 1 else None


def decide_doubt(memory: GraphMemory, doubt: IdentityDecision, arguments: Namespace, screen: Screen) -> None:
    """Accept or reject *doubt*, as the arguments of ``review`` say."""
    choice: Literal["accept", "reject"] = "accept" if arguments.accept is not None else "reject"
    decided = memory.reviews.decide_identity(doubt.id, choice, **_why(arguments))
    _tell([decided], arguments, screen)


def list_doubts(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    """List the doubts that wait below the verdicts."""
    doubts = memory.reviews.identities(namespace=namespace_of(arguments), limit=arguments.limit)
    if not doubts or screen.as_json:
        return
    rows = [_doubt_row(doubt) for doubt in doubts]
    screen.table(("id", "is this", "the same as", "confidence"), rows, ("dim", "bold", "bold", "yellow"))
    count = count_noun(len(doubts), "doubt")
    screen.note(f"{count} about who is who: --accept ID makes them one, --reject ID keeps two")


def _doubt_row(doubt: IdentityDecision) -> tuple[Cell, ...]:
    return doubt.id[:SHORT], _describe_side(0, doubt), _describe_side(1, doubt), doubt.confidence


def _describe_side(side: int, doubt: IdentityDecision) -> str:
    entity = doubt.entity if side else doubt.second
    return f"{entity.name if entity else ''}: {' '.join(doubt.latest[1 - side])}"


def sit(memory: GraphMemory, namespace: str, by: str, screen: Screen, keys: Keyboard) -> None:
    """Ask about each doubt that waits, until the person quits."""
    for doubt in memory.reviews.identities(namespace=namespace, limit=_DECISIONS):
        screen.line()
        screen.line(f"One or two? (confidence {doubt.confidence or 0.0:.2f})", "bold magenta")
        for side in (0, 1):
            screen.line(f"  {cell(_describe_side(side, doubt))}", "bold")
        key = keys.key(_PROMPT)
        while key not in ("a", "r", "s", "q", END):
            key = keys.key(_PROMPT)
        if key in ("q", END):
            return
        if key != "s":
            try:
                choice: Literal["accept", "reject"] = "accept" if key == "a" else "reject"
                decided = memory.reviews.decide_identity(doubt.id, choice, by=by, namespace=namespace)
            except InputError as error:
                screen.line(f"Not decided: {error}", "red")
            else:
                screen.line(describe(decided), "green")
