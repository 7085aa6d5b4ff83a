"""Define the arguments of each command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kg_memory import __version__
from kg_memory.cli import help_texts as texts
from kg_memory.cli import shared
from kg_memory.cli.argument_types import parse_count, parse_date, parse_span, parse_where
from kg_memory.plugins import load_plugin, load_plugins, plugin_names

Command = Callable[..., argparse.ArgumentParser]

_ABOUT = "Long-term memory for LLM agents: a temporal knowledge graph in FalkorDB, made from conversations."
PLANS = ("economy", "standard", "thorough")
STATES = ("saved", "waiting", "working", "done", "failed", "skipped")
VERDICTS = ("supersedes", "conflicts", "complements", "temporary", "unrelated")
FORMS = ("jsonl", "graphml", "cytoscape")
DAYS = 90.0
_GROUPS = ("remember and ask", "look back", "review", "set up", "serve and evaluate")


def parser(*, commands_help: str = argparse.SUPPRESS) -> argparse.ArgumentParser:
    """Return the parser; each command carries in `run` the function that does it.

    The description lists the commands in groups, so argparse lists them only if there is a *commands_help*.
    """
    common = shared.common()
    top = argparse.ArgumentParser(
        "kg-memory",
        usage="kg-memory COMMAND [...] [options]",
        epilog=texts.START,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"kg-memory {__version__}")
    commands = top.add_subparsers(prog="kg-memory", metavar="COMMAND", required=True, help=commands_help)
    listed: dict[str, list[str]] = {group: [] for group in _GROUPS}

    def command(
        group: str, name: str, run: str, about: str, epilog: str = "", *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        listed[group].append(f"  {name:<12} {about}")
        made = commands.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog=epilog,
            parents=[common, *parents],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    groups = (_add_remember_and_ask, _add_look_back, _add_review, _add_set_up, _add_plugins)
    for group, add in zip(_GROUPS, groups, strict=True):
        add(partial(command, group))
    lists = ("\n".join((f"{heading}:", *lines)) for heading, lines in listed.items())
    top.description = "\n\n".join((_ABOUT, *lists, "kg-memory COMMAND --help has more of each, with examples."))
    return top


def _add_remember_and_ask(command: Command) -> None:
    _add_reading(command)
    _add_ask(command)
    _add_lists(command)


def _add_reading(command: Command) -> None:
    about = "remember the conversations, texts and records in files"
    ingest = command("ingest", "ingest:ingest", about, texts.INGEST)
    readers = load_plugin("readers", "files")
    ingest.add_argument("files", nargs="+", type=Path, metavar="FILE")
    ingest.add_argument("--format", choices=readers.FORMATS, help="the format, where it is not recognised")
    about = "remember JSON as records, whatever it looks like"
    ingest.add_argument("--records", action="store_const", dest="format", const="records", help=about)
    about = "the order of day, month and year in a WhatsApp chat, where the chat does not tell"
    ingest.add_argument("--date-order", choices=readers.DATE_ORDERS, help=about)
    ingest.add_argument("--at", type=parse_date, metavar="TIME", help="when undated content was said (default: now)")
    ingest.add_argument("--strict", action="store_true", help="refuse a file with a line that cannot be read")
    ingest.add_argument(
        "--dry-run", action="store_true", help="tell what is in the files and what it will cost, and remember nothing"
    )
    about = "how much a model is asked: economy, of several messages at once, standard (default), or thorough"
    ingest.add_argument("--plan", choices=PLANS, help=about)
    ingest.add_argument("--ontology", metavar="NAME", help="what to look for: memoryd, zeph, or a TOML file")
    ingest.add_argument(
        "--namespace-per-conversation",
        action="store_true",
        help="keep the conversations of a file apart: each in NAMESPACE/<its name>",
    )
    _add_declare(command)
    about = "read what is saved, but not read to the end"
    rest = command("resume", "ingest:resume", about, texts.RESUME)
    rest.add_argument("--plan", choices=PLANS, help="how much a model is asked (default: the plan that is set)")
    rest.add_argument("--limit", type=parse_count, help="how many at most, the earliest first (default: all)")
    again = command("retry", "ingest:retry", "read again what could not be read", texts.RETRY)
    again.add_argument("ids", nargs="*", metavar="ID", help="the episodes that are meant (default: all that failed)")
    about = "read again, with more care, what was read by a cheaper plan"
    deeper = command("deepen", "ingest:deepen", about, texts.DEEPEN)
    deeper.add_argument("--to", choices=PLANS[-2:], help="the plan to read by (default: the one that is set)")
    deeper.add_argument("--limit", type=parse_count, help="how many at most, the earliest first (default: all)")
    for made in (again, deeper):
        made.add_argument("--skipped", action="store_true", help="also what was not read as there is nothing in it")
    deeper.add_argument("--dry-run", action="store_true", help="tell how many they are, and change nothing")


def _add_declare(command: Command) -> None:
    made = command("declare", "declare:declare", "state facts that you know, without a model", texts.DECLARE)
    made.add_argument("words", nargs="*", metavar="WORD", help="SUBJECT PREDICATE, and any number of OBJECTs")
    made.add_argument("--file", type=Path, metavar="FILE", help="state the facts of a CSV, TSV, JSONL or JSON file")
    made.add_argument("--mapping", type=Path, metavar="FILE", help="JSON that says which facts a record of it states")
    made.add_argument("--valid-at", metavar="TIME", help="since when it is so: 2024-05-01, 2024-05, 2024")
    made.add_argument("--invalid-at", metavar="TIME", help="when it ceased to be so")
    made.add_argument("--at", metavar="TIME", help="when it was stated (default: now)")
    made.add_argument("--sentence", metavar="TEXT", help="the fact in words (default: made of the triple)")
    made.add_argument("--source", metavar="NAME", help="where it comes from (default, of a file: its name)")
    made.add_argument("--source-id", metavar="ID", help="its id there; the same id is stored once")
    made.add_argument("--confidence", type=float, metavar="N", help="how sure it is, 0 to 1 (default: 1)")
    made.add_argument("--trust", type=float, metavar="N", help="how far its source is believed, 0 to 1 (default: 1)")
    for name, what in (("subject", "the subject is, such as Person"), ("object", "the objects are")):
        made.add_argument(f"--{name}-type", metavar="TYPE", help=f"what {what}")
    made.add_argument("--rests-on", action="append", metavar="FACT_ID", help="a fact without which it is doubtful")


def _add_ask(command: Command) -> None:
    about = "answer a question from what is remembered, with dates and sources"
    times = shared.times("what was so at that time (default: now)")
    ask = command("ask", "ask:ask", about, texts.ASK, times, shared.unreviewed())
    ask.add_argument("question", help="a question, in quotes; what fits time words in it comes first")
    ask.add_argument(
        "--where", type=parse_where, metavar="JSON", help='only what passes this filter: {"speaker": "Ann"}'
    )
    ask.add_argument("--asker", metavar="NAME", help="who asks: whom I and my in the question mean")
    ask.add_argument("--near", action="append", metavar="NAME", help="look near this person or thing; may be repeated")
    about = "how to search and rank (default: default)"
    ask.add_argument("--recipe", choices=texts.RECIPES, metavar="NAME", help=about)
    form = ask.add_mutually_exclusive_group()
    form.add_argument(
        "--template", choices=texts.TEMPLATES, metavar="NAME", help="print the context for a prompt, so written"
    )
    form.add_argument(
        "--context", dest="template", action="store_const", const="plain", help="the same as --template plain"
    )
    about = "tell which time was asked about and why, what found each thing, its scores, and what was left out"
    ask.add_argument("--explain", action="store_true", help=about)
    about = "how many facts and lines (default: 5, and for a context what there is room for)"
    ask.add_argument("--limit", type=parse_count, help=about)


def _add_lists(command: Command) -> None:
    about = "list what is known, of somebody or something or of all, newest first"
    times = shared.times("only what was so at that time")
    facts = command(
        "facts", "show:facts", about, texts.FACTS, times, shared.unreviewed(), shared.limit("facts"), shared.ids()
    )
    facts.add_argument("name", nargs="?", help="a name, as in the list of entities, or an id (default: all)")
    facts.add_argument(
        "--where", type=parse_where, metavar="JSON", help='only what passes this filter: {"speaker": "Ann"}'
    )
    facts.add_argument("--after", metavar="CURSOR", help="the next page: what the page before says at its end")
    about = "list what lies around somebody or something, step by step"
    times = shared.times("by what was so at that time (default: now)")
    around = command("around", "show:around", about, texts.AROUND, shared.name(), times, shared.limit("facts"))
    around.add_argument("--steps", type=parse_count, default=2, help="how far, 1 to 6 (default: 2)")
    _add_entities(command)
    about = "list or show what belongs together, and what it is about"
    communities = command("communities", "show:communities", about, texts.COMMUNITIES, shared.limit("communities"))
    communities.add_argument("name", nargs="?", help="show the one with this id, or whose name begins so")
    communities.add_argument("--svg", type=Path, metavar="FILE", help="draw the one that is shown")
    communities.add_argument("--level", type=int, help="only those of this level; 0 are those of entities")
    communities.add_argument("--refresh", action="store_true", help="find them anew first")
    communities.add_argument("--full", action="store_true", help="with --refresh: as if there were none yet")
    about = "list the messages, texts and records as they came in"
    episodes = command("episodes", "show:episodes", about, "", shared.limit("episodes"), shared.ids("episodes"))
    episodes.add_argument("--state", choices=STATES, dest="status", help="only those that got so far")
    _add_saved(command)
    command("stats", "show:stats", "count what is remembered")
    command("pause", "maintenance:pause", "remember nothing new until unpause; reading goes on")
    command("unpause", "maintenance:unpause", "remember again what comes from now on")
    usage = command("usage", "ingest:usage", "list what reading cost, day by day")
    usage.add_argument("--days", type=parse_count, default=30, help="how many days, up to today (default: 30)")


def _add_saved(command: Command) -> None:
    about = "list the saved memories; show the source of one, delete it, turn saving off and on"
    saved = command(
        "saved", "saved:saved", about, texts.SAVED, shared.person("asks for it", "in the log"), shared.limit("memories")
    )
    actions = ("list", "source", "delete", "off", "on")
    saved.add_argument("action", nargs="?", choices=actions, default="list", help="default: list")
    saved.add_argument("id", nargs="?", metavar="ID", help="of a memory, as the list shows it")
    saved.add_argument("--about", metavar="NAME", help="with list: only those about this person or thing")
    saved.add_argument("--after", metavar="CURSOR", help="with list: the next page")
    saved.add_argument("--dry-run", action="store_true", help="with delete: show what would go, and change nothing")
    saved.add_argument("--yes", action="store_true", help="with delete: do not ask")


def _add_entities(command: Command) -> None:
    about = "list the people, places and things; merge or split them"
    parents = (shared.person("decides", "with the decision"), shared.limit("entities"), shared.ids("entities"))
    entities = command("entities", "identities:entities", about, texts.ENTITIES, *parents)
    actions = ("list", "merge", "split", "undo", "decisions")
    entities.add_argument("action", nargs="?", choices=actions, help="default: list")
    entities.add_argument("names", nargs="*", metavar="NAME", help="merge: the one to keep first; undo: an ID")
    about = "with split: a fact of the other one; kg-memory facts NAME --ids shows the ids"
    entities.add_argument("--fact", dest="facts", action="append", metavar="ID", help=about)
    about = "with split: a message that is about the other one; kg-memory episodes --ids shows the ids"
    entities.add_argument("--episode", dest="episodes", action="append", metavar="ID", help=about)
    entities.add_argument("--as", dest="new_name", metavar="NAME", help="with split: the name of the other one")
    entities.add_argument("--type", metavar="TYPE", help="with split: its type")


def _add_look_back(command: Command) -> None:
    about = "list the periods of what somebody was, did or had, newest first"
    history = command(
        "history",
        "show:history",
        about,
        texts.HISTORY,
        shared.name(),
        shared.believed(),
        shared.limit("periods"),
        shared.ids(),
    )
    history.add_argument("predicate", nargs="?", help='only this relation, in any wording: "lives in", RESIDES_IN')
    about = "list what began and ended, earliest first"
    command(
        "timeline", "show:timeline", about, texts.TIMELINE, shared.name(), shared.believed(), shared.limit("periods")
    )
    about = "list what was learned, ended, corrected, retracted, restored or doubted"
    changes = command("changes", "show:changes", about, texts.CHANGES, shared.limit("changes", 1000))
    changes.add_argument("--since", metavar="TIME", help="from this time on (default: a week ago)")
    changes.add_argument("--until", metavar="TIME", help="before this time (default: now)")
    evolution = command(
        "evolution", "verdicts:evolution", "list what took the place of what", texts.EVOLUTION, shared.ids()
    )
    about, parents = "list what rests on a fact, with its doubts", (shared.believed(), shared.limit("facts", 1000))
    resting = command("consequences", "verdicts:consequences", about, texts.CONSEQUENCES, *parents, shared.ids())
    resting.add_argument("--on", "--as-of", dest="on", metavar="TIME", help="how it stood then (default: now)")
    for of_one in (evolution, resting):
        of_one.add_argument("fact", metavar="FACT_ID", help="the id of a fact: kg-memory facts NAME --ids shows them")
    about = "list the facts that cannot both be true, and how that was settled"
    command("conflicts", "verdicts:conflicts", about, "", shared.limit("conflicts"))
    verdicts = command("verdicts", "verdicts:verdicts", "list what was judged of facts", "", shared.limit("verdicts"))
    verdicts.add_argument("fact", metavar="FACT_ID", nargs="?", help="only verdicts about this fact")
    about = "follow what comes, waits, fails and is learned, live"
    watch = command(
        "watch", "watch:watch", about, texts.WATCH, shared.limit("episodes that are not read, at first", 10)
    )
    watch.add_argument("--once", action="store_true", help="tell how it stands now, and end")
    watch.add_argument(
        "--interval", type=parse_count, default=2, metavar="SECONDS", help="how often to look (default: 2)"
    )
    watch.add_argument("--since", metavar="TIME", help="tell also what came since then (default: now)")


def _add_review(command: Command) -> None:
    parents = (shared.person("decides", "with the decision"), shared.limit("verdicts of the list"))
    about = "decide what memory was not sure enough to believe"
    review = command("review", "review:review", about, texts.REVIEW, *parents)
    how = review.add_mutually_exclusive_group()
    how.add_argument("--list", action="store_true", help="list what waits (so it does where there is no terminal)")
    how.add_argument("--decided", action="store_true", help="list what was decided, the latest decision first")
    how.add_argument("--accept", metavar="ID", help="let the verdict take effect")
    how.add_argument("--reject", metavar="ID", help="do not believe the fact that waits")
    how.add_argument("--edit", metavar="ID", help="let it take effect with another verdict or other dates")
    how.add_argument("--undo", metavar="ID", help="undo the last decision about it")
    review.add_argument("--verdict", choices=VERDICTS, help="with --edit: what the two facts are to each other")
    review.add_argument("--valid-at", metavar="TIME", help="with --edit: since when the fact that waits was so")
    review.add_argument("--invalid-at", metavar="TIME", help="with --edit: until when it was so, or open")
    for name, about in (("retract", "believe a fact no more"), ("replace", "let what a text states replace a fact")):
        made = command(name, f"verdicts:{name}", about, texts.RETRACT, shared.person("decides", "with the decision"))
        made.add_argument("fact", metavar="FACT_ID", help="the id of a fact: kg-memory facts NAME --ids shows them")
    made.add_argument("text", metavar="TEXT", help="a message that states the new fact")
    about = "list the predicates, or correct one"
    predicates = command("predicates", "show:predicates", about, texts.PREDICATES, shared.limit("predicates"))
    predicates.add_argument("name", nargs="?", metavar="NAME", help="tell what is known of this one")
    predicates.add_argument("--as", dest="canonical", metavar="CANONICAL", help="the name under which it is kept")
    values = predicates.add_mutually_exclusive_group()
    one = values.add_argument("--one-at-a-time", action="store_true", default=None, help="a new value ends the last")
    values.add_argument("--several", action="store_false", dest=one.dest, help="several values may hold at a time")
    _add_forget(command)
    about = "list what was forgotten, or verify the log of it"
    audit = command("audit", "maintenance:audit", about, texts.AUDIT, shared.limit("entries"))
    audit.add_argument("action", nargs="?", choices=("list", "verify"), default="list", help="default: list")
    audit.add_argument("--head", metavar="HASH", help="with verify: the hash that a receipt had, which must be there")
    _add_evict(command)


def _add_forget(command: Command) -> None:
    about = "forget a message, a conversation, a person, a fact, or everything"
    forget = command("forget", "maintenance:forget", about, texts.FORGET, shared.person("asks for it", "in the log"))
    what = forget.add_mutually_exclusive_group(required=True)
    what.add_argument("--episode", metavar="ID", help="a message: kg-memory episodes --ids shows the ids")
    what.add_argument("--thread", metavar="NAME", help="a conversation")
    what.add_argument("--entity", metavar="NAME", help="somebody or something, by a name or an id")
    what.add_argument("--speaker", metavar="NAME", help="all that somebody said")
    what.add_argument("--source", metavar="NAME", help="all that came from there")
    what.add_argument("--fact", metavar="ID", help="a fact: kg-memory facts NAME --ids shows the ids")
    what.add_argument("--everything", action="store_true", help="all that the namespace has")
    about = "with --episode: only these characters of it, counted from 0; END is not part of them"
    forget.add_argument("--span", type=parse_span, metavar="START:END", help=about)
    forget.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    about = "have the server rewrite its files without it (default: where it is the embedded one)"
    forget.add_argument("--erase", action=argparse.BooleanOptionalAction, help=about)
    about = "search everything for its words, names and vectors afterwards, which takes seconds at 10,000 facts"
    forget.add_argument("--search", action="store_true", help=about)


def _add_evict(command: Command) -> None:
    about = "make room: let go of what is over, or of which nothing is known"
    evict = command("evict", "maintenance:evict", about, texts.EVICT)
    what = "what is not believed any more and facts that have ended, for N days at least (default: 90)"
    evict.add_argument("--expired-days", type=float, nargs="?", const=DAYS, metavar="N", help=what)
    what = "entities without facts, or with none but such, last seen so long ago"
    evict.add_argument("--orphans", action="store_true", help=what)
    what = "all but N entities, those with the fewest facts first, with these"
    evict.add_argument("--max-entities", type=int, metavar="N", help=what)
    what = "messages that have expired; they are forgotten for good, with what only they support"
    evict.add_argument("--expired-episodes", action="store_true", help=what)
    evict.add_argument("--dry-run", action="store_true", help="tell what would go, and change nothing")


def _add_set_up(command: Command) -> None:
    made = command("init", "init:init", "ask for model, database and namespace, try them, and write .env", texts.INIT)
    made.add_argument("--yes", action="store_true", help="do not ask: take the options and the defaults")
    made.add_argument("--database", metavar="URL", help="embedded (default), or falkor://[user:password@]host:port")
    about = "a server that speaks OpenAI's protocol, such as http://localhost:11434/v1"
    made.add_argument("--base-url", metavar="URL", help=about)
    made.add_argument("--force", action="store_true", help="with --yes: also where .env exists, or something is wrong")
    command("setup", "setup:setup", "fetch FalkorDB for the embedded database (once, 46 MB)")
    command("namespaces", "show:namespaces", "list the namespaces that hold something, and how much")
    command("demo", "demo:demo", "tell a small story to a fresh memory and ask about it, offline")
    made = command("doctor", "setup:doctor", "check the set-up and say what to mend")
    about = "fetch FalkorDB if it is missing, and take rights of files from others, before the checks"
    made.add_argument("--fix", action="store_true", help=about)
    made = command("completion", "setup:completion", "print what completes commands in a shell", texts.COMPLETION)
    made.add_argument("shell", choices=("bash", "zsh", "fish"))
    command("reembed", "maintenance:reembed", "compute all vectors anew, after a change of the embedding model")
    export = command("export", "maintenance:export", "write all of a namespace into a file", texts.EXPORT)
    export.add_argument("file", metavar="FILE", help="the file, or - for the standard output")
    export.add_argument("--format", choices=FORMS, default=FORMS[0], help="how to write it (default: jsonl)")
    export.add_argument("--store", metavar="NAME", help="the items of the KGStore of that name, instead of a namespace")
    export.add_argument("--no-embeddings", action="store_true", help="leave the vectors out: an import makes them anew")
    about = "bring in an export, or the memory of another library"
    origins = ("kg-memory", *plugin_names("importers"))
    made = command("import", "maintenance:import_", about, texts.IMPORT)
    made.add_argument("file", metavar="FILE", help="the file, - for standard input, or the URL of Graphiti's server")
    made.add_argument("--from", dest="origin", choices=origins, default=origins[0], help="what it is of")
    made.add_argument("--replace", action="store_true", help="let go of what the namespace holds")
    about = "do not take the vectors of the file: make them anew"
    made.add_argument("--no-embeddings", action="store_true", help=about)
    about = "the user, graph or namespace (a/b) of the other memory that is meant, where there are several"
    made.add_argument("--group", metavar="NAME", help=about)
    made.add_argument("--no-read", action="store_true", help="save sentences, and let the next ingest read them")


def _add_plugins(command: Command) -> None:
    for add_commands in load_plugins("commands"):
        add_commands(command)
