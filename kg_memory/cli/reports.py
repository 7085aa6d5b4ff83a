"""Print reports: a digest, a portrait of somebody, a handoff to the next session."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kg_memory.cli.command import explain_no_namespace, namespace_of, open_to_look
from kg_memory.cli.output import Screen
from kg_memory.memory.report_values import Report

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory


def digest(arguments: Namespace, screen: Screen) -> int:
    """Print what happened in a period, and what waits for a decision."""
    period = arguments.since, arguments.until
    return _print(lambda memory, how: memory.reports.digest(*period, **how), arguments, screen)


def identity(arguments: Namespace, screen: Screen) -> int:
    """Print who somebody is, and what changed about them."""
    about = arguments.about, arguments.since
    return _print(lambda memory, how: memory.reports.identity(*about, as_of=arguments.on, **how), arguments, screen)


def handoff(arguments: Namespace, screen: Screen) -> int:
    """Print what the next session needs to go on."""
    thread = arguments.thread
    return _print(lambda memory, how: memory.reports.handoff(thread, as_of=arguments.on, **how), arguments, screen)


def _print(make: Callable[[GraphMemory, dict[str, Any]], Report], arguments: Namespace, screen: Screen) -> int:
    as_json = screen.as_json or arguments.format == "json"
    how = {"believed_at": arguments.believed_at, "limit": arguments.limit, "namespace": namespace_of(arguments)}
    with open_to_look(arguments, screen) as memory:
        if not as_json and (missing := explain_no_namespace(memory, arguments)):
            screen.line(missing)
            return 0
        report = make(memory, how)
    if as_json:
        screen.json(report.model_dump(mode="json"))
    else:
        for line in report.render(arguments.format).splitlines():
            screen.line(line)
    return 0
