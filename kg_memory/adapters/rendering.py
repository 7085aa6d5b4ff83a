"""Render results of the memory as text for a language model, for the agent tools and the MCP server's tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg_memory.errors import InputError
from kg_memory.models.graph import Episode, Fact, Kind
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.retrieval.context.templates import episode_line, fact_line
from kg_memory.text import context_markers
from kg_memory.text.context_markers import HEADINGS, TAGS
from kg_memory.text.tokenise import terms

DATA = context_markers.QUOTED
NOTHING = "Nothing in memory about this."
MOST = 50
"""The most result lines of each kind that a tool shows, whatever limit the model asks for."""
_ID = re.compile(r"(fact|episode):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def render_results(results: SearchResults) -> str:
    """Render the facts and messages found by a search as text for a model, best first, each with its id."""
    if results.abstains:
        return escape_line(str(results.answerable))
    query_terms = set(terms(results.question))
    facts = section("facts", (render_fact(fact, query_terms, results.home) for fact in results.facts))
    visible = (episode for episode in results.episodes if not episode.withheld)
    episodes = section("episodes", (render_episode(episode, query_terms, results.home) for episode in visible))
    time = f"Asked: {escape_line(results.time.reading)}." if results.time and results.time.since else ""
    return "\n\n".join(filter(None, (DATA, time, facts, episodes))) if facts or episodes else NOTHING


def render_history(name: str, relation: str | None, facts: Iterable[Fact]) -> str:
    """Render the past and present facts about the entity *name* as text for a model, one line for each period."""
    periods = section("facts", (render_fact(fact, set()) for fact in facts))
    if not periods:
        kind = f"with the relation {escape_line(relation)!r} " if relation else ""
        other = "leave the relation out to see all" if relation else "search_memory finds names by other words"
        return f"Nothing {kind}in memory about what is called {escape_line(name)!r}; {other}."
    return f"{DATA} Newest first.\n\n{periods}"


def render_added(added: AddResult) -> str:
    """Render the result of adding a message as text for a model: its id, its facts, and ended facts."""
    id_ = f"episode:{added.episode}"
    if added.error:
        return f"Saved word for word as {id_}, but it could not be read: {escape_line(added.error)}"
    if not added.new and not added.facts:
        return f"Already known, as {id_}."
    sections = (
        ("Facts in it:", added.facts),
        ("No longer so because of it:", added.ended),
        ("Waits for a person to review it:", added.pending),
    )
    lines: list[str] = []
    for head, sentences in sections:
        if sentences:
            lines += [head, *(f"- {escape_line(sentence)}" for sentence in sentences)]
    return "\n".join([f"Remembered as {id_}.", *(lines or ["No fact was found in it; a search finds its words."])])


def render_receipt(id_: str, gone: ForgetReceipt) -> str:
    """Render the result of a deletion as text for a model: the numbers of deleted messages, facts and entities."""
    counts = f"messages: {len(gone.episodes)}, facts: {len(gone.facts)}, people and things: {len(gone.entities)}"
    again = f"\nFacts that hold again, as what had ended them is gone: {len(gone.restored)}." if gone.restored else ""
    return f"Forgotten for good: {id_}; in all {counts}.{again}"


def section(kind: Kind, lines: Iterable[str]) -> str:
    """Join *lines* under the heading and between the tags of *kind*, such as ``"facts"``; ``""`` without lines."""
    body = list(lines)
    return "\n".join((HEADINGS[kind], f"<{TAGS[kind]}>", *body, f"</{TAGS[kind]}>")) if body else ""


def render_fact(fact: Fact, query_terms: set[str], home: str | None = None) -> str:
    """Render a fact as one line of text with its id: ``- fact:ID Ann lives in Oslo (since 2024) [mail]``."""
    return f"- fact:{fact.id} {fact_line(fact, query_terms, home).removeprefix('- ')}"


def render_episode(episode: Episode, query_terms: set[str], home: str | None = None) -> str:
    """Render a stored message or text ("episode") as one line of text with its id: ``- episode:ID ...``.

    *query_terms* and *home*: as for `render_fact`.
    """
    return f"- episode:{episode.id} {episode_line(episode, query_terms, home).removeprefix('- ')}"


def parse_id(id_: str) -> tuple[str, str]:
    """Split an id shown by a tool into its kind and the id: ``"fact:<uuid>"`` -> ``("fact", "<uuid>")``.

    Errors: `InputError`.
    """
    match = _ID.fullmatch(id_.strip())
    if match is None:
        raise InputError(f"id must be one that a search showed, such as 'fact:...', got {id_!r}")
    return match[1], match[2]
