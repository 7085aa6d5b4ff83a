"""Options of ``kg-memory review``, with which a person decides uncertain facts by id, or one after another."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from kg_memory.cli.parser import flag, option, parse_count

CHOICES = ("accept", "reject", "edit", "undo")
"""The options that decide a review."""
VERDICTS = ("supersedes", "conflicts", "complements", "temporary", "unrelated")
OPTIONS = {
    "list": flag("list the waiting verdicts (the default without a terminal)"),
    "decided": flag("list the decided verdicts, the latest decision first"),
    "accept": option("apply the verdict", "ID"),
    "reject": option("do not believe the waiting fact", "ID"),
    "edit": option("apply another verdict or other dates", "ID"),
    "undo": option("undo the last decision on a verdict", "ID"),
    "verdict": option("with --edit: how the two facts relate", choices=VERDICTS),
    "valid_at": option("with --edit: when the fact began: 2024-05-01, 2024-05, 2024", "TIME"),
    "invalid_at": option("with --edit: when the fact ended", "TIME"),
    "limit": option("the most reviews to list (default: 100)", type=parse_count, default=100),
}
EPILOG = """\
If the memory is not sure that a new fact ends or contradicts an existing one, the verdict waits here, and both facts
are marked as disputed. In a terminal you are asked about each verdict. An ID may be shortened if it stays unique.
  kg-memory review --edit 3f2a --verdict complements --valid-at 2019-05
"""


def add_command(command: Callable[..., ArgumentParser]) -> None:
    """Add the command ``kg-memory review`` to the command line.

    *command* is the function that adds a command and returns its argument parser.
    """
    command(
        "review",
        "kg_memory.contrib.review.command:review",
        "decide the verdicts that the memory is not sure of",
        EPILOG,
        group="review",
        verb="reviews.decide",
        options=" ".join((*OPTIONS, "by", "reason")),
        texts=OPTIONS,
        either=(("list", "decided", *CHOICES),),
    )
