"""Parse the values of arguments: times, filters, counts and spans, each with an error that says what is right."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import datetime

from kg_memory.errors import InputError
from kg_memory.text.message_fields import parse_time


def parse_date(text: str) -> datetime:
    """Parse a time."""
    try:
        return parse_time(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_where(text: str) -> Mapping[str, object]:
    """Parse the JSON of a filter and validate it, before a database is started."""
    from kg_memory.models import filters  # noqa: PLC0415 - what a help text does without

    try:
        where: Mapping[str, object] = json.loads(text)
        filters.parse_filter(where)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except (ValueError, RecursionError) as error:
        example = """'{"speaker": "Ann"}'"""
        raise argparse.ArgumentTypeError(
            f"{text!r:.100} is no JSON ({error}): write it as in {example}, in single quotes"
        ) from None
    return where


def parse_count(text: str) -> int:
    """Parse a number of things, from 1 to 100,000."""
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


def parse_span(text: str) -> tuple[int, int]:
    """Parse a span of characters, START:END."""
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no span: write START:END, such as 10:24")
    return int(start), int(end)
