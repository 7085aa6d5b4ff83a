"""``kg-memory audit``: what was forgotten, and whether the log of it is whole."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Cell, Screen, counted
from kg_memory.errors import InputError
from kg_memory.models.receipts import AuditEntry

_COLUMNS = ("n", "at", "what", "messages", "facts", "entities", "left", "by", "reason", "hash")
_STYLES = ("dim", "", "yellow", "", "", "", "bold", "", "", "dim")


def audit(arguments: Namespace, screen: Screen) -> int:
    """List the log, or check it; return 1 where something is wrong with it."""
    if arguments.action == "verify":
        return _verify(arguments, screen)
    if arguments.head:
        raise InputError("--head is what to look for when the log is checked: kg-memory audit verify --head HASH")
    mine = hasattr(arguments, "namespace")
    with open_memory(arguments, screen) as memory:
        found = memory.privacy.audit(namespace=namespace_of(arguments) if mine else None, limit=arguments.limit)
    screen.values(found, _COLUMNS, [_row(each) for each in found], _STYLES, empty="Nothing was forgotten so far.")
    return 0


def _verify(arguments: Namespace, screen: Screen) -> int:
    with open_memory(arguments, screen) as memory:
        check = memory.privacy.verify(head=arguments.head)
    if screen.as_json:
        screen.json({**check.model_dump(mode="json"), "ok": check.ok})
        return 0 if check.ok else 1
    for each in check.problems:
        screen.line(each, "red")
    if check.pending:
        screen.note(f"{counted(check.pending, 'call')} to forget under way, or killed less than a minute ago")
    told = counted(check.entries, "entry")
    screen.line(f"The log is whole: {told}." if check.ok else f"The log is not whole: {told}.")
    if check.head:
        screen.line(f"Its last hash: {check.head}")
    return 0 if check.ok else 1


def _row(entry: AuditEntry) -> tuple[Cell, ...]:
    left = "not searched" if entry.residue is None else str(entry.residue)
    kind = entry.kind if entry.complete else f"{entry.kind} (killed)"
    counts = (entry.episodes, entry.facts, entry.entities)
    return entry.number, entry.at, kind, *counts, left, entry.by, entry.reason, entry.hash[:12]
