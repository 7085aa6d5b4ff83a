"""The commands that look back: what was so, in which order, what changed, and what took the place of what."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime, timedelta

from kg_memory.cli.look import NO_NAME
from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Screen, day
from kg_memory.cli.wording import (
    FACT_STYLES,
    FACTS,
    SHORT,
    fact_row,
    relation,
    said,
    source,
    standing,
    when,
    with_ids,
)
from kg_memory.models.graph import Change, Fact, Review, TimelineEvent
from kg_memory.retrieval.context.lines import date_in_figures, period_in_figures

RECENT = timedelta(days=7)
"""How far `changes` looks back when it is not told."""
_NOTHING = "-"


def history(arguments: Namespace, screen: Screen) -> int:
    """List the periods of what a name was, did or had, newest first."""
    about = arguments.name, arguments.predicate
    with open_memory(arguments, screen) as memory:
        found = memory.facts.history(
            *about, namespace=namespace_of(arguments), limit=arguments.limit, believed_at=arguments.believed_at
        )
    columns, rows = with_ids(FACTS, [fact_row(each) for each in found], found, ids=arguments.ids)
    what = f"{arguments.name!r}" + (f" with the predicate {arguments.predicate!r}" if arguments.predicate else "")
    screen.values(found, columns, rows, FACT_STYLES, empty=f"No facts about {what}. {NO_NAME}")
    return 0


def timeline(arguments: Namespace, screen: Screen) -> int:
    """List what began, ended and was said of a name, earliest first."""
    with open_memory(arguments, screen) as memory:
        found = memory.facts.timeline(
            arguments.name, namespace=namespace_of(arguments), limit=arguments.limit, believed_at=arguments.believed_at
        )
    rows = [(_at(each), each.kind, relation(each.fact), said(each.fact), source(each.fact)) for each in found]
    empty = f"No facts about {arguments.name!r}. {NO_NAME}"
    styles = ("cyan", "yellow", "bold", "", "dim")
    screen.values(found, ("when", "what", "fact", "said", "source"), rows, styles, empty=empty)
    return 0


def changes(arguments: Namespace, screen: Screen) -> int:
    """List what was learned, ended, corrected, retracted and restored, earliest first, by the system's clock."""
    begin = arguments.since if arguments.since is not None else datetime.now(UTC) - RECENT
    with open_memory(arguments, screen) as memory:
        found = memory.facts.changes(begin, arguments.until, namespace=namespace_of(arguments), limit=arguments.limit)
    rows = [(each.at, each.kind, relation(_told(each)), *_held(each), source(_told(each))) for each in found]
    told = arguments.since or f"{day(begin)}, a week ago"
    empty = f"Nothing changed since {told}. --since looks further back, as in --since 'last year'."
    styles = ("cyan", "yellow", "bold", "", "green", "dim")
    screen.values(found, ("learned at", "what", "fact", "before", "now", "source"), rows, styles, empty=empty)
    return 0


def evolution(arguments: Namespace, screen: Screen) -> int:
    """List what took the place of what, around one fact, earliest first."""
    with open_memory(arguments, screen) as memory:
        found = memory.facts.evolution(arguments.fact, namespace=namespace_of(arguments))
    columns, rows = with_ids(FACTS, [fact_row(each) for each in found], found, ids=arguments.ids)
    screen.values(found, columns, rows, FACT_STYLES, empty="This fact is not believed, and nothing took its place.")
    return 0


def conflicts(arguments: Namespace, screen: Screen) -> int:
    """List the facts that cannot both be true, settled or waiting, with why."""
    with open_memory(arguments, screen) as memory:
        found = memory.reviews.conflicts(namespace=namespace_of(arguments), limit=arguments.limit)
    rows = [(each.id[:SHORT], *_sides(each), settled(each), each.confidence, each.reason) for each in found]
    styles = ("dim", "bold", "bold", "yellow", "", "")
    columns = ("id", "said later", "said before", "settled", "confidence", "reason")
    screen.values(found, columns, rows, styles, empty="No facts contradict each other.")
    return 0


def settled(review: Review) -> str:
    """Return who settled a verdict, if anybody did."""
    if review.ruling == "waiting":
        return "waits for review"
    return "by itself" if review.decided_by == "auto" else f"by {review.decided_by}, {when(review.decided_at)}"


def _sides(review: Review) -> tuple[str, str]:
    later, earlier = (f"{each.sentence} ({standing(each)})" for each in (review.pending, review.existing))
    return later, earlier


def _at(moment: TimelineEvent) -> str:
    """Return when it was, as exactly as it is known."""
    return date_in_figures(moment.at, moment.precision)


def _told(change: Change) -> Fact:
    """Return the belief of *change* that tells what it is about."""
    told = change.after or change.before
    if told is None:
        raise ValueError("a change of nothing")
    return told


def _held(change: Change) -> tuple[str, str]:
    before, after = (period_in_figures(each) if each else _NOTHING for each in (change.before, change.after))
    return before, after
