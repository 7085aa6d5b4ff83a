"""What a tool shows to a model, purely: lines that begin with the id to name them by, escaped, as data.

No stored text can forge a line or an id, or close a section.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def found_lines(found: SearchResults) -> str:
    """Return the facts and the episodes of *found*, best first."""
    wanted = set(terms(found.question))
    facts = section("facts", (fact_shown(each, wanted) for each in found.facts))
    episodes = section("episodes", (episode_shown(each, wanted) for each in found.episodes if not each.withheld))
    asked = f"Asked: {escape_line(found.time.reading)}." if found.time and found.time.since else ""
    return "\n\n".join(filter(None, (DATA, asked, facts, episodes))) if facts or episodes else NOTHING


def history_lines(name: str, facts: Iterable[Fact]) -> str:
    """Return the periods of what is called *name*."""
    periods = section("facts", (fact_shown(each, set()) for each in facts))
    if not periods:
        return (
            f"Nothing in memory about what is called {escape_line(name)!r}; search_memory finds names by other words."
        )
    return f"{DATA} Newest first.\n\n{periods}"


def added_lines(added: AddResult) -> str:
    """Return what was found in what is remembered now."""
    id_ = f"episode:{added.episode}"
    if added.error:
        return f"Saved word for word as {id_}, but it could not be read: {escape_line(added.error)}"
    if not added.new and not added.facts:
        return f"Already known, as {id_}."
    told_of = (
        ("Facts in it:", added.facts),
        ("No longer so because of it:", added.ended),
        ("Waits for a person to review it:", added.pending),
    )
    lines = [
        line for head, sentences in told_of if sentences for line in (head, *(f"- {escape_line(s)}" for s in sentences))
    ]
    return "\n".join(
        [f"Remembered as {id_}.", *(lines or ["No fact was found in it; its words are found by a search."])]
    )


def forgotten_lines(id_: str, gone: ForgetReceipt) -> str:
    """Return what went with what *id_* names, by its numbers: the words of it are gone."""
    counts = f"messages: {len(gone.episodes)}, facts: {len(gone.facts)}, people and things: {len(gone.entities)}"
    again = f"\nFacts that hold again, as what had ended them is gone: {len(gone.restored)}." if gone.restored else ""
    return f"Forgotten for good: {id_}; in all {counts}.{again}"


def section(kind: Kind, lines: Iterable[str]) -> str:
    """Return *lines* under the heading of their kind; "" when there are none."""
    shown = list(lines)
    return "\n".join((HEADINGS[kind], f"<{TAGS[kind]}>", *shown, f"</{TAGS[kind]}>")) if shown else ""


def fact_shown(fact: Fact, wanted: set[str]) -> str:
    """Return a fact's line with its id."""
    return f"- fact:{fact.id} {fact_line(fact, wanted).removeprefix('- ')}"


def episode_shown(episode: Episode, wanted: set[str]) -> str:
    """Return an episode's line with its id."""
    return f"- episode:{episode.id} {episode_line(episode, wanted).removeprefix('- ')}"
