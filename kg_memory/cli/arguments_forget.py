"""The arguments of ``kg-memory forget`` and ``kg-memory audit``, and their help."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Command = Callable[..., argparse.ArgumentParser]

_FORGET = """\
What goes is shown first, and cannot be brought back: the text, and all that only it supports. What other messages say
too stays, as if this one had never been said. A fact goes with every message that states it, an entity with every one
that names it, the whole message. Then all is searched for what is left; the exit code is 1 where something is. The log
of it has no text: kg-memory audit.

examples:
  kg-memory episodes --ids
  kg-memory forget --episode 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11
  kg-memory forget --episode 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11 --span 10:24
  kg-memory forget --fact 7c2a91d4-0a55-5f0e-8f0e-3f8e2b7d4c10 --dry-run
  kg-memory forget --entity "Ann Smith" --reason "asked for, ticket 4711"
  kg-memory forget --everything -n ann --yes
"""
_AUDIT = """\
The log has no text of what was forgotten, and ids, names and namespaces only as salted hashes. Each entry has the hash
of the one before. That the end was not cut off shows only by a hash from a receipt, which you kept elsewhere.

examples:
  kg-memory audit
  kg-memory audit -n ann
  kg-memory audit verify --head HASH
"""


def add_forget(command: Command, add_limit: Callable[..., None]) -> None:
    """Add the commands that forget, and that tell what was forgotten."""
    about = "forget a message, a conversation, a person, a fact, or everything"
    forget = command("review", "forget", "forget:forget", about, _FORGET)
    what = forget.add_mutually_exclusive_group(required=True)
    what.add_argument("--episode", metavar="ID", help="a message: kg-memory episodes --ids shows the ids")
    what.add_argument("--thread", metavar="NAME", help="a conversation")
    what.add_argument("--entity", metavar="NAME", help="somebody or something, by a name or an id")
    what.add_argument("--speaker", metavar="NAME", help="all that somebody said")
    what.add_argument("--source", metavar="NAME", help="all that came from there")
    what.add_argument("--fact", metavar="ID", help="a fact: kg-memory facts NAME --ids shows the ids")
    what.add_argument("--everything", action="store_true", help="all that the namespace has")
    about = "with --episode: only these characters of it, counted from 0; END is not part of them"
    forget.add_argument("--span", type=_span, metavar="START:END", help=about)
    forget.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    about = "have the server rewrite its files without it (default: where it is the embedded one)"
    forget.add_argument("--erase", action=argparse.BooleanOptionalAction, help=about)
    about = "do not search all for what is left of it afterwards, which takes seconds at 10,000 facts"
    forget.add_argument("--no-search", dest="search", action="store_false", help=about)
    forget.add_argument("--by", metavar="NAME", help="who asks for it (default: your login name)")
    forget.add_argument("--reason", default="", metavar="TEXT", help="why; it is kept in the log")
    audit = command("review", "audit", "audit:audit", "list what was forgotten, or verify the log of it", _AUDIT)
    audit.add_argument("action", nargs="?", choices=("list", "verify"), default="list", help="default: list")
    audit.add_argument("--head", metavar="HASH", help="with verify: the hash that a receipt had, which must be there")
    add_limit(audit, "entries")


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no span: write START:END, such as 10:24")
    return int(start), int(end)
