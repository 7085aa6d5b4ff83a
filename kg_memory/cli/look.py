"""The commands that look at what is remembered."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable

from kg_memory.cli.opening import namespace_of, open_memory, review_command, times_of
from kg_memory.cli.screen import Cell, Screen, counted
from kg_memory.cli.wording import FACT_STYLES, FACTS, fact_row, place, with_ids
from kg_memory.models.graph import Entity, Episode

_PAUSE = 5.0
"""Seconds between two lines about something long."""
NO_NAME = "kg-memory entities lists the known names."


def facts(arguments: Namespace, screen: Screen) -> int:
    """List the facts about a name, current and ended, newest first."""
    with open_memory(arguments, screen) as memory:
        found = memory.facts.about(
            arguments.name, namespace=namespace_of(arguments), limit=arguments.limit, **times_of(arguments)
        )
    columns, rows = with_ids(FACTS, [fact_row(each) for each in found], found, ids=arguments.ids)
    screen.values(found, columns, rows, FACT_STYLES, empty=f"No facts about {arguments.name!r}. {NO_NAME}")
    return 0


def around(arguments: Namespace, screen: Screen) -> int:
    """List what lies within some steps of a name: the entities, nearest first, and the facts that lead to them."""
    with open_memory(arguments, screen) as memory:
        found = memory.entities.around(
            arguments.name, arguments.steps, namespace=namespace_of(arguments), limit=arguments.limit,
            **times_of(arguments),
        )  # fmt: skip
    if screen.as_json:
        screen.json(found.model_dump(mode="json"))
    elif not found.entities:
        screen.line(f"Nobody and nothing is called {arguments.name!r}. {NO_NAME}")
    else:
        near = sorted(found.entities, key=lambda each: (found.depths[each.name], each.name))
        rows = [(found.depths[each.name], *_entity_row(each)[:3]) for each in near]
        screen.table(("steps", "name", "type", "also called"), rows, ("cyan", "bold"))
        if found.facts:
            screen.line()
            screen.table(FACTS, [fact_row(each) for each in found.facts], FACT_STYLES)
    return 0


def entities(arguments: Namespace, screen: Screen) -> int:
    """List the entities."""
    with open_memory(arguments, screen) as memory:
        found = memory.entities.list(namespace=namespace_of(arguments), limit=arguments.limit)
    empty = "No entities yet. Tell the memory something: kg-memory ingest FILE"
    columns = ("name", "type", "also called", "last seen", "summary")
    screen.values(found, columns, [_entity_row(each) for each in found], FACT_STYLES, empty=empty)
    return 0


def episodes(arguments: Namespace, screen: Screen) -> int:
    """List the episodes."""
    with open_memory(arguments, screen) as memory:
        found = memory.episodes.list(namespace=namespace_of(arguments), limit=arguments.limit, status=arguments.status)
    rows: list[tuple[Cell, ...]] = [(each.at, each.speaker, each.content, place(each), _state(each)) for each in found]
    which = f"{arguments.status} episodes" if arguments.status else "episodes"
    empty = f"No {which}. Tell the memory something: kg-memory ingest FILE"
    columns: tuple[str, ...] = ("at", "by", "what", "source", "state")
    if arguments.ids:
        columns, rows = (*columns, "id"), [(*row, each.id) for row, each in zip(rows, found, strict=True)]
    screen.values(found, columns, rows, FACT_STYLES, empty=empty)
    return 0


def _state(episode: Episode) -> str:
    """Return how far *episode* got, and why no further."""
    at_step = f" at {episode.step}" if episode.step else ""
    why = f": {episode.reason}" if episode.reason else ""
    return f"{episode.status.value}{at_step}{why}"


def stats(arguments: Namespace, screen: Screen) -> int:
    """Count what a namespace holds, and name the others."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        counts = memory.stats(namespace=namespace)
        others = [each for each in memory.data.namespaces() if each != namespace]
    if screen.as_json:
        screen.json({"namespace": namespace, **counts.model_dump(), "other_namespaces": others})
        return 0
    named = {name.replace("_", " "): value for name, value in counts.model_dump().items()}
    screen.table(("what", "how many"), [("namespace", namespace), *named.items()], ("", "bold"))
    if counts.waiting:
        screen.note(f"{counted(counts.waiting, 'episode')} not read to the end: the next kg-memory ingest finishes it")
    if counts.reviews:
        waits = "waits" if counts.reviews == 1 else "wait"
        screen.note(f"{counted(counts.reviews, 'fact')} {waits} for review: {review_command(arguments)}")
    if others:
        screen.line(f"other namespaces: {', '.join(others)}", "dim")
    return 0


def reembed(arguments: Namespace, screen: Screen) -> int:
    """Compute the vectors of a namespace anew."""
    with open_memory(arguments, screen) as memory:
        screen.note("Computing all vectors anew: this takes a while, and searches still work ...")
        made = memory.data.reembed(namespace=namespace_of(arguments), progress=_now_and_then(screen))
    if screen.as_json:
        screen.json({"vectors": made})
    else:
        screen.line(f"{counted(made, 'vector')} made anew with the present embedding model.")
    return 0


def _now_and_then(screen: Screen) -> Callable[[int, int], None]:
    """Return what tells how many of how many are done, every few seconds."""
    shown = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            screen.note(f"{done} of {total}")

    return progress


def _entity_row(entity: Entity) -> tuple[Cell, ...]:
    return entity.name, entity.type, ", ".join(entity.aliases), entity.last_seen, entity.summary
