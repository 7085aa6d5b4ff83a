"""The commands that maintain a memory: read messages again, forget, evict, audit, pause, export and import."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from kg_memory.cli.command import (
    call_verb,
    namespace_of,
    open_memory,
    open_to_change,
    open_to_look,
    verb_arguments,
    whole_id,
)
from kg_memory.cli.output import ProgressMeter, Screen, confirm, count_noun, is_terminal, note_progress
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.operations import AddResult, EvictionResult, ForgetReceipt, ImportResult
from kg_memory.validation import DEFAULT_NAMESPACE

# The number of deleted episodes between two progress notes.
_PROGRESS = 200
_TABLE = ("what", "text", "id")


def read_again(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory resume``, ``retry`` or ``deepen``, which extract facts from stored episodes (messages, texts).

    ``resume`` does this for episodes that are saved but not read, ``retry`` for those that failed, and ``deepen`` for
    those that were read with a cheaper plan. Return the exit code: 1 if an episode cannot be read, else 0.
    """
    name, namespace = arguments.command.name, namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        given, before = verb_arguments(memory, arguments), memory.stats(namespace=namespace)
        if name == "deepen":
            total = len(memory.episodes.deepen(**{**given, "dry_run": True}))
            if arguments.dry_run:
                if not screen.prints_json({"episodes": total}):
                    screen.line(f"{count_noun(total, 'episode')} would be read again")
                return 0
        elif name == "retry":
            given["episodes"] = [whole_id(memory, arguments, "Episode", id_) for id_ in arguments.ids] or None
            total = len(arguments.ids) or before.failed + before.skipped * arguments.skipped
        else:
            total = min(before.waiting, arguments.limit or before.waiting)
        meter, verb = ProgressMeter(total, screen), getattr(memory.episodes, name)
        added: list[AddResult] = verb(**given, progress=meter.progress)
        facts = memory.stats(namespace=namespace).facts - before.facts
    failed = [result for result in added if result.error]
    if screen.prints_json(added):
        return bool(failed)
    read = count_noun(len(added) - len(failed), "episode")
    screen.line(f"{read} read, {len(failed)} failed; {count_noun(facts, 'fact')} more than before")
    for result in failed:
        screen.note(f"{result.episode}: {result.error}")
    return bool(failed)


