"""The table columns for each type of result, and functions that describe facts, messages and reviews as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter

from kg_memory.cli.output import SHORT, Columns, count_noun
from kg_memory.models.graph import (
    Change,
    Community,
    Consequence,
    Entity,
    Episode,
    Fact,
    IdentityDecision,
    PredicateInfo,
    Remark,
    Review,
    Source,
)
from kg_memory.models.operations import AuditEntry, DailyUsage
from kg_memory.models.results import TimelineEvent
from kg_memory.retrieval.context.lines import tell_episode
from kg_memory.text.dated import date_in_figures, day_in_figures, period_in_figures

DONE = {"accept": "accepted", "reject": "rejected", "edit": "edited", "undo": "undone"}
DOES = {
    "supersedes": "one fact ended when the other began",
    "conflicts": "only one of them is believed",
    "fulfilled": "the plan was carried out",
    "dropped": "the plan was dropped",
    "replaced": "another plan took its place",
    "both": "both hold",
    "refused": "the fact in review is not believed",
    "waiting": "it waits for review again",
}
# The number of members of a community that a table cell names.
_SHOWN = 8


def describe_fact(fact: Fact) -> str:
    """Return the sentence of *fact*, with a warning if needed: "Ann works at Acme (doubtful since 2024-05)"."""
    text = fact.sentence
    text = f"{text} ({fact.mark})" if fact.mark else text
    if fact.doubtful_since is None:
        return f"{text} (nothing known in its place)" if fact.absent else text
    return f"{text} (doubtful since {date_in_figures(fact.doubtful_since, fact.doubtful_precision)})"


def since(fact: Fact) -> str:
    """Return the date when a fact began, as precisely as it is known: "2019", "2019-05".

    "by 2024-05-14" means that it began then or earlier.
    """
    return proposed_validity(fact.model_copy(update={"invalid_at": None})).partition(" - ")[0]


def until(fact: Fact) -> str:
    """Return the date when a fact ended, as precisely as it is known: "2021-05"; ``""`` if it has not ended."""
    return date_in_figures(fact.invalid_at, fact.end_precision) if fact.invalid_at else ""


def validity(fact: Fact) -> str:
    """Return the period in which a fact holds: "2019 - 2021", or "not believed" if it is no longer believed."""
    return "not believed" if fact.expired_at is not None else period_in_figures(fact)


def proposed_validity(fact: Fact) -> str:
    """Return the period in which a fact will hold if a person accepts it in its review: "2019 - 2021"."""
    return period_in_figures(fact.model_copy(update={"reviewed": True, "disputed_by": ()}))


def first_quote(fact: Fact) -> str:
    """Return the quote of the first message that states a fact; if it has no source, return the fact's sentence."""
    return fact.sources[0].quote if fact.sources else fact.sentence


def source(fact: Fact) -> str:
    """Return the first source of a fact, and how many more there are: "Ann, 2024-05-14 [m1] and 2 times more"."""
    if not fact.sources:
        return ""
    more = f" and {count_noun(len(fact.sources) - 1, 'time')} more" if len(fact.sources) > 1 else ""
    return f"{said_by(fact.sources[0])}{more}"


def said_by(source: Source) -> str:
    """Return speaker, date and original id of a message that states a fact: "Ann, 2024-05-14 [m1]"."""
    name = f" [{source.source_id}]" if source.source_id else ""
    return f"{source.speaker or source.source or 'text'}, {source.at:%Y-%m-%d}{name}"


def episode_origin(episode: Episode) -> str:
    """Return where a stored message comes from, for a table: its source id, else its thread, source or own id."""
    return episode.source_id or episode.thread or episode.source or episode.id


def describe_episode(episode: Episode) -> str:
    """Return the text of a stored message, with remarks in brackets, such as "(not so since 2024-05: see 1a2b3c4d)"."""
    text, _ = tell_episode(episode)
    return " ".join((text, *(f"({mark})" for mark in dict.fromkeys(map(_describe_remark, episode.remarks)))))


def _describe_remark(remark: Remark) -> str:
    episode = remark.by_source_id or (remark.by or "")[:SHORT]
    if remark.kind == "contradicts":
        return f"contradicts {episode}"
    text = {"ended": "not so", "refused": "not accepted"}.get(remark.kind, remark.kind)
    text += f" since {date_in_figures(remark.at, remark.precision)}" if remark.at else ""
    return f"{text}: see {episode}" if episode else text


def when(moment: datetime | None) -> str:
    """Return a time as a date, with the time of day if it has one; ``""`` for None."""
    return "" if moment is None else day_in_figures(moment)


