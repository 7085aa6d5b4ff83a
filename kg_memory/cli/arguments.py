"""Define the arguments and the help of each command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kg_memory.cli.arguments_review import add_evict, add_forget, add_review, add_transfer
from kg_memory.cli.readers.reading import FORMATS
from kg_memory.errors import InputError
from kg_memory.text.message_fields import parse_time

Command = Callable[..., argparse.ArgumentParser]

_ABOUT = "Long-term memory for LLM agents: a temporal knowledge graph in FalkorDB, made from conversations."
_START = """\
start here:
  kg-memory demo                                   watch a small story become a graph
  kg-memory ingest chat.jsonl                      remember a conversation
  kg-memory ask "Where does Ann live?"             ask about it, now or --on "last March"
  kg-memory doctor                                 check the set-up

Without a model everything runs offline, by rules. With OPENAI_API_KEY set, or --model and
KG_MEMORY_BASE_URL, a language model reads. All settings are variables too: KG_MEMORY_URL,
KG_MEMORY_DATA_DIR, KG_MEMORY_MODEL and so on.
"""
_FORMATS = """\
formats, recognised from the content:
  jsonl      one object a line: {"content": "...", "speaker": "Ann", "at": "2024-05-01T10:00:00Z",
             "thread": "t1", "source_id": "m1"}; only the content (or text) is required
  openai     [{"role": "user", "content": "..."}], or {"messages": [...]}
  langchain  dumped messages: {"type": "human", "data": {...}} or the lc constructor form
  locomo     a LoCoMo file; thread <sample_id>/session_<n>, id <sample_id>/<dia_id>
  beam       a BEAM chat.json
  chat       plain text, "Ann: hello" or "[2024-05-01 10:00] Ann: hello"
  text       any other text: one episode
  json       other JSON: one episode a record
Of message lists, what user and assistant say is kept; system prompts and tool calls are not.

What is saved but could not be read is told, the exit code is then 1, and the same command tries it again.
Ctrl-C stops at once and loses nothing: the same command goes on where it stopped.

examples:
  kg-memory ingest chat.jsonl
  kg-memory ingest notes.txt --format text --at 2024-05-01
  kg-memory ingest *.json --namespace ann@example.com --strict
"""


_TIMES = """\
A TIME or PERIOD is a date (2019, 2019-05, 2019-05-03, 2019-05-03T18:00) or words, English or Chinese
("last March", "two weeks ago", "上个月"), in UTC. A PERIOD may also be FROM..UNTIL, with either end left out;
UNTIL is not part of it: 2019..2021 is two years.
"""
# The names are written out, as what they name takes longer to import than the help takes to be read.
RECIPES = (
    "default",
    "words",
    "meaning",
    "hybrid",
    "facts",
    "overview",
    "synapse",
    "pagerank",
    "diverse",
    "mentions",
    "near",
    "recent",
    "used",
    "trusted",
    "cross_encoder",
)
PLANS = ("economy", "standard", "thorough")
STATES = ("saved", "waiting", "working", "done", "failed", "skipped")
TEMPLATES = ("plain", "zep", "xml", "json", "zeph")
FIELDS = (
    "thread",
    "source",
    "source_id",
    "speaker",
    "kind",
    "trust",
    "said_at",
    "type",
    "name",
    "predicate",
    "edge_type",
    "confidence",
    "valid_at",
    "invalid_at",
    "created_at",
    "expired_at",
)
_ASK = f"""\
examples:
  kg-memory ask "Where does Ann live?"
  kg-memory ask "Where did Ann live?" --on 2023-12-24
  kg-memory ask "Where did Ann live in 2019?" --explain
  kg-memory ask "小明住在哪里？" --during 2019..2021 --limit 3 --json
  kg-memory ask "Who moved?" --where '{{"speaker": "Ann", "said_at": {{"$gte": "2024-01-01"}}}}'
  kg-memory ask "Who likes jazz?" --near Ann --recipe near
  kg-memory ask "Where does Ann live?" --context > memory.txt

recipes, which search and rank each in its way:
  {", ".join(RECIPES[:9])},
  {", ".join(RECIPES[9:])}
forms of a context:
  {", ".join(TEMPLATES)}
