"""The commands ``digest``, ``identity`` and ``handoff``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kg_memory.cli import shared
from kg_memory.cli.command import explain_no_namespace, namespace_of, open_to_look
from kg_memory.cli.output import Screen

if TYPE_CHECKING:
    from kg_memory.contrib.reports.values import Report
    from kg_memory.memory.memory import GraphMemory

DIGEST_EPILOG = """\
examples:
  kg-memory digest
  kg-memory digest --since "last month" --format markdown > digest.md

Each thing to decide is shown with the command that decides it.
"""
IDENTITY_EPILOG = """\
examples:
  kg-memory identity --format markdown > identity.md
  kg-memory identity Ann --since 2024-05-01
"""
HANDOFF_EPILOG = """\
examples:
  kg-memory handoff
  kg-memory handoff --thread release --format markdown > HANDOFF.md
"""
RUN = "kg_memory.contrib.reports.command"


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """Add ``digest``, ``identity`` and ``handoff``, each made by *command*."""
    form = shared.parent()
    form.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")
    options = form, shared.believed()
    about = "tell what happened lately, and what waits for your decision"
    digest = command("digest", f"{RUN}:digest", about, DIGEST_EPILOG, *options, shared.limit("of each", 20))
    digest.add_argument("--since", metavar="TIME", default="last week", help="from this time on (default: last week)")
    digest.add_argument("--until", metavar="TIME", help="before this time (default: now)")
    about = "tell who somebody is, and what changed about them"
    identity = command("identity", f"{RUN}:identity", about, IDENTITY_EPILOG, *options, shared.limit("of each", 50))
    identity.add_argument("about", nargs="?", metavar="NAME", help="a name (default: the person who said most)")
    identity.add_argument("--since", metavar="TIME", default="last month", help="changes since (default: last month)")
    about = "tell what the next session or agent needs to go on"
    handoff = command("handoff", f"{RUN}:handoff", about, HANDOFF_EPILOG, *options, shared.limit("of each", 10))
    handoff.add_argument("--thread", metavar="NAME", help="only this conversation")
    for report in (identity, handoff):
        report.add_argument("--on", "--as-of", dest="on", metavar="TIME", help="how it was then (default: now)")


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
