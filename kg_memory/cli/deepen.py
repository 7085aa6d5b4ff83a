"""``kg-memory deepen``: what a cheaper plan read is read again by a better one."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.meter import Meter
from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.read_again import told
from kg_memory.cli.screen import Screen, counted


def deepen(arguments: Namespace, screen: Screen) -> int:
    """Read again what was read with less care, or tell how many that would be; return 1 if any cannot be read."""
    namespace = namespace_of(arguments)
    how = {"namespace": namespace, "limit": arguments.limit, "skipped": arguments.skipped}
    with open_memory(arguments, screen) as memory:
        wanted = memory.episodes.deepen(arguments.to, dry_run=True, **how)
        if arguments.dry_run:
            if screen.as_json:
                screen.json({"episodes": len(wanted)})
            else:
                screen.line(f"{counted(len(wanted), 'episode')} would be read again")
            return 0
        facts = memory.stats(namespace=namespace).facts
        with Meter(len(wanted), screen) as meter:
            added = memory.episodes.deepen(arguments.to, progress=meter.progress, **how)
        facts = memory.stats(namespace=namespace).facts - facts
    return told(
        added, screen, lambda read, _: f"{counted(read, 'episode')} read again, {counted(facts, 'fact')} found anew"
    )