fields of a filter, joined by $and, $or and $not, compared by $eq, $ne, $in, $nin, $gt, $gte, $lt and $lte:
  {", ".join(FIELDS[:10])},
  {", ".join(FIELDS[10:])}

{_TIMES}"""
_WATCH = "examples:\n  kg-memory watch -n ann\n  kg-memory watch --once\n  kg-memory watch --json | jq .event\n"
_GROUPS = ("remember and ask", "look back", "review", "set up")


def parser() -> argparse.ArgumentParser:
    """Return the parser; each command carries in `run` the function that does it."""
    common = _common()
    top = argparse.ArgumentParser(
        "kg-memory",
        usage="kg-memory COMMAND [...] [options]",
        epilog=_START,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"kg-memory {_version()}")
    commands = top.add_subparsers(prog="kg-memory", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    listed: dict[str, list[str]] = {group: [] for group in _GROUPS}

    def command(group: str, name: str, run: str, about: str, epilog: str = "") -> argparse.ArgumentParser:
        listed[group].append(f"  {name:<12} {about}")
        made = commands.add_parser(
            name,
            description=about[0].upper() + about[1:] + ".",
            epilog=epilog,
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    _add_ingest(command)
    _add_retry(command)
    _add_deepen(command)
    _add_ask(command)
    _add_questions(command)
    _add_past(command)
    add_review(command, _add_limit)
    add_forget(command, _add_limit)
    add_evict(command)
    command("set up", "setup", "setup:setup", "fetch FalkorDB for the embedded database (once, 24 MB)")
    command("set up", "demo", "demo:demo", "tell a small story to a fresh memory and ask about it, offline")
    command("set up", "doctor", "setup:doctor", "check the set-up and say what to mend")
    command("set up", "reembed", "show:reembed", "compute all vectors anew, after a change of the embedding model")
    add_transfer(command)
    groups = ("\n".join((f"{group}:", *lines)) for group, lines in listed.items())
    top.description = "\n\n".join((_ABOUT, *groups, "kg-memory COMMAND --help has more of each, with examples."))
    return top


def _common() -> argparse.ArgumentParser:
    """Return the options that may stand before the command and after it."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options")
    group.add_argument("--namespace", "-n", metavar="NAME", help="whose memory (default: default)")
    group.add_argument("--url", help="a FalkorDB server: falkor://[user:password@]host:port; embedded if left out")
    group.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of the embedded database")
    group.add_argument("--model", metavar="NAME", help="a chat model, or offline")
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return common


def _add_ingest(command: Command) -> None:
    about = "remember the conversations, texts and records in files"
    made = command("remember and ask", "ingest", "ingest:ingest", about, _FORMATS)
    made.add_argument("files", nargs="+", type=Path, metavar="FILE")
    made.add_argument("--format", choices=FORMATS, help="the format, where it is not recognised")
    made.add_argument("--at", type=_time, metavar="TIME", help="when undated content was said (default: now)")
    made.add_argument("--strict", action="store_true", help="refuse a file with a line that cannot be read")
    made.add_argument("--dry-run", action="store_true", help="tell what it will cost, and remember nothing")
    about = "how much a model is asked: economy, of several messages at once, standard (default), or thorough"
    made.add_argument("--plan", choices=PLANS, help=about)
    made.add_argument(
        "--namespace-per-conversation",
        action="store_true",
        help="keep the conversations of a file apart: each in NAMESPACE/<its name>",
    )


def _add_retry(command: Command) -> None:
    again = command(
        "remember and ask",
        "retry",
        "ingest:retry",
        "read again what could not be read",
        "examples:\n  kg-memory episodes --state failed --ids\n  kg-memory retry\n\n"
        "What a model has answered before is not asked, or paid, again.",
    )
    again.add_argument("ids", nargs="*", metavar="ID", help="the episodes that are meant (default: all that failed)")
    again.add_argument("--skipped", action="store_true", help="also what was not read as there is nothing in it")


