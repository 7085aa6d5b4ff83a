"""The arguments of the commands that review, forget, evict, export and import."""

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


_VERDICTS = ("supersedes", "conflicts", "complements", "temporary", "unrelated")
_REVIEW = """\
A fact that contradicts another is believed at once only if the memory is sure of that; else it waits here, and no
answer has it unless --unreviewed asks for it. At a terminal one after the other is shown and decided by a key.
Who decided, when and why is kept, and can be undone. An ID may be shortened as long as it names only one.

examples:
  kg-memory review
  kg-memory review --list --json
  kg-memory review --decided
  kg-memory review --accept 3f2a --reason "she told me herself"
  kg-memory review --edit 3f2a --verdict complements --valid-at 2019-05
"""


def add_review(command: Command, add_limit: Callable[..., None]) -> None:
    """Add the commands ``review`` and ``predicates``."""
    review = command("review", "review", "review:review", "decide what memory was not sure enough to believe", _REVIEW)
    how = review.add_mutually_exclusive_group()
    how.add_argument("--list", action="store_true", help="list what waits (so it does where there is no terminal)")
    how.add_argument("--decided", action="store_true", help="list what was decided, the latest decision first")
    how.add_argument("--accept", metavar="ID", help="let the verdict take effect")
    how.add_argument("--reject", metavar="ID", help="do not believe the fact that waits")
    how.add_argument("--edit", metavar="ID", help="let it take effect with another verdict or other dates")
    how.add_argument("--undo", metavar="ID", help="undo the last decision about it")
    review.add_argument("--verdict", choices=_VERDICTS, help="with --edit: what the two facts are to each other")
    review.add_argument("--valid-at", metavar="TIME", help="with --edit: since when the fact that waits was so")
    review.add_argument("--invalid-at", metavar="TIME", help="with --edit: until when it was so, or open")
    review.add_argument("--by", metavar="NAME", help="who decides (default: your login name)")
    review.add_argument("--reason", default="", metavar="TEXT", help="why; it is kept with the decision")
    add_limit(review, "verdicts of the list")
    predicates = command(
        "review",
        "predicates",
        "show:predicates",
        "list the predicates, or correct one",
        'examples:\n  kg-memory predicates\n  kg-memory predicates "likes best" --as PREFERS\n'
        "  kg-memory predicates MANAGES --several",
    )
    predicates.add_argument("name", nargs="?", metavar="NAME", help="tell what is known of this one")
    predicates.add_argument("--as", dest="canonical", metavar="CANONICAL", help="the name under which it is kept")
    values = predicates.add_mutually_exclusive_group()
    one = values.add_argument("--one-at-a-time", action="store_true", default=None, help="a new value ends the last")
    values.add_argument("--several", action="store_false", dest=one.dest, help="several values may hold at a time")
    add_limit(predicates, "predicates")


def add_forget(command: Command, add_limit: Callable[..., None]) -> None:
    """Add the commands that forget, and that tell what was forgotten."""
    about = "forget a message, a conversation, a person, a fact, or everything"
    forget = command("review", "forget", "maintenance:forget", about, _FORGET)
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
    audit = command("review", "audit", "maintenance:audit", "list what was forgotten, or verify the log of it", _AUDIT)
    audit.add_argument("action", nargs="?", choices=("list", "verify"), default="list", help="default: list")
    audit.add_argument("--head", metavar="HASH", help="with verify: the hash that a receipt had, which must be there")
    add_limit(audit, "entries")


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no span: write START:END, such as 10:24")
    return int(start), int(end)


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
    evict = command("review", "evict", "maintenance:evict", about, _EVICT)
    what = "what is not believed any more and facts that have ended, for N days at least (default: 90)"
    evict.add_argument("--expired-days", type=float, nargs="?", const=DAYS, metavar="N", help=what)
    what = "entities without facts, or with none but such, last seen so long ago"
    evict.add_argument("--orphans", action="store_true", help=what)
    what = "all but N entities, those with the fewest facts first, with these"
    evict.add_argument("--max-entities", type=int, metavar="N", help=what)
    what = "messages that have expired; they are forgotten for good, with what only they support"
    evict.add_argument("--expired-episodes", action="store_true", help=what)
    evict.add_argument("--dry-run", action="store_true", help="tell what would go, and change nothing")


FORMS = ("jsonl", "graphml", "cytoscape")
ORIGINS = ("kg-memory", "graphiti", "mem0", "langmem")
_EXPORT = """\
The file has all that the namespace holds, as it is at one moment, and appears when it is whole; docs/export.md
describes it. A name that ends with .gz compresses. graphml and cytoscape are pictures to look at: entities, and
what is believed of them.

examples:
  kg-memory export ann.jsonl.gz -n ann
  kg-memory export - --no-embeddings | gzip > ann.jsonl.gz
  kg-memory export ann.graphml --format graphml
"""
_IMPORT = """\
Nobody sees a half of it: all of it is there at once, or nothing. A namespace that holds something is refused, unless
--replace lets it go. Without --namespace it is that of the export.

From others: Graphiti's graph comes with its dates, evidence and what ended what, and no model is asked. Mem0 and
LangMem keep sentences: they are read as messages are, or saved with --no-read.

examples:
  kg-memory import ann.jsonl.gz
  kg-memory import ann.jsonl.gz --namespace copy
  kg-memory import falkor://localhost:6379 --from graphiti --graph default_db
  kg-memory import neo4j.json --from graphiti --group ann
  kg-memory import mem0.json --from mem0 --group ann --namespace ann
"""


def add_transfer(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    export = command("set up", "export", "maintenance:export", "write all of a namespace into a file", _EXPORT)
    export.add_argument("file", metavar="FILE", help="the file, or - for the standard output")
    export.add_argument("--format", choices=FORMS, default=FORMS[0], help="how to write it (default: jsonl)")
    export.add_argument("--store", metavar="NAME", help="the items of the KGStore of that name, instead of a namespace")
    export.add_argument("--no-embeddings", action="store_true", help="leave the vectors out: an import makes them anew")
    about = "bring in an export, or the memory of another library"
    made = command("set up", "import", "maintenance:import_", about, _IMPORT)
    made.add_argument(
        "file", metavar="FILE", help="the file, - for the standard input, or the URL of Graphiti's server"
    )
    made.add_argument("--from", dest="origin", choices=ORIGINS, default=ORIGINS[0], help="what it is of")
    made.add_argument("--replace", action="store_true", help="let go of what the namespace holds")
    made.add_argument(
        "--no-embeddings", action="store_true", help="do not take the vectors of the file: make them anew"
    )
    made.add_argument("--graph", metavar="NAME", help="what Graphiti calls its graph (default: default_db)")
    about = "Graphiti's group_id, Mem0's user_id or LangMem's namespace (a/b) that is meant, where there are several"
    made.add_argument("--group", metavar="NAME", help=about)
    made.add_argument("--no-read", action="store_true", help="Mem0, LangMem: save, and let the next ingest read")
