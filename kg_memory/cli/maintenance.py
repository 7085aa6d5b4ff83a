"""``kg-memory forget``, ``evict``, ``audit``, ``export``, ``import``, ``pause``, ``unpause`` and ``reembed``."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kg_memory.cli.command import namespace_of, open_memory, open_to_change, open_to_look, whole_id
from kg_memory.cli.keyboard import Keyboard
from kg_memory.cli.output import Cell, Screen, count_noun, login, note_progress
from kg_memory.errors import InputError
from kg_memory.models.operations import AuditEntry, ForgetReceipt
from kg_memory.validation import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.models.operations import ImportResult

_KINDS = ("message", "fact", "entity")
_NAMED = ("episode", "thread", "entity", "speaker", "source", "fact", "everything", "span", "erase", "search")
_TOLD = 200
"""Deleted messages between two progress notes."""


def forget(arguments: Namespace, screen: Screen) -> int:
    """Preview, ask on a terminal, and forget; return 1 if the answer is no or a trace is left."""
    asks = not (arguments.yes or arguments.dry_run)
    if asks and (screen.as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise InputError("nobody is there to be asked: look with --dry-run, and forget with --yes")
    what: dict[str, Any] = {name: getattr(arguments, name) for name in _NAMED}
    what |= {"by": arguments.by or login(), "reason": arguments.reason, "namespace": namespace_of(arguments)}
    with (open_to_look if arguments.dry_run else open_to_change)(arguments, screen) as memory:
        for name in ("episode", "fact"):
            if what[name] is not None:
                what[name] = whole_id(memory, arguments, name.capitalize(), what[name])
        if asks or arguments.dry_run:
            look = memory.privacy.forget(**what, dry_run=True)
            _show(look, screen)
            if arguments.dry_run:
                return 0
            if Keyboard().key("Forget this for good? [y/N] ") != "y":
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
        "message": look.episodes,
        "fact": look.facts,
        "entity": look.entities,
        "holds again": look.restored,
        "changes": look.changed,
        "is read again": look.unread,
    }
    rows = [(kind, look.texts.get(id_, ""), id_) for kind, ids in groups.items() for id_ in ids]
    screen.table(("what", "text", "id"), rows, ("yellow", "bold", "dim"))
    if look.kind == "span":
        screen.line("Of the message only these characters go; the rest is read again, and known again.")
    screen.line(f"This goes: {_counts(look)}.")


def _counts(receipt: ForgetReceipt) -> str:
    numbers = (len(receipt.episodes), len(receipt.facts), len(receipt.entities))
    return ", ".join(count_noun(number, kind) for number, kind in zip(numbers, _KINDS, strict=True))


def _tell_rest(done: ForgetReceipt, screen: Screen) -> None:
    if done.restored:
        screen.line(f"{count_noun(len(done.restored), 'fact')} that had ended by it holds again.")
    if done.unread:
        screen.note(f"{count_noun(len(done.unread), 'message')} to be read again: kg-memory resume does it")
    if done.residue is not None:
        traces = "nothing of it" if not done.residue else f"{count_noun(len(done.residue), 'trace')} of it"
        where = count_noun(done.searched, "property") if done.searched else "for its ids"
        screen.line(f"Searched {where} and found {traces}.")
    for trace in done.residue or ():
        screen.line(f"  {trace.label}.{trace.name} {trace.id}: {trace.trace}")
    screen.line("The files of the database are without it." if done.erased else f"Not yet: {done.advice}.")
    screen.line(f"In the log as {done.head}")


_COLUMNS, _STYLES = ("what", "text", "id"), ("yellow", "bold", "dim")


def evict(arguments: Namespace, screen: Screen) -> int:
    """Evict, or preview an eviction."""
    names = ("expired_days", "orphans", "max_entities", "expired_episodes", "dry_run")
    options = {name: getattr(arguments, name) for name in names}
    with (open_to_look if arguments.dry_run else open_to_change)(arguments, screen) as memory:
        done = memory.privacy.evict(**options, namespace=namespace_of(arguments))
    if screen.as_json:
        screen.json(done.model_dump(mode="json"))
        return 0
    kinds = (("message", done.episodes), ("fact", done.facts), ("entity", done.entities))
    rows = [(kind, done.texts[id_], id_) for kind, ids in kinds for id_ in ids if done.texts.get(id_)]
    if rows:
        screen.table(_COLUMNS, rows, _STYLES)
    gone = [count_noun(len(ids), kind) for kind, ids in kinds]
    summary = f"{', '.join(gone)} and {count_noun(done.beliefs, 'belief')} of the past"
    screen.line(f"{'This would go' if done.dry_run else 'Evicted'}: {summary}.")
    more = sum(len(ids) for _, ids in kinds) - len(rows)
    if rows and more > 0:
        screen.note(f"{more} more are not shown: --json has their ids")
    return 0


_AUDIT_COLUMNS = ("n", "at", "what", "messages", "facts", "entities", "left", "by", "reason", "hash")
_AUDIT_STYLES = ("dim", "", "yellow", "", "", "", "bold", "", "", "dim")


def audit(arguments: Namespace, screen: Screen) -> int:
    """List or verify the audit log; return 1 if it is broken."""
    if arguments.action == "verify":
        return _verify(arguments, screen)
    if arguments.head:
        raise InputError("--head is what to look for when the log is checked: kg-memory audit verify --head HASH")
    mine = namespace_of(arguments) if hasattr(arguments, "namespace") else None
    with open_to_look(arguments, screen) as memory:
        read = memory.privacy.audit if mine is None else partial(memory.privacy.audit, namespace=mine)
        entries = read(limit=arguments.limit)
    screen.values(
        entries,
        _AUDIT_COLUMNS,
        [_row(entry) for entry in entries],
        _AUDIT_STYLES,
        empty="Nothing was forgotten so far.",
    )
    return 0


def _verify(arguments: Namespace, screen: Screen) -> int:
    with open_to_look(arguments, screen) as memory:
        check = memory.privacy.verify(head=arguments.head)
    if screen.as_json:
        screen.json({**check.model_dump(mode="json"), "ok": check.ok})
        return 0 if check.ok else 1
    for problem in check.problems:
        screen.line(problem, "red")
    if check.pending:
        screen.note(f"{count_noun(check.pending, 'call')} to forget under way, or killed")
    entries = count_noun(check.entries, "entry")
    screen.line(f"The log is whole: {entries}." if check.ok else f"The log is not whole: {entries}.")
    if check.head:
        screen.line(f"Its last hash: {check.head}")
    return 0 if check.ok else 1


def _row(entry: AuditEntry) -> tuple[Cell, ...]:
    left = "" if entry.residue is None else str(entry.residue)
    kind = entry.kind if entry.complete else f"{entry.kind} (not ended)"
    counts = (entry.episodes, entry.facts, entry.entities)
    return entry.number, entry.at, kind, *counts, left, entry.by, entry.reason, entry.hash[:12]


def export(arguments: Namespace, screen: Screen) -> int:
    """Export a namespace to a file; notes go to stderr, as the file may be stdout."""
    with open_to_look(arguments, screen) as memory:
        done = memory.data.export(
            arguments.file,
            namespace=namespace_of(arguments),
            store=arguments.store,
            form=arguments.format,
            embeddings=not arguments.no_embeddings,
            progress=note_progress(screen, "records"),
        )
    if screen.as_json and arguments.file != "-":
        screen.json(done.model_dump(mode="json"))
        return 0
    parts = ", ".join(count_noun(number, record) for record, number in done.records.items())
    whose = f"store {done.namespace!r}" if arguments.store else f"namespace {done.namespace!r}"
    name, size = "the standard output", done.bytes
    if arguments.file != "-":
        name, size = arguments.file, Path(arguments.file).stat().st_size  # compressed, it is less than its lines
    screen.note(f"Wrote the {whose} to {name}, {size:,} bytes: {parts}.")
    return 0


def import_(arguments: Namespace, screen: Screen) -> int:
    """Import a memory; return 1 if an episode could not be read."""
    with open_memory(arguments, screen) as memory:
        done = _bring(memory, arguments, screen)
    if screen.as_json:
        screen.json(done.model_dump(mode="json"))
        return bool(done.unread)
    parts = ", ".join(count_noun(number, record) for record, number in done.records.items())
    instead = " in the place of what was there" if done.replaced else ""
    screen.line(f"Imported into the namespace {done.namespace!r}{instead}: {parts}.")
    if done.repeated:
        screen.note(f"{count_noun(done.repeated, 'record')} of these had been imported before")
    if not hasattr(arguments, "namespace") and done.namespace == DEFAULT_NAMESPACE:
        screen.note("-n NAME imports into another namespace")
    if done.embedded:
        screen.note(f"{count_noun(done.embedded, 'vector')} made anew")
    for what, number in done.left_out.items():
        screen.note(f"left out: {number} of {what}")
    if done.unread:
        screen.note(f"{count_noun(len(done.unread), 'message')} saved but not read: {done.unread[0]}")
    return bool(done.unread)


def _bring(memory: GraphMemory, arguments: Namespace, screen: Screen) -> ImportResult:
    progress = note_progress(screen, "bytes" if arguments.origin == "kg-memory" else "records")
    if arguments.origin == "kg-memory":
        target: dict[str, Any] = {"namespace": namespace_of(arguments)} if hasattr(arguments, "namespace") else {}
        embeddings = not arguments.no_embeddings
        return memory.data.import_(
            arguments.file, **target, replace=arguments.replace, embeddings=embeddings, progress=progress
        )
    where = {"namespace": namespace_of(arguments), "group": arguments.group, "progress": progress}
    if arguments.replace:
        raise InputError("--replace is for exports of kg-memory: records of other memories are added to what is there")
    return memory.data.import_from(arguments.origin, arguments.file, read=not arguments.no_read, **where)


def pause(arguments: Namespace, screen: Screen) -> int:
    """Remember nothing new in a namespace until `unpause`."""
    with open_to_change(arguments, screen) as memory:
        memory.pause(namespace=namespace_of(arguments))
    screen.line("Paused: nothing new is remembered. kg-memory unpause ends it.")
    return 0


def unpause(arguments: Namespace, screen: Screen) -> int:
    """Remember again what comes from now on."""
    with open_to_change(arguments, screen) as memory:
        was_paused = memory.unpause(namespace=namespace_of(arguments))
    screen.line("What comes from now on is remembered again." if was_paused else "It was not paused.")
    return 0


def reembed(arguments: Namespace, screen: Screen) -> int:
    """Compute the vectors of a namespace anew."""
    with open_memory(arguments, screen) as memory:
        screen.note("Computing all vectors anew: this takes a while, and searches still work ...")
        made = memory.data.reembed(namespace=namespace_of(arguments), progress=note_progress(screen, "vectors"))
    if screen.as_json:
        screen.json({"vectors": made})
    else:
        screen.line(f"{count_noun(made, 'vector')} made anew with the present embedding model.")
    return 0
