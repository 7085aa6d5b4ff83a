"""The commands ``ingest`` (remember the conversations in files) and ``declare`` (state facts without a model)."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kg_memory.cli.parser import flag, names_at, option
from kg_memory.errors import InputError


def parse_date(text: str) -> datetime:
    """Parse the text of an option as a time: "2024-05-14", "last March". Other text causes a usage error."""
    from kg_memory.text.message_fields import parse_time  # noqa: PLC0415 - a help text does without

    try:
        return parse_time(text)
    except InputError as error:
        raise ArgumentTypeError(str(error)) from None


INGEST_OPTIONS = {
    "format": option("the format (default: detected)", choices=names_at("kg_memory.contrib.chats:FORMATS")),
    "records": flag("short for --format records", dest="format", action="store_const", const="records"),
    "date_order": option(
        "the date order of a WhatsApp chat, if it is ambiguous", choices=names_at("kg_memory.contrib.chats:DATE_ORDERS")
    ),
    "at": option("the time of undated content (default: now)", "TIME", type=parse_date),
    "strict": flag("stop at the first line that cannot be read"),
    "ontology": option("the types to extract: memoryd, zeph, or a TOML file", "NAME"),
    "namespace_per_conversation": flag("put each conversation of a file into NAMESPACE/<its name>"),
}
DECLARE_OPTIONS = {
    "file": option("state the facts in a CSV, TSV, JSONL or JSON file", "FILE", type=Path),
    "mapping": option("a JSON file that maps records of --file to facts", "FILE", type=Path),
    "valid_at": option("when the fact began: 2024-05-01, 2024-05, 2024", "TIME"),
    "invalid_at": option("when the fact ended", "TIME"),
    "at": option("when the fact was stated (default: now)", "TIME"),
    "sentence": option("the fact as a sentence (default: made from the triple)", "TEXT"),
    "source": option("the source of the fact (default with --file: the file name)", "NAME"),
    "source_id": option("the id of the fact in its source; an id is stored once", "ID"),
    "confidence": option("how certain the fact is, 0 to 1", "N"),
    "trust": option("how far the source is trusted, 0 to 1", "N"),
    "subject_type": option("the type of the subject, such as Person", "TYPE"),
    "object_type": option("the type of the objects", "TYPE"),
    "rests_on": option("a fact on which this one depends; may be repeated", "FACT_ID"),
}
INGEST_EPILOG = """\
Formats are recognised from the content: JSON Lines, lists of messages of OpenAI and LangChain, exports of ChatGPT,
Claude, Open WebUI, Gemini, Telegram, Slack, Discord, Messenger, Instagram and WhatsApp (files, folders or zips),
LoCoMo, BEAM, plain chats ("Ann: hello"), other text and JSON. docs/moving_in.md describes them. In JSON Lines only the
content is required:
  {"content": "...", "speaker": "Ann", "at": "2024-05-01T10:00:00Z", "thread": "t1", "source_id": "m1"}
The exit code is 1 if saved episodes could not be read. After Ctrl-C, run the same command again to continue.
"""
DECLARE_EPILOG = "example:\n  kg-memory declare Ann WORKS_AT Acme --valid-at 2024-05\n"


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """Add the commands ``ingest`` and ``declare`` to the command line.

    *command* is the function that registers one command and returns its argument parser.
    """
    command(
        "ingest",
        "kg_memory.contrib.ingest.ingest:ingest",
        "remember the conversations, texts and records in files",
        INGEST_EPILOG,
        group="remember and ask",
        words="files",
        options=" ".join(("dry_run", "plan", *INGEST_OPTIONS)),
        texts=INGEST_OPTIONS | {"files": option("", "FILE", nargs="+", type=Path)},
    )
    command(
        "declare",
        "kg_memory.contrib.ingest.declare:declare",
        "state facts that you know, without a model",
        DECLARE_EPILOG,
        group="remember and ask",
        verb="facts.add",
        words="words",
        options=" ".join(DECLARE_OPTIONS),
        texts=DECLARE_OPTIONS | {"words": option("SUBJECT PREDICATE, and any number of OBJECTs", "WORD", nargs="*")},
    )
