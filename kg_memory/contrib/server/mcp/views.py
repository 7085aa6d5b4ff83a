"""The results of the memory as tools answer them: text for the model, and the same in short for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kg_memory.adapters.rendering import DATA, render_fact, section
from kg_memory.models.graph import FOR_AGENTS, Change, Episode, Fact, Review, Value
from kg_memory.retrieval.context.lines import escape_line

Data = dict[str, Any]
FACT = {"id", "subject", "predicate", "objects", "sentence", "valid_at", "invalid_at", "created_at", "expired_at"}
MARKS = {"disputed_by", "superseded_by", "doubtful_since"}
SOURCE = {"episode", "speaker", "at", "quote"}
EPISODE = {"id", "speaker", "at", "content", "remarks"}


def view_fact(fact: Fact) -> Data:
    """Return *fact* in short; what is empty is left out."""
    view = dump(fact, FACT | MARKS)
    if fact.mark:
        view["mark"] = fact.mark
    return {**view, "sources": [dump(source, SOURCE) for source in fact.sources]}


def view_episode(episode: Episode) -> Data:
    """Return *episode* in short."""
    return dump(episode, EPISODE)


def view_review(review: Review) -> Data:
    """Return *review* in short."""
    view = dump(review, {"id", "kind", "ruling", "confidence", "reason", "decided_by"})
    return {**view, "pending": view_fact(review.pending), "existing": view_fact(review.existing)}


def view_change(change: Change) -> Data:
    """Return *change* in short."""
    facts = {"before": change.before, "after": change.after}
    return {**dump(change, {"at", "kind", "cause"}), **{name: view_fact(fact) for name, fact in facts.items() if fact}}


def fact_id(text: str) -> str:
    """Return the id of a fact without ``fact:``, with which tools show it."""
    return text.strip().removeprefix("fact:")


def dump(value: Value, fields: set[str] | None = None) -> Data:
    """Return *fields* of *value*, or all of them, as JSON; what is empty is left out."""
    plain = value.model_dump(mode="json", include=fields, exclude_none=True, context=FOR_AGENTS)
    return {name: part for name, part in plain.items() if part not in ("", [], {})}


def render_facts(facts: Iterable[Fact], nothing: str) -> str:
    """Return *facts* as lines with their ids, or *nothing* where there are none."""
    lines = section("facts", (render_fact(fact, set()) for fact in facts))
    return f"{DATA}\n\n{lines}" if lines else nothing


def quote(text: str) -> str:
    """Return *text*, which somebody wrote, as part of a line."""
    return escape_line(text)
