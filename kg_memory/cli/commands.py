"""The tables of all commands of ``kg-memory``, and of all their arguments."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

from kg_memory.cli.parser import Command, Option, action, build_parser, flag, names_at, option, parse_count, parse_span
from kg_memory.plugins import plugin_names
from kg_memory.text import read_table

STATES = ("saved", "waiting", "working", "done", "failed", "skipped")
PLANS = ("economy", "standard", "thorough")
FORGOTTEN = ("episode", "thread", "entity", "speaker", "source", "fact", "everything")
"""The options of ``forget``, of which exactly one must be given."""
EITHER = (("as_of", "during"), ("template", "context"), ("one_at_a_time", "several"), FORGOTTEN)
"""Sets of options that exclude each other."""
_TELL_MORE = "Add a conversation: kg-memory ingest FILE"


_RECIPES = names_at("kg_memory.retrieval.recipe:RECIPES")
_TEMPLATES = names_at("kg_memory.retrieval.context.templates:TEMPLATES")
_FIELDS = names_at("kg_memory.models.filters:FIELDS")


def _describe_search() -> str:
    """Return the text at the end of the help of ``kg-memory ask``."""
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
_TEXTS = read_table(__package__, "options.toml")
OPTIONS: Mapping[str, Option] = {
    **{name: option(*texts) for name, texts in _TEXTS["options"].items()},
    **{name: flag(text) for name, text in _TEXTS["flags"].items()},
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

REMEMBER = (
    Command(
        "resume", "read the saved episodes that are not read yet", "maintenance:read_again",
        "episodes.resume", options="limit plan",
    ),
    Command(
        "retry", "read the failed episodes again", "maintenance:read_again", "episodes.retry", "ids", "skipped",
        "kg-memory episodes --state failed --ids lists them. Answers of a model so far are not paid for again.\n",
    ),
    Command(
        "deepen", "read episodes again that were read by a cheaper plan", "maintenance:read_again",
        "episodes.deepen", options="to limit skipped dry_run",
        epilog="Plans, cheapest first: offline, economy, standard, thorough. Facts that are not found again stay.\n",
    ),
    Command(
        "ask", "answer a question from the memory, with dates and sources", "ask:ask", "search", "question",
        "as_of during believed_at unreviewed center asker where recipe recall_from template context explain limit",
        _describe_search,
    ),
    Command(
        "facts", "list facts, all or about one person or thing, newest first", "show:show_facts", "facts.list", "about",
        "as_of during believed_at unreviewed where limit after ids",
        'example:\n  kg-memory facts Ann --during "last year" --believed-at 2024-06-01\n',
    ),
    Command(
        "around", "list the entities and facts around a person or thing", "show:show_around",
        "entities.around", "name", "steps as_of during believed_at limit",
        empty="No entity is called {name!r}. kg-memory entities lists the known names.",
    ),
    Command(
        "communities", "list or show the communities of entities, and their summaries", "show:show_communities",
        "communities.list", "name", "level limit refresh full",
        empty="No communities: kg-memory communities --refresh finds them.",
    ),
    Command(
        "episodes", "list the messages, texts and records as they came in", "show:show_result",
        "episodes.list", options="status limit ids", empty=f"No such episodes. {_TELL_MORE}",
    ),
    Command("stats", "count the content of the namespace", "show:show_stats"),
    Command("pause", "remember nothing new until unpause; reading goes on", "maintenance:pause"),
    Command("unpause", "remember again from now on", "maintenance:pause"),
    Command("sleep", "put a namespace to sleep, to free memory; its next use wakes it", "maintenance:sleep"),
    Command("wake", "wake a namespace that sleeps, as any other use does", "maintenance:sleep"),
    Command("usage", "list the cost of reading, day by day", "show:show_usage", options="days"),
)  # fmt: skip
LOOK_BACK = (
    Command(
        "history", "list the periods of an entity's facts, newest first", "show:show_facts",
        "facts.history", "name predicate", "believed_at limit ids",
    ),
    Command(
        "timeline", "list the beginnings and ends of an entity's facts, earliest first", "show:show_facts",
        "facts.timeline", "name", "believed_at limit",
    ),
    Command(
        "changes", "list facts that were learned, ended, corrected, retracted, restored or doubted",
        "show:show_result", "facts.changes", options="since until limit",
        epilog="Times say when the memory learned of a change, not when it happened in the world.\n",
        empty="Nothing changed since {since}. --since looks further back, as in --since 'last year'.",
    ),
    Command(
        "evolution", "list the facts that a fact replaced and was replaced by", "show:show_result",
        "facts.evolution", "fact", "ids", empty="This fact is not believed, and no fact replaced it.",
    ),
    Command(
        "consequences", "list the facts that depend on a fact, and which of them are doubtful", "show:show_result",
        "facts.consequences", "fact", "as_of believed_at limit ids", empty="No fact depends on this fact.",
    ),
    Command(
        "conflicts", "list the facts that cannot both be true, and the decisions", "show:show_result",
        "reviews.conflicts", options="limit", empty="No facts contradict each other.",
    ),
    Command(
        "verdicts", "list the verdicts: how new facts relate to existing ones", "show:show_result",
        "reviews.verdicts", "fact", "limit", empty="There are no verdicts.",
    ),
)  # fmt: skip
REVIEW = (
    Command(
        "predicates", "list the predicates, or correct one", "show:show_predicates",
        "predicates.update", "name", "canonical one_at_a_time several limit",
        'examples:\n  kg-memory predicates "likes best" --as PREFERS\n  kg-memory predicates MANAGES --several\n',
        empty="No predicates were learned yet. Built-in ones, such as LIVES_IN, are not listed.",
    ),
    Command(
        "forget", "forget a message, a conversation, a person, a fact, or everything", "maintenance:forget",
        "privacy.forget", "", f"{' '.join(FORGOTTEN)} span by reason dry_run yes erase search",
        """\