def _add_deepen(command: Command) -> None:
    about = "read again, with more care, what was read by a cheaper plan"
    deeper = command(
        "remember and ask",
        "deepen",
        "ingest:deepen",
        about,
        "examples:\n  kg-memory deepen --dry-run\n  kg-memory deepen --to thorough --limit 100\n\n"
        "From the cheapest: offline, economy, standard, thorough. Facts that are found again are not doubled;\n"
        "those that are not stay. Ctrl-C loses nothing: the same command goes on where it stopped.",
    )
    deeper.add_argument("--to", choices=PLANS[-2:], help="the plan to read by (default: the one that is set)")
    deeper.add_argument("--limit", type=_count, help="how many at most, the earliest first (default: all)")
    deeper.add_argument("--skipped", action="store_true", help="also what was not read as there is nothing in it")
    deeper.add_argument("--dry-run", action="store_true", help="tell how many they are, and change nothing")


def _add_ask(command: Command) -> None:
    about = "answer a question from what is remembered, with dates and sources"
    ask = command("remember and ask", "ask", "ask:ask", about, _ASK)
    ask.add_argument("question", help="a question, in quotes; time words in it count where no option names a time")
    _add_times(ask, "what was so at that time (default: now)")
    ask.add_argument("--where", type=_filter, metavar="JSON", help='only what passes this filter: {"speaker": "Ann"}')
    ask.add_argument("--near", metavar="NAME", help="look near this person or thing")
    ask.add_argument("--recipe", choices=RECIPES, metavar="NAME", help="how to search and rank (default: default)")
    form = ask.add_mutually_exclusive_group()
    form.add_argument(
        "--template", choices=TEMPLATES, metavar="NAME", help="print the context for a prompt, so written"
    )
    form.add_argument(
        "--context", dest="template", action="store_const", const="plain", help="the same as --template plain"
    )
    about = "tell which time was asked about and why, what found each thing, its scores, and what was left out"
    ask.add_argument("--explain", action="store_true", help=about)
    about = "how many facts and lines (default: 5, and for a context what there is room for)"
    ask.add_argument("--limit", type=_count, help=about)


def _add_questions(command: Command) -> None:
    group = "remember and ask"
    facts = command(
        group,
        "facts",
        "show:facts",
        "list what is known of somebody or something, newest first",
        "examples:\n  kg-memory facts Ann\n  kg-memory facts Ann --on 2023-12-24\n"
        '  kg-memory facts Ann --during "last year" --believed-at 2024-06-01\n\n' + _TIMES,
    )
    facts.add_argument("name", help="a name, as in the list of entities")
    _add_times(facts, "only what was so at that time")
    _add_limit(facts, "facts", ids=True)
    around = command(
        group,
        "around",
        "show:around",
        "list what lies around somebody or something, step by step",
        "examples:\n  kg-memory around Ann\n  kg-memory around Ann --steps 3 --on 2023\n\n" + _TIMES,
    )
    around.add_argument("name", help="a name, as in the list of entities")
    around.add_argument("--steps", type=_count, default=2, help="how far, 1 to 6 (default: 2)")
    _add_times(around, "by what was so at that time (default: now)", unreviewed=False)
    _add_limit(around, "facts")
    _add_limit(command(group, "entities", "show:entities", "list the people, places and things"), "entities")
    communities = command(
        group,
        "communities",
        "show:communities",
        "list or show what belongs together, and what it is about",
        "examples:\n  kg-memory communities\n  kg-memory communities --refresh\n"
        "  kg-memory communities Ann --svg ann.svg\n\n"
        "Communities are found in the facts that are so now. A refresh summarises only those that changed; who is new\n"
        "joins one meanwhile. Those of a higher level are made of those below.",
    )
    communities.add_argument("name", nargs="?", help="show the one with this id, or whose name begins so")
    communities.add_argument("--svg", type=Path, metavar="FILE", help="draw the one that is shown")
    communities.add_argument("--level", type=int, help="only those of this level; 0 are those of entities")
    communities.add_argument("--refresh", action="store_true", help="find them anew first")
    communities.add_argument("--full", action="store_true", help="with --refresh: as if there were none yet")
    _add_limit(communities, "communities")
    about = "list the messages, texts and records as they came in"
    episodes = command(group, "episodes", "show:episodes", about)
    _add_limit(episodes, "episodes")
    episodes.add_argument("--state", choices=STATES, dest="status", help="only those that got so far")
    episodes.add_argument("--ids", action="store_true", help="show the ids of the episodes")
    command(group, "stats", "show:stats", "count what is remembered")
    usage = command(group, "usage", "ingest:usage", "list what reading cost, day by day")
    usage.add_argument("--days", type=_count, default=30, help="how many days, up to today (default: 30)")


