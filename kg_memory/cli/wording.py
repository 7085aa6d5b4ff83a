"""Facts, lines of conversation and times in the words of the command's tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kg_memory.cli.screen import Cell, counted
from kg_memory.models.graph import Episode, Fact, Remark
from kg_memory.retrieval.context.lines import date_in_figures, day_in_figures, period_in_figures

SHORT = 8
"""Characters of an id that are shown, and mostly enough to name it."""
FACTS = ("fact", "since", "until", "said", "source")
FACT_STYLES = ("bold", "green", "yellow", "", "dim")
_IDS = "id"


def fact_row(fact: Fact) -> tuple[Cell, ...]:
    """Return a row of a table with the columns `FACTS`."""
    return marked(fact, relation(fact)), since(fact), until(fact), said(fact), source(fact)


def with_ids(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], facts: Sequence[Fact], *, ids: bool
) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    """Return *columns* and *rows* with the ids of *facts* as the last one, if *ids* are wanted."""
    if not ids:
        return columns, rows
    return (*columns, _IDS), [(*row, fact.id) for row, fact in zip(rows, facts, strict=True)]


def relation(fact: Fact) -> str:
    """Return *fact* as subject, predicate and objects."""
    return f"{fact.subject} {fact.predicate.replace('_', ' ').lower()} {', '.join(fact.objects)}"


def marked(fact: Fact, text: str) -> str:
    """Return *text*, which tells *fact*, with a mark where it waits for review."""
    return text if fact.reviewed else f"{text} (not reviewed)"


def since(fact: Fact) -> str:
    """Return the start of *fact* as exactly as it is known: "2019", "2019-05", "by 2024-05-14"."""
    return proposed(fact.model_copy(update={"invalid_at": None})).partition(" - ")[0]


def until(fact: Fact) -> str:
    """Return the end of *fact* as exactly as it is known, and nothing for one that is open."""
    return date_in_figures(fact.invalid_at, fact.end_precision) if fact.invalid_at else ""


def standing(fact: Fact) -> str:
    """Return when *fact* was so as it is believed today, if it is."""
    return "not believed" if fact.expired_at is not None else period_in_figures(fact)


def proposed(fact: Fact) -> str:
    """Return when *fact*, which waits for review, would be believed to be so."""
    return period_in_figures(fact.model_copy(update={"reviewed": True}))


def said(fact: Fact) -> str:
    """Return the words that first stated *fact*."""
    return fact.sources[0].quote if fact.sources else fact.sentence


def source(fact: Fact) -> str:
    """Return who said *fact* and when, by the source's own id where it has one."""
    if not fact.sources:
        return ""
    first = fact.sources[0]
    name = f" [{first.source_id}]" if first.source_id else ""
    more = f" and {counted(len(fact.sources) - 1, 'time')} more" if len(fact.sources) > 1 else ""
    return f"{first.speaker or 'text'}, {first.at:%Y-%m-%d}{name}{more}"


def place(episode: Episode) -> str:
    """Return where *episode* comes from, as far as its source told."""
    return episode.source_id or episode.thread or episode.source or episode.id


def line(episode: Episode) -> str:
    """Return what *episode* says, and what became of it."""
    marks = dict.fromkeys(_mark(each) for each in episode.remarks)
    return " ".join((episode.content, *(f"({mark})" for mark in marks)))


def when(moment: datetime | None) -> str:
    """Return a date, with the time of day where it has one, and nothing for an open end."""
    return "" if moment is None else day_in_figures(moment)


def _mark(remark: Remark) -> str:
    other = remark.by_source_id or (remark.by or "")[:SHORT]
    if remark.kind == "contradicts":
        return f"contradicts {other}"
    what = {"ended": "not so", "refused": "not accepted"}.get(remark.kind, remark.kind)
    return f"{what}{f' since {date_in_figures(remark.at, remark.precision)}' if remark.at else ''}" + (
        f": see {other}" if other else ""
    )