You see first what would be deleted; deleting cannot be undone. A fact is deleted with every message that states it, an
entity with every message that names it. The exit code is 1 if a trace is left. docs/forgetting.md has the details.
""",
    ),
    Command(
        "audit", "list the log of forgetting, or verify it", "maintenance:audit",
        "privacy.audit", "action", "limit head", empty="Nothing was forgotten so far.",
        epilog="The log has no forgotten text, and ids and names only as salted hashes.\n",
    ),
    Command(
        "evict", "make room: remove ended facts and entities without facts", "maintenance:evict",
        "privacy.evict", options="expired_days orphans max_entities expired_episodes dry_run",
        epilog="Nothing is evicted unless an option asks for it. docs/eviction.md describes the effects.\n",
    ),
)  # fmt: skip
SET_UP = (
    Command("namespaces", "list the namespaces, and the size of each", "show:show_namespaces"),
    Command("reembed", "compute all vectors again, after a change of the embedding model", "maintenance:reembed"),
    Command(
        "export", "write the content of a namespace into a file", "maintenance:export",
        words="file", options="format store no_embeddings",
        epilog="A name that ends with .gz compresses. docs/export.md describes the formats.\n",
    ),
    Command(
        "import", "read an export, or the memory of another library", "maintenance:import_",
        words="file", options="origin replace no_embeddings group no_read",
        epilog="""\
An export is imported whole or not at all: into an empty namespace or with --replace, by default the one it came from.
Records of other memories are added to what the namespace has. docs/moving_in.md describes the files.
  kg-memory import mem0.json --from mem0 --group ann --namespace ann
"""
    ),
)  # fmt: skip
GROUPS: Mapping[str, Sequence[Command]] = {
    "remember and ask": REMEMBER,
    "look back": LOOK_BACK,
    "review": REVIEW,
    "set up": SET_UP,
}


def make_parser(*, only: frozenset[str] | None = None, commands_help: str = argparse.SUPPRESS) -> ArgumentParser:
    """Return the `argparse` parser of the command line ``kg-memory``, with all commands, also those of plug-ins.

    *only*: the commands whose own options are added, which takes time; None adds those of all. *commands_help*: the
    help text of the COMMAND argument, which only shell completion shows.
    """
    return build_parser(GROUPS, OPTIONS, EITHER, FORGOTTEN, only=only, commands_help=commands_help)
