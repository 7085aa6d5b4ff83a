"""The commands ``ingest`` (remember the conversations in files) and ``declare`` (state facts without a model)."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import datetime

from kg_memory.cli.parser import commands_in
from kg_memory.errors import InputError


def parse_date(text: str) -> datetime:
    """Parse the text of an option as a time: "2024-05-14", "last March". Other text causes a usage error."""
    from kg_memory.text.message_fields import parse_time  # noqa: PLC0415 - a help text does without

    try:
        return parse_time(text)
    except InputError as error:
        raise ArgumentTypeError(str(error)) from None


add_commands = commands_in(__package__)
