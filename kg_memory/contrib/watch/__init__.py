"""The command ``kg-memory watch``: follow a namespace live, whichever process writes to it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from kg_memory.cli.parser import parse_count


def add_command(command: Callable[..., ArgumentParser]) -> None:
    """Add ``watch``, made by *command*."""
    about = "follow new, waiting and failed episodes and new facts, live"
    example = "example:\n  kg-memory watch --json | jq .event\n"
    made = command("watch", "kg_memory.contrib.watch.command:watch", about, example, group="look back")
    made.add_argument("--once", action="store_true", help="show the present state, and end")
    about = "how often to look (default: 2)"
    made.add_argument("--interval", metavar="SECONDS", type=parse_count, default=2, help=about)
    made.add_argument("--since", metavar="TIME", help="show also events since then (default: now)")
    about = "how many unread episodes at first (default: 10)"
    made.add_argument("--limit", type=parse_count, default=10, help=about)
