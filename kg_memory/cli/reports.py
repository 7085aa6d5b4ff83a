"""Print reports: a digest, a portrait of somebody, a handoff to the next session."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.command import namespace_of, open_to_look
from kg_memory.cli.output import Screen
from kg_memory.memory.report_values import Report


def digest(arguments: Namespace, screen: Screen) -> int:
    """Print what happened in a period, and what waits for a decision."""
    how = {"believed_at": arguments.believed_at, "limit": arguments.limit}
    with open_to_look(arguments, screen) as memory:
        report = memory.reports.digest(arguments.since, arguments.until, namespace=namespace_of(arguments), **how)
    return _print(report, arguments, screen)


def identity(arguments: Namespace, screen: Screen) -> int:
    """Print who somebody is, and what changed about them."""
    how = {"as_of": arguments.on, "believed_at": arguments.believed_at, "limit": arguments.limit}
    with open_to_look(arguments, screen) as memory:
        report = memory.reports.identity(arguments.about, arguments.since, namespace=namespace_of(arguments), **how)
    return _print(report, arguments, screen)


def handoff(arguments: Namespace, screen: Screen) -> int:
    """Print what the next session needs to go on."""
    how = {"as_of": arguments.on, "believed_at": arguments.believed_at, "limit": arguments.limit}
    with open_to_look(arguments, screen) as memory:
        report = memory.reports.handoff(arguments.thread, namespace=namespace_of(arguments), **how)
    return _print(report, arguments, screen)


def _print(report: Report, arguments: Namespace, screen: Screen) -> int:
    if screen.as_json or arguments.format == "json":
        screen.json(report.model_dump(mode="json"))
    else:
        for line in report.render(arguments.format).splitlines():
            screen.line(line)
    return 0