def _describe_status(episode: Episode) -> str:
    at_step = f" at {episode.step}" if episode.step else ""
    return f"{episode.status.value}{at_step}{f': {episode.reason}' if episode.reason else ''}"


def _inside(community: Community) -> str:
    names = community.parts or community.members
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _describe_later(review: Review) -> str:
    held = proposed_validity if review.ruling == "waiting" else validity
    return f"{review.pending.sentence} ({held(review.pending)})"


def _describe_earlier(review: Review) -> str:
    return "" if review.kind == "admission" else f"{review.existing.sentence} ({validity(review.existing)})"


def _describe_ruling(review: Review) -> str:
    if review.decisions:
        last = review.decisions[-1]
        why = f" ({last.reason})" if last.reason else ""
        return f"{DONE[last.decision]}: {DOES[review.ruling]}, by {last.by}, {when(last.at)}{why}"
    return "waits for review" if review.ruling == "waiting" else f"by itself: {DOES[review.ruling]}"


def _side(decision: IdentityDecision, side: int) -> str:
    entity = decision.second if side else decision.entity
    latest = " ".join(decision.latest[side])
    return f"{entity.name if entity else ''}{f': {latest}' if latest else ''}"


def _attribute_columns(names: str) -> Columns:
    return {name.replace("_", " "): name for name in names.split()}


def _fact_columns(attribute: str, headings: str) -> Columns:
    """Return columns of the table `FACT` for the fact in the attribute *attribute* of each row, such as ``"pending"``.

    *headings*: the headings of the columns: ``"since until"``.
    """
    fact_of = attrgetter(attribute)
    return {heading: lambda value, of=FACT[heading]: of(fact_of(value)) for heading in headings.split()}  # type: ignore[misc]


FACT: Columns = {"fact": describe_fact, "since": since, "until": until, "said": first_quote, "source": source}
EPISODE: Columns = {"at": "at", "by": "speaker", "what": describe_episode, "source": episode_origin}
COLUMNS: Mapping[type, Columns] = {
    Fact: FACT,
    Episode: {**EPISODE, "state": _describe_status},
    Entity: _attribute_columns("name type aliases last_seen summary"),
    Community: {"community": "name", "level": "level", "members": _inside, "summary": "summary"},
    TimelineEvent: {
        "when": lambda event: date_in_figures(event.at, event.precision),
        "what": "kind",
        **_fact_columns("fact", "fact said source"),
    },
    Change: {
        "learned at": "at",
        "what": "kind",
        "fact": lambda change: describe_fact(change.fact),
        "before": lambda change: period_in_figures(change.before) if change.before else "-",
        "now": lambda change: period_in_figures(change.after) if change.after else "-",
    },
    Consequence: {
        "steps": lambda consequence: len(consequence.path),
        **_fact_columns("fact", "fact since until"),
        "by way of": lambda consequence: " > ".join(step.sentence for step in consequence.path[:-1]),
    },
    Review: {
        "id": lambda review: review.id[:SHORT],
        "verdict": lambda review: f"{review.kind} {review.confidence:.2f}",
        "later fact": _describe_later,
        "earlier fact": _describe_earlier,
        "state": _describe_ruling,
        "because": "reason",
        **_fact_columns("pending", "said source"),
    },
    IdentityDecision: {
        "id": lambda decision: decision.id[:SHORT],
        **_attribute_columns("kind state confidence"),
        "entity": lambda decision: _side(decision, 0),
        "other": lambda decision: _side(decision, 1),
        "by": lambda decision: decision.undone_by or decision.by,
        "at": lambda decision: when(decision.undone_at or decision.at),
        "reason": lambda decision: decision.undone_reason or decision.reason,
    },
    PredicateInfo: _attribute_columns("name canonical single_valued origin"),
    DailyUsage: _attribute_columns("day calls input_tokens cached_tokens output_tokens money"),
    AuditEntry: _attribute_columns("number at kind complete episodes facts entities residue by reason hash"),
}
"""The table columns for each type of value."""


def columns_of(values: Sequence[object]) -> Columns:
    """Return the table columns for *values*, a list of results of one type, such as facts.

    Changes also get a column with the source of each change.
    """
    columns = COLUMNS[type(values[0])]
    changes = [value for value in values if isinstance(value, Change)]
    if not changes:
        return columns
    facts = [fact for change in changes for fact in (change.before, change.after) if fact]
    said = {source.episode: said_by(source) for fact in facts for source in fact.sources}
    return {**columns, "source": lambda change: said.get(change.cause) or source(change.fact)}
