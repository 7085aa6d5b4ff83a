"""Show verdicts about facts, and decide about one fact: retract it, or replace it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kg_memory.cli.command import (
    explain_nothing,
    namespace_of,
    open_memory,
    open_to_change,
    open_to_look,
    review_command,
    whole_id,
)
from kg_memory.cli.output import FACT_STYLES, FACTS, SHORT, Screen, cell, fact_row, login, validity, when, with_ids
from kg_memory.models.graph import Review

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory


def evolution(arguments: Namespace, screen: Screen) -> int:
    """List the facts that one fact replaced and was replaced by, earliest first."""
    with open_to_look(arguments, screen) as memory:
        chain = memory.facts.evolution(_fact(memory, arguments), namespace=namespace_of(arguments))
    columns, rows = with_ids(FACTS, [fact_row(fact) for fact in chain], chain, ids=arguments.ids)
    screen.values(chain, columns, rows, FACT_STYLES, empty="This fact is not believed, and nothing took its place.")
    return 0


def consequences(arguments: Namespace, screen: Screen) -> int:
    """List what rests on a fact, the nearest first, with the way to it and since when it is doubtful."""
    times = {"as_of": arguments.on, "believed_at": arguments.believed_at, "limit": arguments.limit}
    with open_to_look(arguments, screen) as memory:
        resting = memory.facts.consequences(_fact(memory, arguments), namespace=namespace_of(arguments), **times)
    facts_ = [one.fact for one in resting]
    ways = [" > ".join(step.sentence for step in one.path[:-1]) for one in resting]
    table = [(len(one.path), *fact_row(one.fact)[:3], way) for one, way in zip(resting, ways, strict=True)]
    columns, rows = with_ids(("steps", *FACTS[:3], "by way of"), table, facts_, ids=arguments.ids)
    screen.values(resting, columns, rows, ("cyan", *FACT_STYLES), empty="Nothing rests on this fact.")
    return 0


def retract(arguments: Namespace, screen: Screen) -> int:
    """Believe a fact no more."""
    why = {"by": arguments.by or login(), "reason": arguments.reason}
    with open_to_change(arguments, screen) as memory:
        review = memory.facts.retract(_fact(memory, arguments), namespace=namespace_of(arguments), **why)
    return _tell(review, [f"No longer believed: {cell(review.pending.sentence)}"], arguments, screen)


def replace(arguments: Namespace, screen: Screen) -> int:
    """Let what a text states replace a fact."""
    why = {"by": arguments.by or login(), "reason": arguments.reason}
    with open_memory(arguments, screen) as memory:
        review = memory.facts.replace(
            _fact(memory, arguments),
            arguments.text,
            namespace=namespace_of(arguments),
            **why,
        )
    sides = (review.existing, review.pending)
    return _tell(review, [f"{cell(fact.sentence)}: {validity(fact)}" for fact in sides], arguments, screen)


def _fact(memory: GraphMemory, arguments: Namespace) -> str:
    return whole_id(memory, arguments, "Fact", arguments.fact)


def _tell(review: Review, lines: Sequence[str], arguments: Namespace, screen: Screen) -> int:
    if screen.as_json:
        screen.json(review.model_dump(mode="json"))
        return 0
    for line in lines:
        screen.line(line)
    screen.line(f"Undo it: {review_command(arguments)} --undo {review.id}", "dim")
    return 0


def conflicts(arguments: Namespace, screen: Screen) -> int:
    """List the facts that cannot both be true, settled or waiting, with why."""
    with open_to_look(arguments, screen) as memory:
        conflicts_ = memory.reviews.conflicts(namespace=namespace_of(arguments), limit=arguments.limit)
        empty = "" if conflicts_ else explain_nothing(memory, arguments, "No facts contradict each other.")
    return _show_reviews(conflicts_, screen, empty)


def verdicts(arguments: Namespace, screen: Screen) -> int:
    """List all verdicts about a fact, or about any, also those that took effect by themselves."""
    with open_to_look(arguments, screen) as memory:
        fact = arguments.fact and _fact(memory, arguments)
        verdicts_ = memory.reviews.verdicts(fact, namespace=namespace_of(arguments), limit=arguments.limit)
        empty = "" if verdicts_ else explain_nothing(memory, arguments, "No verdict was given.")
    return _show_reviews(verdicts_, screen, empty)


def _show_reviews(reviews: Sequence[Review], screen: Screen, empty: str) -> int:
    rows = [
        (review.id[:SHORT], *_sides(review), _describe_decision(review), review.confidence, review.reason)
        for review in reviews
    ]
    styles = ("dim", "bold", "bold", "yellow", "", "")
    columns = ("id", "said later", "said before", "settled", "confidence", "reason")
    screen.values(reviews, columns, rows, styles, empty=empty)
    return 0


def _describe_decision(review: Review) -> str:
    """Return who settled a verdict and when, or that it waits."""
    if review.ruling == "waiting":
        return "waits for review"
    return "by itself" if review.decided_by == "auto" else f"by {review.decided_by}, {when(review.decided_at)}"


def _sides(review: Review) -> tuple[str, str]:
    later, earlier = (f"{fact.sentence} ({validity(fact)})" for fact in (review.pending, review.existing))
    return later, earlier
