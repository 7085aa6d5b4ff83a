"""Our own tools: search, remember, forget and look back, with dates, sources and ids."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import Field

from kg_memory.adapters.namespace import (
    NamespaceTemplate,
    Where,
    validate_memory,
    validate_search_options,
    validate_speaker,
)
from kg_memory.adapters.rendering import MOST, render_history
from kg_memory.adapters.tools.toolkit import Answer, Here, answer_results, forget, most_of, remember, search, tool
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import Fact
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.flow import Flow
from kg_memory.text.message_fields import USER


class SearchMemory(Arguments):
    """Search the long-term memory of this user: dated facts and what was said, with sources.

    Use it before you answer anything that earlier conversations may have told: the user's life, people, work,
    preferences, plans and dates. Do not use it for general knowledge, or for what this conversation already shows.
    """

    query: str = Field(description="What to look for: a question or key words, with names.")
    as_of: str | None = Field(
        default=None,
        description="Only for a question about the past: the time that it is about, as a date or in words such as "
        "'2019', '2024-05-03' or 'last March'. Leave it out for what is so now.",
    )
    limit: int | None = Field(default=None, description=f"At most so many lines of each kind, {MOST} at most.")


class Remember(Arguments):
    """Remember something for later conversations.

    Use it when the user asks you to remember something, or tells something lasting about themselves or their world: a
    preference, a fact, a plan, a change ("I moved to Oslo"). What it contradicts is ended, not lost, so there is no
    need to forget the old first. Do not use it for small talk, for what this memory told you, or for guesses.
    """

    content: str = Field(
        description="The statement in the user's own words, complete in itself, with names and dates in it."
    )


class ForgetMemory(Arguments):
    """Forget one message with all that was learned from it, or one fact with every message that tells it, for good.

    Use it only when the user asks to have something forgotten; it cannot be undone. Search first, for the id.
    Do not use it when something has changed: remember the new statement instead, and the past stays known.
    """

    id: str = Field(description="The id as it stands at the start of a line, such as 'fact:...' or 'episode:...'.")
    reason: str = Field(default="", description="Why it is to be forgotten, in a few words.")


class MemoryHistory(Arguments):
    """Look up how something was over time: all known periods of a person, place or thing, newest first, with sources.

    Use it for "since when", "where before", "how often", "what changed". Do not use it for a single present fact.
    """

    name: str = Field(description="The person, place or thing, by its name alone, such as 'Ann' or 'Acme'.")
    relation: str | None = Field(
        default=None, description="Only this relation, such as 'lives in' or 'works at'; leave it out for all."
    )


def memory_tools(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    user: str | None = None,
    limit: int = 10,
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    believed_at: Time | None = None,
) -> list[BaseTool]:
    """Return the tools ``search_memory``, ``remember``, ``forget_memory`` and ``memory_history``, sync and async.

    The *namespace* is filled in where the tool runs, from the graph's context or ``configurable``; a model cannot name
    another one. *user* is the speaker of what ``remember`` is given, *limit* how many lines of each kind a search
    shows. *recipe* and *where* are how it searches and what it may find, as in `GraphMemory.search`, and *believed_at*
    asks by what the memory believed then; no model sees or chooses them. A call that the model can mend (an unknown id,
    a bad date) is answered as a failed one; an outage is raised. Errors: `SettingsError` for a template that cannot be
    used, `InputError` for a recipe, a filter or a time.
    """
    template = NamespaceTemplate(namespace)
    most = most_of(limit)
    make = partial(tool, validate_memory(memory), template)
    speaker = validate_speaker("user", user) or USER
    options = validate_search_options(recipe, where, believed_at=believed_at) | {"asker": speaker}
    return [
        make("search_memory", SearchMemory, partial(_search, most=most, options=options)),
        make("remember", Remember, partial(_remember, speaker=speaker)),
        make("forget_memory", ForgetMemory, _forget),
        make("memory_history", MemoryHistory, partial(_history, believed_at=believed_at)),
    ]


def _search(
    here: Here, query: str, as_of: str | None = None, limit: int | None = None, *, most: int, options: Mapping[str, Any]
) -> Flow[Answer]:
    results = yield from search(here, query, most if limit is None else limit, during=as_of, **options)
    return answer_results(results)


def _remember(here: Here, content: str, *, speaker: str) -> Flow[Answer]:
    return (yield from remember(here, content, speaker))


def _forget(here: Here, id: str, reason: str = "") -> Flow[Answer]:  # noqa: A002 - as the model is told
    return (yield from forget(here, id, reason))


def _history(here: Here, name: str, relation: str | None = None, *, believed_at: Time | None = None) -> Flow[Answer]:
    facts: list[Fact] = yield from here.call("facts.history", name, relation, limit=MOST, believed_at=believed_at)
    return render_history(name, facts), {"facts": [fact.model_dump(mode="json") for fact in facts]}
