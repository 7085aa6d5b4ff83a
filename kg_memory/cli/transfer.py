"""``kg-memory export`` and ``kg-memory import``: a memory goes into a file, and comes from one."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.output import Screen, count_noun
from kg_memory.cli.progress import note_progress
from kg_memory.errors import InputError

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.models.operations import ImportResult


def export(arguments: Namespace, screen: Screen) -> int:
    """Write a namespace into a file; what is said of it goes elsewhere, as the file may be the standard output."""
    with open_memory(arguments, screen) as memory:
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
    screen.note(f"{done.namespace} written, {done.bytes:,} bytes: {parts}.")
    for label, number in done.left_out.items():
        screen.note(f"left out: {count_noun(number, label)} that belongs to nothing")
    return 0


def import_(arguments: Namespace, screen: Screen) -> int:
    """Bring a memory in, and return 1 if there is something in it that could not be read."""
    if arguments.origin in ("mem0", "langmem"):
        return _remember(arguments, screen)
    with open_memory(arguments, screen) as memory:
        done = _graph(memory, arguments, screen)
    if screen.as_json:
        screen.json(done.model_dump(mode="json"))
        return 0
    parts = ", ".join(count_noun(number, record) for record, number in done.records.items())
    instead = " in the place of what was there" if done.replaced else ""
    screen.line(f"{done.namespace} has come{instead}: {parts}.")
    if done.embedded:
        screen.note(f"{count_noun(done.embedded, 'vector')} made anew")
    for what, number in done.left_out.items():
        screen.note(f"left out: {number} of {what}, which say nothing or belong to nothing")
    return 0


def _graph(memory: GraphMemory, arguments: Namespace, screen: Screen) -> ImportResult:
    if arguments.origin == "graphiti":
        where = {"namespace": namespace_of(arguments), "group": arguments.group}
        named = {"graph": arguments.graph} if arguments.graph else {}
        progress = note_progress(screen, "records")
        return memory.data.import_graphiti(
            arguments.file, replace=arguments.replace, progress=progress, **where, **named
        )
    namespace = namespace_of(arguments) if hasattr(arguments, "namespace") else None
    return memory.data.import_(
        arguments.file,
        namespace=namespace,
        replace=arguments.replace,
        embeddings=not arguments.no_embeddings,
        progress=note_progress(screen, "bytes"),
    )


def _remember(arguments: Namespace, screen: Screen) -> int:
    """Remember the sentences of a memory that has no graph."""
    from kg_memory.maintenance.transfer.other_memories import read_langmem, read_mem0  # noqa: PLC0415 - slow to import

    if arguments.replace:
        raise InputError("--replace is for graphs: sentences are added to what is there")
    read = read_mem0 if arguments.origin == "mem0" else read_langmem
    episodes = list(read(Path(arguments.file), arguments.group))
    with open_memory(arguments, screen) as memory:
        if arguments.no_read:
            added = memory.episodes.save(episodes, namespace=namespace_of(arguments))
        else:
            note = note_progress(screen, "sentences")
            added = memory.add_many(
                episodes,
                namespace=namespace_of(arguments),
                progress=lambda at: note(at.done, at.total or len(episodes)),
            )
    unread = [result.error for result in added if result.error]
    facts = sum(len(result.facts) for result in added)
    if screen.as_json:
        outcome = {"episodes": len(added), "new": sum(result.new for result in added), "facts": facts, "unread": unread}
        screen.json(outcome)
    else:
        screen.line(f"{count_noun(len(added), 'sentence')} remembered, {count_noun(facts, 'fact')} read from them.")
        if unread:
            screen.note(f"{count_noun(len(unread), 'sentence')} saved but not read: {unread[0]}")
    return bool(unread)