def forget(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory forget``: show the content to delete, ask for confirmation, and delete it.

    With ``--yes``, delete without asking. Return the exit code: 1 if the person declines or traces of the deleted text
    remain, else 0.
    """
    check_confirmable(arguments, screen)
    with (open_to_look if arguments.dry_run else open_to_change)(arguments, screen) as memory:
        return forget_after_asking(memory, verb_arguments(memory, arguments), arguments, screen)


def check_confirmable(arguments: Namespace, screen: Screen) -> None:
    """Raise `InputError` if the command must ask for confirmation and there is no terminal to ask on."""
    if not (arguments.yes or arguments.dry_run) and (screen.as_json or not is_terminal()):
        raise InputError("cannot ask for confirmation without a terminal: preview with --dry-run, forget with --yes")


def forget_after_asking(memory: GraphMemory, given: dict[str, Any], arguments: Namespace, screen: Screen) -> int:
    """Delete the data selected by *given*, arguments of `GraphMemory.privacy.forget`, and return the exit code.

    Show a preview and ask first, unless ``--yes`` is given; ``--dry-run`` only shows the preview. The code is 1 if the
    user declines or traces remain.
    """

    def note(part: int, whole: int) -> None:
        if whole > _PROGRESS and (part % _PROGRESS == 0 or part == whole):
            screen.note(f"{part} of {whole} messages are deleted")

    if not arguments.yes or arguments.dry_run:
        _show_preview(memory.privacy.forget(**{**given, "dry_run": True}), screen)
        if arguments.dry_run:
            return 0
        if not confirm("Forget this for good?"):
            screen.note("Nothing was forgotten.")
            return 1
    done = memory.privacy.forget(**given, progress=note)
    if not screen.prints_json(done):
        _show_receipt(done, screen)
    return 1 if done.residue else 0


def _show_preview(look: ForgetReceipt, screen: Screen) -> None:
    """Print a table of the texts that would be deleted or changed; *look* is the receipt of a dry run."""
    if screen.prints_json(look):
        return
    groups = {
        "message": look.episodes,
        "fact": look.facts,
        "entity": look.entities,
        "holds again": look.restored,
        "changes": look.changed,
        "is read again": look.unread,
    }
    screen.table(_TABLE, [(kind, look.texts.get(id_, ""), id_) for kind, ids in groups.items() for id_ in ids])
    if look.kind == "span":
        screen.line("Only these characters of the message are deleted; the rest is read again.")
    screen.line(f"To be deleted: {_count(look)}.")


def _show_receipt(done: ForgetReceipt, screen: Screen) -> None:
    """Print the number of deleted items, the traces that remain, and the audit log entry; *done* is the receipt."""
    screen.line(f"Forgotten: {_count(done)}.")
    if done.restored:
        screen.line(f"Restored, as the forgotten messages had ended them: {count_noun(len(done.restored), 'fact')}.")
    if done.unread:
        screen.note(f"{count_noun(len(done.unread), 'message')} to be read again: kg-memory resume does it")
    if done.residue is not None:
        traces = "no trace" if not done.residue else f"{count_noun(len(done.residue), 'trace')}"
        where = count_noun(done.searched, "property") if done.searched else "for its ids"
        screen.line(f"Searched {where} and found {traces}.")
    for trace in done.residue or ():
        screen.line(f"  {trace.label}.{trace.name} {trace.id}: {trace.trace}")
    screen.line("The database files no longer contain it." if done.erased else f"Not yet erased: {done.advice}.")
    screen.line(f"Audit log entry: {done.head}")


def _count(done: ForgetReceipt | EvictionResult) -> str:
    counts = (("message", done.episodes), ("fact", done.facts), ("entity", done.entities))
    return ", ".join(count_noun(len(ids), kind) for kind, ids in counts)


def evict(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory evict``: remove old content and print the numbers of removed items; return 0.

    With ``--dry-run`` nothing is removed, and the output shows what would be.
    """
    with (open_to_look if arguments.dry_run else open_to_change)(arguments, screen) as memory:
        done: EvictionResult = call_verb(memory, arguments)
    if screen.prints_json(done):
        return 0
    kinds = {"message": done.episodes, "fact": done.facts, "entity": done.entities}
    rows = [(kind, done.texts[id_], id_) for kind, ids in kinds.items() for id_ in ids if done.texts.get(id_)]
    if rows:
        screen.table(_TABLE, rows)
    summary = f"{_count(done)} and {count_noun(done.beliefs, 'belief')} of the past"
    screen.line(f"{'Would be evicted' if done.dry_run else 'Evicted'}: {summary}.")
    more = sum(map(len, kinds.values())) - len(rows)
    if rows and more > 0:
        screen.note(f"{more} more are not shown: --json has their ids")
    return 0


def audit(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory audit``: list or verify the audit log of deletions; return 1 if it was tampered with, else 0."""
    if arguments.action == "verify":
        return _verify(arguments, screen)
    if arguments.head:
        raise InputError("--head needs the action verify: kg-memory audit verify --head HASH")
    with open_to_look(arguments, screen) as memory:
        own: dict[str, Any] = {"namespace": namespace_of(arguments)} if hasattr(arguments, "namespace") else {}
        entries = memory.privacy.audit(**own, limit=arguments.limit)
    screen.values(entries, empty=arguments.command.empty)
    return 0


def _verify(arguments: Namespace, screen: Screen) -> int:
    with open_to_look(arguments, screen) as memory:
        check = memory.privacy.verify(head=arguments.head)
    if screen.prints_json({**check.model_dump(mode="json"), "ok": check.ok}):
        return 0 if check.ok else 1
    for problem in check.problems:
        screen.line(problem, "red")
    if check.pending:
        screen.note(f"{count_noun(check.pending, 'call')} to forget not finished: still running, or killed")
    screen.line(f"The log is {'' if check.ok else 'not '}intact: {count_noun(check.entries, 'entry')}.")
    if check.head:
        screen.line(f"Hash of the last entry: {check.head}")
    return 0 if check.ok else 1


def pause(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory pause`` or ``unpause``: stop or resume the saving of new messages; return 0."""
    return set_paused(arguments, screen, paused=arguments.command.name == "pause")


def set_paused(arguments: Namespace, screen: Screen, *, paused: bool) -> int:
    """Stop (*paused*) or resume the saving of new messages, print the outcome, and return 0."""
    with open_to_change(arguments, screen) as memory:
        changed = (memory.pause if paused else memory.unpause)(namespace=namespace_of(arguments))
    if paused:
        screen.line("Paused: nothing new is remembered. kg-memory unpause ends it.")
    else:
        screen.line("New messages are remembered again." if changed else "The namespace was not paused.")
    return 0


def sleep(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory sleep`` or ``wake``: pack the graph of a namespace into some kilobytes or unpack it."""
    with open_to_look(arguments, screen) as memory:
        getattr(memory.data, arguments.command.name)(namespace=namespace_of(arguments))
    screen.line("Asleep until its next use." if arguments.command.name == "sleep" else "Awake.")
    return 0


# Export and import


def export(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory export``: write a namespace or a `KGStore` to a file or stdout, and return 0.

    Messages go to stderr.
    """
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
        screen.json(done)
        return 0
    whose = f"store {done.namespace!r}" if arguments.store else f"namespace {done.namespace!r}"
    name, size = "the standard output", done.bytes
    if arguments.file != "-":
        name, size = arguments.file, Path(arguments.file).stat().st_size  # the size after compression
    screen.note(f"Wrote the {whose} to {name}, {size:,} bytes: {_count_records(done.records)}.")
    return 0


def _count_records(records: dict[str, int]) -> str:
    return ", ".join(count_noun(number, record) for record, number in records.items())


def import_(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory import``: import a file and print the counts; return the exit code.

    The code is 1 if a message was saved but its facts could not be extracted, else 0.
    """
    with open_memory(arguments, screen) as memory:
        done = _import(memory, arguments, screen)
    if screen.prints_json(done):
        return bool(done.unread)
    instead = ", replacing its content" if done.replaced else ""
    screen.line(f"Imported into the namespace {done.namespace!r}{instead}: {_count_records(done.records)}.")
    if done.repeated:
        screen.note(f"{count_noun(done.repeated, 'record')} of these had been imported before")
    if not hasattr(arguments, "namespace") and done.namespace == DEFAULT_NAMESPACE:
        screen.note("-n NAME imports into another namespace")
    if done.embedded:
        screen.note(f"{count_noun(done.embedded, 'vector')} computed")
    for what, number in done.left_out.items():
        screen.note(f"left out: {number} of {what}")
    if done.unread:
        screen.note(f"{count_noun(len(done.unread), 'message')} saved but not read: {done.unread[0]}")
    return bool(done.unread)


def _import(memory: GraphMemory, arguments: Namespace, screen: Screen) -> ImportResult:
    progress = note_progress(screen, "bytes" if arguments.origin == "kg-memory" else "records")
    if arguments.origin == "kg-memory":
        target: dict[str, Any] = {"namespace": namespace_of(arguments)} if hasattr(arguments, "namespace") else {}
        target |= {"replace": arguments.replace, "embeddings": not arguments.no_embeddings}
        return memory.data.import_(arguments.file, **target, progress=progress)
    where = {"namespace": namespace_of(arguments), "group": arguments.group, "progress": progress}
    if arguments.replace:
        raise InputError("--replace is for exports of kg-memory: records of other memories are added; leave it out")
    return memory.data.import_from(arguments.origin, arguments.file, read=not arguments.no_read, **where)


def reembed(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory reembed``: compute all vectors of the namespace again with the embedding model; return 0."""
    with open_memory(arguments, screen) as memory:
        screen.note("Computing all vectors; this takes a while, and searches still work meanwhile ...")
        made = memory.data.reembed(namespace=namespace_of(arguments), progress=note_progress(screen, "vectors"))
    if not screen.prints_json({"vectors": made}):
        screen.line(f"{count_noun(made, 'vector')} computed with the present embedding model.")
    return 0
