"""Options of ``kg-memory review``, which decides waiting reviews by id, or one after another in a terminal."""

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
    "accept": option("let the verdict take effect", "ID"),
    "reject": option("do not believe the fact that waits", "ID"),
    "edit": option("let it take effect with another verdict or other dates", "ID"),
    "undo": option("undo the last decision about it", "ID"),
    "verdict": option("with --edit: how the two facts relate", choices=VERDICTS),
    "valid_at": option("with --edit: since when it holds: 2024-05-01, 2024-05, 2024", "TIME"),
    "invalid_at": option("with --edit: when it ended", "TIME"),
    "limit": option("how many of a list (default: 100)", type=parse_count, default=100),
}
EPILOG = """\
A fact ends or refutes another at once only if the memory is sure of that; else the verdict waits here, and both facts
are shown as disputed. At a terminal you are asked about each. An ID may be shortened as long as it names only one.
  kg-memory review --edit 3f2a --verdict complements --valid-at 2019-05
"""


def add_command(command: Callable[..., ArgumentParser]) -> None:
    """Add ``kg-memory review``; *command* makes its parser."""
    command(
        "review",
        "kg_memory.contrib.review.command:review",
        "decide the verdicts that the memory was not sure of",
        EPILOG,
        group="review",
        verb="reviews.decide",
        options=" ".join((*OPTIONS, "by", "reason")),
        texts=OPTIONS,
        either=(("list", "decided", *CHOICES),),
    )
