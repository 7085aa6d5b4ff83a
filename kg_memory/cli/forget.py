"""``kg-memory forget``: what is named goes for good; what goes is shown first."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from kg_memory.cli.keys import Keys
from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.review import login
from kg_memory.cli.screen import Screen, counted
from kg_memory.errors import InputError
from kg_memory.models.receipts import ForgetReceipt

_KINDS = ("message", "fact", "entity")
_NAMED = ("episode", "thread", "entity", "speaker", "source", "fact", "everything", "span", "erase", "search")
_TOLD = 200
"""How many messages are gone between two remarks about it."""


def forget(arguments: Namespace, screen: Screen) -> int:
    """Show what would go, ask on a terminal, and let it go; return 1 where the answer is no, or something is left."""
    asks = not (arguments.yes or arguments.dry_run)
    if asks and (screen.as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise InputError("nobody is there to be asked: look with --dry-run, and forget with --yes")
    what: dict[str, Any] = {name: getattr(arguments, name) for name in _NAMED}
    what |= {"by": arguments.by or login(), "reason": arguments.reason, "namespace": namespace_of(arguments)}
    with open_memory(arguments, screen) as memory:
        if asks or arguments.dry_run:
            look = memory.privacy.forget(**what, dry_run=True)
            _show(look, screen)
            if arguments.dry_run:
                return 0
            if Keys().key("Forget this for good? [y/N] ") != "y":
                screen.note("Nothing was forgotten.")
                return 1
        done = memory.privacy.forget(**what, progress=lambda part, whole: _progress(part, whole, screen))
    if screen.as_json:
        screen.json(done.model_dump(mode="json"))
    else:
        screen.line(f"Forgotten: {_counts(done)}.")
        _tell_rest(done, screen)
    return 1 if done.residue else 0


def _progress(part: int, whole: int, screen: Screen) -> None:
    if whole > _TOLD and (part % _TOLD == 0 or part == whole):
        screen.note(f"{part} of {whole} messages are gone")


def _show(look: ForgetReceipt, screen: Screen) -> None:
    if screen.as_json:
        screen.json(look.model_dump(mode="json"))
        return
    groups = {
        "message": look.episodes, "fact": look.facts, "entity": look.entities, "holds again": look.restored,
        "changes": look.changed, "is read again": look.unread,
    }  # fmt: skip
    rows = [(kind, look.texts.get(id_, ""), id_) for kind, ids in groups.items() for id_ in ids]
    screen.table(("what", "text", "id"), rows, ("yellow", "bold", "dim"))
    if look.kind == "span":
        screen.line("Of the message only these characters go; the rest is read again, and known again.")
    screen.line(f"This goes: {_counts(look)}.")


def _counts(receipt: ForgetReceipt) -> str:
    numbers = (len(receipt.episodes), len(receipt.facts), len(receipt.entities))
    return ", ".join(counted(number, kind) for number, kind in zip(numbers, _KINDS, strict=True))


def _tell_rest(done: ForgetReceipt, screen: Screen) -> None:
    if done.restored:
        screen.line(f"{counted(len(done.restored), 'fact')} that had ended by it holds again.")
    if done.unread:
        screen.note(f"{counted(len(done.unread), 'message')} to be read again: the next kg-memory ingest does it")
    if done.residue is not None:
        found = "nothing of it" if not done.residue else f"{counted(len(done.residue), 'trace')} of it"
        screen.line(f"Searched {counted(done.searched, 'property')} and found {found}.")
    for each in done.residue or ():
        screen.line(f"  {each.label}.{each.name} {each.id}: {each.trace}")
    screen.line("The files of the database are without it." if done.erased else f"Not yet: {done.advice}.")
    screen.line(f"In the log as {done.head}")
