"""The tables of all commands of ``kg-memory``, and of all their arguments."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

from kg_memory.cli.parser import Option, build_parser, flag, names_at, option, parse_count, read_options
from kg_memory.plugins import plugin_names
from kg_memory.text import read_table

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


OPTIONS: Mapping[str, Option] = {
    **read_options(**read_table(__package__, "options.toml")),
    # A TOML file cannot have None, types of Python and the names of plug-ins.
    "by": option("who decides; stored with the decision (default: your login name)", "NAME", default=None),
    "erase": flag("rewrite the database files (default: only if embedded)", action=argparse.BooleanOptionalAction),
    "one_at_a_time": flag("a new value ends the previous one", dest="single_valued", default=None),
    "origin": option("the product that wrote the file", None, "--from", choices=_origins, default="kg-memory"),
    "several": flag("several values may hold at once", dest="single_valued", action="store_false", default=None),
    "with_text": option("a message that states the new fact", "TEXT", nargs=None),
    "ask.limit": option("how many (default: 5; for a context, as many as fit)", type=parse_count, default=None),
}
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
