"""Reports of a memory: a digest of recent events, a portrait of a person, and notes for the next session.

This module defines the commands ``digest``, ``identity`` and ``handoff``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from kg_memory.cli.command import explain_no_namespace, open_to_look, verb_arguments
from kg_memory.cli.output import Screen

if TYPE_CHECKING:
    from kg_memory.contrib.reports.values import Report

_RUN, _VERBS = "kg_memory.contrib.reports:show_report", "kg_memory.contrib.reports.reports:Reports"
_REPORTS = (
    ("digest", "report recent events, and the decisions that wait for you", "", "since until believed_at limit"),
    ("identity", "describe a person (default: the most frequent speaker)", "about", "since as_of believed_at limit"),
    ("handoff", "report what the next session or agent needs to continue", "", "thread as_of believed_at limit"),
)
"""Name, help, positional arguments and options of each command."""


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """Add the commands ``kg-memory digest``, ``identity`` and ``handoff`` to the command line."""
    for name, about, words, options in _REPORTS:
        example = f"example:\n  kg-memory {name} --format markdown > {name}.md\n"
        how = {"group": "look back", "verb": f"{_VERBS}.{name}", "words": words, "options": options}
        made = command(name, _RUN, about, example, **how)
        made.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")


def show_report(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory digest``, ``identity`` or ``handoff``: print the report, and return the exit code.

    The report is printed as text, JSON or Markdown.
    """
    as_json = screen.as_json or arguments.format == "json"
    with open_to_look(arguments, screen) as memory:
        if not as_json and (missing := explain_no_namespace(memory, arguments)):
            screen.line(missing)
            return 0
        make: Callable[..., Report] = getattr(memory.reports, arguments.command.name)
        report = make(**verb_arguments(memory, arguments))
    if as_json:
        screen.json(report.model_dump(mode="json"))
    else:
        for line in report.render(arguments.format).splitlines():
            screen.line(line)
    return 0
