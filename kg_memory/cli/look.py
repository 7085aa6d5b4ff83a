"""The commands that look at what is remembered."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from kg_memory.cli.ask import place, relation, said, source
from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Cell, Screen, counted, day
from kg_memory.model import Value


def facts(arguments: Namespace, screen: Screen) -> int:
    """List the facts about a name, current and ended, newest first."""
    with open_memory(arguments, screen) as memory:
        found = memory.facts_about(arguments.name, namespace=namespace_of(arguments), as_of=arguments.on)
    rows = [(relation(each), day(each.valid_at), day(each.invalid_at), said(each), source(each)) for each in found]
    empty = f"No facts about {arguments.name!r}. kg-memory entities lists the known names."
    _show(found, ("fact", "since", "until", "said", "source"), rows, empty, screen)
    return 0


def entities(arguments: Namespace, screen: Screen) -> int:
    """List the entities."""
    with open_memory(arguments, screen) as memory:
        found = memory.entities(namespace=namespace_of(arguments), limit=arguments.limit)
    rows = [(each.name, each.type, ", ".join(each.aliases), each.last_seen, each.summary) for each in found]
    empty = "No entities yet. Tell the memory something: kg-memory ingest FILE"
    _show(found, ("name", "type", "also called", "last seen", "summary"), rows, empty, screen)
    return 0


def episodes(arguments: Namespace, screen: Screen) -> int:
    """List the episodes."""
    with open_memory(arguments, screen) as memory:
        found = memory.episodes(namespace=namespace_of(arguments), limit=arguments.limit, status=arguments.status)
    rows = [(each.at, each.speaker, each.content, place(each), each.status.value) for each in found]
    which = f"{arguments.status} episodes" if arguments.status else "episodes"
    empty = f"No {which}. Tell the memory something: kg-memory ingest FILE"
    _show(found, ("at", "by", "what", "source", "status"), rows, empty, screen)
    return 0


def stats(arguments: Namespace, screen: Screen) -> int:
    """Count what a namespace holds, and name the others."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        counts = memory.stats(namespace=namespace)
        others = [each for each in memory.namespaces() if each != namespace]
    if screen.as_json:
        screen.json({"namespace": namespace, **counts.model_dump(), "other_namespaces": others})
        return 0
    named = {name.replace("_", " "): value for name, value in counts.model_dump().items()}
    screen.table(("what", "how many"), [("namespace", namespace), *named.items()], ("", "bold"))
    if counts.waiting:
        screen.note(f"{counted(counts.waiting, 'episode')} not read to the end: the next kg-memory ingest finishes it")
    if others:
        screen.line(f"other namespaces: {', '.join(others)}", "dim")
    return 0


def reembed(arguments: Namespace, screen: Screen) -> int:
    """Compute the vectors of a namespace anew."""
    with open_memory(arguments, screen) as memory:
        screen.note("Computing all vectors anew: this takes a while, and searches still work ...")
        made = memory.reembed(namespace=namespace_of(arguments))
    if screen.as_json:
        screen.json({"vectors": made})
    else:
        screen.line(f"{counted(made, 'vector')} made anew with the present embedding model.")
    return 0


def _show(
    found: Sequence[Value], columns: Sequence[str], rows: Sequence[Sequence[Cell]], empty: str, screen: Screen
) -> None:
    if screen.as_json:
        screen.json([_plain(value) for value in found])
    elif rows:
        screen.table(columns, rows, ("bold", "green", "yellow", "", "dim"))
    else:
        screen.line(empty)


def _plain(value: Value) -> dict[str, Any]:
    return value.model_dump(mode="json")
