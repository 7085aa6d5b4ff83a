"""The arguments of ``kg-memory evict``, and its help."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_EVICT = """\
Nothing goes that is not asked for. What is so now, or was in the last N days, is told as before, unless
--max-entities lets it go. Messages stay as they were said; what is evicted is not found any more, and comes back
when it is told anew.

examples:
  kg-memory evict --expired-days 90 --orphans --dry-run
  kg-memory evict --expired-days 90 --expired-episodes
  kg-memory evict --max-entities 50000
"""
DAYS = 90.0


def add_evict(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "make room: let go of what is over, or of which nothing is known"
    evict = command("review", "evict", "evict:evict", about, _EVICT)
    what = "what is not believed any more and facts that have ended, for N days at least (default: 90)"
    evict.add_argument("--expired-days", type=float, nargs="?", const=DAYS, metavar="N", help=what)
    what = "entities without facts, or with none but such, last seen so long ago"
    evict.add_argument("--orphans", action="store_true", help=what)
    what = "all but N entities, those with the fewest facts first, with these"
    evict.add_argument("--max-entities", type=int, metavar="N", help=what)
    what = "messages that have expired; they are forgotten for good, with what only they support"
    evict.add_argument("--expired-episodes", action="store_true", help=what)
    evict.add_argument("--dry-run", action="store_true", help="tell what would go, and change nothing")
