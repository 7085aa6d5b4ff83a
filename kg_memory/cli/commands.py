"""The tables of all commands of ``kg-memory``, and of all their arguments."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

from kg_memory.cli.parser import (
    Option,
    action,
    build_parser,
    flag,
    names_at,
    option,
    parse_count,
    parse_span,
    read_options,
)
from kg_memory.plugins import plugin_names
from kg_memory.text import read_table

STATES = ("saved", "waiting", "working", "done", "failed", "skipped")
PLANS = ("economy", "standard", "thorough")
FORGOTTEN = ("episode", "thread", "entity", "speaker", "source", "fact", "everything")
"""The options of ``forget``, of which exactly one must be given."""
EITHER = (("as_of", "during"), ("template", "context"), ("one_at_a_time", "several"), FORGOTTEN)
"""Sets of options that exclude each other."""


_RECIPES = names_at("kg_memory.retrieval.recipe:RECIPES")
_TEMPLATES = names_at("kg_memory.retrieval.context.templates:TEMPLATES")
_FIELDS = names_at("kg_memory.models.filters:FIELDS")


def _describe_search() -> str:
    return f"""\
examples:
  kg-memory ask "小明住在哪里？" --during 2019..2021 --limit 3 --json
  kg-memory ask "Who moved?" --where '{{"speaker": "Ann", "said_at": {{"$gte": "2024-01-01"}}}}' --explain

recipes: {", ".join(_RECIPES())}
context templates: {", ".join(_TEMPLATES())}
filter fields, to combine with $and, $or and $not, and to compare with $eq, $ne, $in, $nin, $gt, $gte, $lt and $lte:
{", ".join(_FIELDS())}, labels.KEY
"""


def _origins() -> Sequence[str]:
    return ("kg-memory", *plugin_names("importers"))


_LIMIT = option("how many to list at most (default: 100)", type=parse_count, default=100)
_EARLIEST = option("how many to read at most, earliest first (default: all)", type=parse_count, default=None)
OPTIONS: Mapping[str, Option] = {
    **read_options(**read_table(__package__, "options.toml")),
    "as_of": option("only what was true at this time (default: now)", "TIME", "--on", "--as-of"),
    "by": option("who decides; stored with the decision (default: your login name)", "NAME", default=None),
    "canonical": option("the canonical name under which its facts are stored", "CANONICAL", "--as"),
    "center": option("search near this person or thing; may be repeated", "NAME", "--near", action="append"),
    "context": flag("the same as --template plain", dest="template", action="store_const", const="plain"),
    "days": option("how many days, up to today (default: 30)", type=parse_count, default=30),
    "erase": flag("rewrite the database files (default: only if embedded)", action=argparse.BooleanOptionalAction),
    "id": option("the id of a memory, as the list shows it", "ID", nargs="?"),
    "limit": option("how many at most", type=parse_count),
    "one_at_a_time": flag("a new value ends the previous one", dest="single_valued", default=None),
    "origin": option("the product that wrote the file", None, "--from", choices=_origins, default="kg-memory"),
    "plan": option("how thoroughly a model reads (default: the configured plan)", choices=PLANS),
    "reason": option("why; stored with the decision", "TEXT", default=""),
    "recipe": option("how to search and rank (default: default)", "NAME", choices=_RECIPES),
    "several": flag("several values may hold at once", dest="single_valued", action="store_false", default=None),
    "span": option("with --episode: only these characters, from 0", "START:END", type=parse_span, action="store"),
    "status": option("only episodes in this state", None, "--state", choices=STATES),
    "recall_from": option("search this namespace too; may be repeated", "NAME", action="append"),
    "steps": option("how many steps away, 1 to 6", type=parse_count),
    "template": option("print the context for a prompt in this format", "NAME", choices=_TEMPLATES),
    "to": option("the plan to read them by (default: the configured plan)", choices=PLANS[1:]),
    "with_text": option("a message that states the new fact", "TEXT", nargs=None),
    "ask.limit": option("how many (default: 5; for a context, as many as fit)", type=parse_count, default=None),
    "audit.action": action("list", "verify"),
    "changes.since": option("from this time on (default: a week ago)", "TIME", default="a week ago"),
    "communities.name": option("show the community with this id, or with a name that begins like this", nargs="?"),
    "deepen.limit": _EARLIEST,
    "evict.expired_days": option("evict facts that ended N (90) or more days ago", "N", nargs="?", const=90.0),
    "export.format": option("the format (default: jsonl)", choices=("jsonl", "graphml", "cytoscape"), default="jsonl"),
    "facts.as_of": option("only facts that held at that time (default: all)", "TIME", "--on", "--as-of"),
    "predicates.name": option("the predicate to show or correct", "NAME", nargs="?"),
    "predicates.limit": _LIMIT,
    "resume.limit": _EARLIEST,
    "retry.ids": option("the episodes to read (default: all that failed)", "ID", nargs="*"),
}  # fmt: skip
"""The arguments by name; ``"command.name"`` is for one command only."""

GROUPS = {
    group: [{"epilog": _describe_search} | row if row["name"] == "ask" else row for row in rows]
    for group, rows in read_table(__package__, "commands.toml").items()
}
"""The commands by the group that the help puts them in."""


def make_parser(*, only: frozenset[str] | None = None, commands_help: str = argparse.SUPPRESS) -> ArgumentParser:
    """Return the `argparse` parser of the command line ``kg-memory``, with all commands, also those of plug-ins.

    *only*: the commands whose own options are added, which takes time; None adds those of all. *commands_help*: the
    help text of the COMMAND argument, which only shell completion shows.
    """
    return build_parser(GROUPS, OPTIONS, EITHER, FORGOTTEN, only=only, commands_help=commands_help)