def _add_past(command: Command) -> None:
    group = "look back"
    history = command(
        group,
        "history",
        "show:history",
        "list the periods of what somebody was, did or had, newest first",
        'examples:\n  kg-memory history Ann\n  kg-memory history Ann "lives in" --believed-at "last month"',
    )
    history.add_argument("name", help="a name, as in the list of entities")
    history.add_argument("predicate", nargs="?", help='only this relation, in any wording: "lives in", RESIDES_IN')
    _add_believed(history)
    _add_limit(history, "periods", ids=True)
    example = "example:\n  kg-memory timeline Ann"
    timeline = command(group, "timeline", "show:timeline", "list what began and ended, earliest first", example)
    timeline.add_argument("name", help="a name, as in the list of entities")
    _add_believed(timeline)
    _add_limit(timeline, "periods")
    changes = command(
        group,
        "changes",
        "show:changes",
        "list what was learned, ended, corrected, retracted and restored",
        "examples:\n  kg-memory changes\n  kg-memory changes --since yesterday\n"
        "  kg-memory changes --since 2024-05-01 --until 2024-06-01\n\n"
        "The times are those when the memory learned of it, not those when it was so in the world.",
    )
    changes.add_argument("--since", metavar="TIME", help="from this time on (default: a week ago)")
    changes.add_argument("--until", metavar="TIME", help="before this time (default: now)")
    _add_limit(changes, "changes", 1000)
    evolution = command(
        group,
        "evolution",
        "show:evolution",
        "list what took the place of what, around one fact",
        "example:\n  kg-memory facts Ann --ids\n  kg-memory evolution 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11",
    )
    evolution.add_argument("fact", metavar="FACT_ID", help="the id of a fact: kg-memory facts NAME --ids shows them")
    evolution.add_argument("--ids", action="store_true", help="show the ids of the facts")
    about = "list the facts that cannot both be true, and how that was settled"
    _add_limit(command(group, "conflicts", "show:conflicts", about), "conflicts")
    watch = command(group, "watch", "watch:watch", "follow what comes, waits, fails and is learned, live", _WATCH)
    watch.add_argument("--once", action="store_true", help="tell how it stands now, and end")
    watch.add_argument("--interval", type=_count, default=2, metavar="SECONDS", help="how often to look (default: 2)")
    watch.add_argument("--since", metavar="TIME", help="tell also what came since then (default: now)")
    _add_limit(watch, "episodes that are not read, at first", 10)


def _add_times(made: argparse.ArgumentParser, about: str, *, unreviewed: bool = True) -> None:
    world = made.add_mutually_exclusive_group()
    world.add_argument("--on", "--as-of", dest="on", metavar="TIME", help=about)
    world.add_argument("--during", metavar="PERIOD", help='what was so at some time in it: "2019", FROM..UNTIL')
    _add_believed(made)
    if unreviewed:
        made.add_argument("--unreviewed", action="store_true", help="with what waits for review, which is not believed")


def _add_believed(made: argparse.ArgumentParser) -> None:
    made.add_argument("--believed-at", metavar="TIME", help="by what the memory believed then (default: now)")


def _add_limit(made: argparse.ArgumentParser, what: str, default: int = 100, *, ids: bool = False) -> None:
    made.add_argument("--limit", type=_count, default=default, help=f"how many {what} (default: {default})")
    if ids:
        made.add_argument("--ids", action="store_true", help="show the ids of the facts")


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _filter(text: str) -> dict[str, Any]:
    """Return the filter that *text* is in JSON; that it can be one is found out here, before a database is started."""
    from kg_memory.models import filters  # noqa: PLC0415 - what a help text does without

    try:
        where: dict[str, Any] = json.loads(text)
        filters.parse_filter(where)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except (ValueError, RecursionError) as error:
        example = """'{"speaker": "Ann"}'"""
        raise argparse.ArgumentTypeError(
            f"{text!r:.100} is no JSON ({error}): write it as in {example}, in single quotes"
        ) from None
    return where


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


def _version() -> str:
    try:
        return version("kg-memory")
    except PackageNotFoundError:
        return "(not installed)"
