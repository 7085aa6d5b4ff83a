"""The arguments of each command, and its help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kg_memory.errors import InputError
from kg_memory.readers.formats import FORMATS
from kg_memory.readers.times import parse_time

Command = Callable[..., argparse.ArgumentParser]

_ABOUT = "Long-term memory for LLM agents: a temporal knowledge graph in FalkorDB, made from conversations."
_START = """\
start here:
  kg-memory demo                                   watch a small story become a graph
  kg-memory ingest chat.jsonl                      remember a conversation
  kg-memory ask "Where does Ann live?"             ask about it
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


def parser() -> argparse.ArgumentParser:
    """Return the parser; each command carries in `run` the function that does it."""
    common = _common()
    top = argparse.ArgumentParser(
        "kg-memory", description=_ABOUT, epilog=_START, parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"kg-memory {_version()}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: str, about: str, epilog: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", epilog=epilog, parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        made.set_defaults(run=run)
        return made

    command("setup", "installation:setup", "fetch FalkorDB for the embedded database (once, 24 MB)")
    command("demo", "show:demo", "tell a small story to a fresh memory and ask about it, offline")
    _add_ingest(command("ingest", "ingest:ingest", "remember the conversations, texts and records in files", _FORMATS))
    _add_questions(command)
    command("stats", "look:stats", "count what is remembered")
    command("reembed", "look:reembed", "compute all vectors anew, after a change of the embedding model")
    command("doctor", "installation:doctor", "check the set-up and say what to mend")
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


def _add_ingest(made: argparse.ArgumentParser) -> None:
    made.add_argument("files", nargs="+", type=Path, metavar="FILE")
    made.add_argument("--format", choices=FORMATS, help="the format, where it is not recognised")
    made.add_argument("--at", type=_time, metavar="TIME", help="when undated content was said (default: now)")
    made.add_argument("--strict", action="store_true", help="refuse a file with a line that cannot be read")
    made.add_argument(
        "--namespace-per-conversation", action="store_true",
        help="keep the conversations of a file apart: each in NAMESPACE/<its name>",
    )  # fmt: skip


def _add_questions(command: Command) -> None:
    ask = command(
        "ask", "ask:ask", "answer a question from what is remembered, with dates and sources",
        'examples:\n  kg-memory ask "Where does Ann live?"\n  kg-memory ask "Where did Ann live?" --on 2023-12-24\n'
        '  kg-memory ask "小明住在哪里？" --limit 3 --json',
    )  # fmt: skip
    ask.add_argument("question", help="a question, in quotes")
    ask.add_argument("--on", type=_time, metavar="TIME", help="answer by what was so at that time (default: now)")
    ask.add_argument("--limit", type=_count, default=5, help="how many facts and lines (default: 5)")
    facts = command(
        "facts", "look:facts", "list what is known of somebody or something, newest first",
        "examples:\n  kg-memory facts Ann\n  kg-memory facts Ann --on 2023-12-24",
    )  # fmt: skip
    facts.add_argument("name", help="a name, as in the list of entities")
    facts.add_argument("--on", type=_time, metavar="TIME", help="only what was so at that time")
    entities = command("entities", "look:entities", "list the people, places and things")
    entities.add_argument("--limit", type=_count, default=100, help="how many (default: 100)")
    episodes = command("episodes", "look:episodes", "list the messages, texts and records as they came in")
    episodes.add_argument("--limit", type=_count, default=100, help="how many (default: 100)")
    episodes.add_argument("--status", choices=("saved", "done"), help="saved: not read yet; done: read")


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


def _version() -> str:
    try:
        return version("kg-memory")
    except PackageNotFoundError:
        return "(not installed)"
