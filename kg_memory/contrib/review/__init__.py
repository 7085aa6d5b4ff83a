"""The commands with which a person corrects a memory: ``review``, ``retract``, ``replace``, ``entities``, ``saved``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from kg_memory.cli.parser import action, flag, option, parse_count

DECIDE = "kg_memory.contrib.review.decide:"
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


OF_ENTITIES = {
    "action": action("list", "merge", "split", "undo", "decisions"),
    "names": option("merge: the entity to keep, then the others; split: one; undo: an ID", "NAME", nargs="*"),
    "facts": option("with split: a fact about the new entity; may be repeated", "ID", "--fact"),
    "episodes": option("with split: a message about the new entity; may be repeated", "ID", "--episode"),
    "name": option("with split: the name of the new entity", "NAME", "--as"),
    "type": option("with split: the type of the new entity", "TYPE"),
    "limit": option("how many to list at most (default: 100)", type=parse_count, default=100),
}
OF_SAVED = {
    "action": action("list", "source", "delete", "off", "on"),
    "about": option("with list: only memories about this person or thing", "NAME"),
}
EXAMPLE = 'example:\n  kg-memory entities split Anna --fact ID --as "Anna Berg"\n'
EPILOG = """\
If the memory is not sure that a new fact ends or contradicts an existing one, the verdict waits here, and both facts
are marked as disputed. In a terminal you are asked about each verdict. An ID may be shortened if it stays unique.
  kg-memory review --edit 3f2a --verdict complements --valid-at 2019-05
"""


def add_command(command: Callable[..., ArgumentParser]) -> None:
    """Add the commands of this package to the command line.

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
    for name, about, words in (
        ("retract", "stop believing a fact", "fact"),
        ("replace", "replace a fact by the fact that a text states", "fact with_text"),
    ):
        run, verb = DECIDE + "correct", f"facts.{name}"
        command(name, run, about, group="review", verb=verb, words=words, options="by reason")
    command(
        "entities",
        DECIDE + "entities",
        "list the people, places and things; merge or split them",
        EXAMPLE,
        group="remember and ask",
        verb="entities.split",
        words="action names",
        options="facts episodes name type by reason limit ids",
        texts=OF_ENTITIES,
        empty="No entities yet. Add a conversation: kg-memory ingest FILE",
    )
    command(
        "saved",
        DECIDE + "saved",
        "list the saved memories; show the source of one, delete it, turn saving off and on",
        "A saved memory is a fact that holds now. Delete forgets it for good, as kg-memory forget --fact does.\n",
        group="remember and ask",
        verb="facts.list",
        words="action id",
        options="about limit after yes dry_run by reason",
        texts=OF_SAVED,
        empty="No saved memories.",
    )
