"""``kg-memory review``: what waits for a person is listed and decided, at a terminal or by one command each."""

from __future__ import annotations

import getpass
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from kg_memory.cli.desk import DOES, DONE, Desk, became
from kg_memory.cli.keys import Keys
from kg_memory.cli.opening import namespace_of, open_memory, review_command
from kg_memory.cli.screen import Screen, counted
from kg_memory.cli.wording import SHORT, proposed, said, source, standing, when
from kg_memory.errors import InputError
from kg_memory.models.graph import Review

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

CHOICES = ("accept", "reject", "edit", "undo")
_SEARCHED = 10_000
"""How many verdicts that wait, or were decided, are looked through for one whose id is shortened."""
_EDITS = ("verdict", "valid_at", "invalid_at")


def review(arguments: Namespace, screen: Screen) -> int:
    """Decide what was asked for; else go through what waits, one by one at a terminal, and as a list elsewhere."""
    choice = next((name for name in CHOICES if getattr(arguments, name) is not None), None)
    _check(arguments, choice)
    decided = arguments.decided
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not screen.as_json
    with open_memory(arguments, screen) as memory:
        if choice is not None:
            _decide(memory, arguments, choice, screen)
        elif terminal and not (arguments.list or decided):
            Desk(memory, namespace_of(arguments), arguments.by or login(), screen, Keys()).sit()
        else:
            (_list_decided if decided else _list)(memory, arguments, screen)
    return 0


def login() -> str:
    """Return the login name of whoever decides."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # none of the variables is set, and the user is not known by name
        return "user"


def _check(arguments: Namespace, choice: str | None) -> None:
    """Refuse options that would go unheard.

    Errors: `InputError`.
    """
    edits = [f"--{name.replace('_', '-')}" for name in _EDITS if getattr(arguments, name) is not None]
    if edits and choice != "edit":
        raise InputError(f"{', '.join(edits)} can be given only with --edit ID")
    if choice == "edit" and not edits:
        raise InputError("nothing is edited: give --verdict, --valid-at or --invalid-at")
    if arguments.reason and choice is None:
        raise InputError("--reason goes with a decision: give --accept, --reject, --edit or --undo with an ID")


def _decide(memory: GraphMemory, arguments: Namespace, choice: str, screen: Screen) -> None:
    namespace, id_ = namespace_of(arguments), _whole(memory, arguments, choice)
    why = {"by": arguments.by or login(), "reason": arguments.reason, "namespace": namespace}
    if choice == "undo":
        decided = memory.reviews.undo(id_, **why)
    else:
        edit = {name: getattr(arguments, name) for name in _EDITS}
        decided = memory.reviews.decide(id_, choice, **edit, **why)  # type: ignore[arg-type]
    if screen.as_json:
        screen.json(decided.model_dump(mode="json"))
        return
    for line in became(decided):
        screen.line(line)
    if choice != "undo":
        screen.line(f"Undo it: {review_command(arguments)} --undo {decided.id}", "dim")


def _whole(memory: GraphMemory, arguments: Namespace, choice: str) -> str:
    """Return the id of the verdict that the id given with *choice* begins, which may be a whole one of any verdict.

    It is looked for among those that wait, and, to undo, among those that were decided. Errors: `InputError` when it
    is the begin of several, or can name none.
    """
    begin, namespace = getattr(arguments, choice), namespace_of(arguments)
    known = memory.reviews.list(namespace=namespace, limit=_SEARCHED)
    if choice == "undo":
        known += memory.reviews.list(decided=True, namespace=namespace, limit=_SEARCHED)
    found = sorted({each.id for each in known if begin and each.id.startswith(begin)})
    if len(found) == 1:
        return found[0]
    what = "review that was decided" if choice == "undo" else "review that waits"
    if found:
        raise InputError(f"{begin!r} begins more than one {what} ({len(found)}): give more of the id")
    if len(begin) > SHORT:
        return str(begin)
    if choice == "undo":
        raise InputError(f"no {what} begins with {begin!r}: {review_command(arguments)} --decided shows them")
    raise InputError(
        f"no {what} begins with {begin!r}: {review_command(arguments)} --list shows them; name one that "
        "was decided by its whole id"
    )


def _list(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    found = memory.reviews.list(namespace=namespace_of(arguments), limit=arguments.limit)
    rows = [_row(each) for each in found]
    columns = ("id", "verdict", "confidence", "waits", "against", "said", "source")
    styles = ("dim", "yellow", "", "bold", "bold", "", "dim")
    screen.values(found, columns, rows, styles, empty="Nothing waits for review.")
    if found and not screen.as_json:
        command = review_command(arguments)
        wait = "waits" if len(found) == 1 else "wait"
        screen.note(
            f"{counted(len(found), 'verdict')} {wait}: decide by {command} --accept ID, --reject ID or --edit ID"
        )


def _row(review: Review) -> tuple[str | float, ...]:
    waiting, against = review.pending, review.existing
    return (
        review.id[:SHORT], review.kind, review.confidence, f"{waiting.sentence} ({proposed(waiting)})",
        f"{against.sentence} ({standing(against)})", said(waiting), source(waiting),
    )  # fmt: skip


def _list_decided(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    found = memory.reviews.list(decided=True, namespace=namespace_of(arguments), limit=arguments.limit)
    columns = ("id", "verdict", "decided", "by", "at", "why", "said later", "said before")
    styles = ("dim", "yellow", "", "", "", "dim", "bold", "bold")
    screen.values(found, columns, [_decided_row(each) for each in found], styles, empty="Nothing was decided yet.")
    if found and not screen.as_json:
        screen.note(f"Undo one by {review_command(arguments)} --undo ID")


def _decided_row(review: Review) -> tuple[str, ...]:
    last, waiting, against = review.decisions[-1], review.pending, review.existing
    return (
        review.id[:SHORT], review.kind, f"{DONE[last.decision]}: {DOES[review.ruling]}", last.by, when(last.at),
        last.reason, f"{waiting.sentence} ({standing(waiting)})", f"{against.sentence} ({standing(against)})",
    )  # fmt: skip
