"""``kg-memory retry``: what could not be read is read again."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.meter import Meter
from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.read_again import told
from kg_memory.cli.screen import Screen, counted


def retry(arguments: Namespace, screen: Screen) -> int:
    """Read again what failed, and what was skipped if asked; return 1 if any fails again."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        stats = memory.stats(namespace=namespace)
        total = len(arguments.ids) or stats.failed + (stats.skipped if arguments.skipped else 0)
        with Meter(total, screen) as meter:
            added = memory.episodes.retry(
                namespace=namespace, episodes=arguments.ids or None, skipped=arguments.skipped, progress=meter.progress
            )
    return told(
        added,
        screen,
        lambda read, failed: f"{counted(read, 'episode')} read, {counted(failed, 'episode')} failed again",
    )
