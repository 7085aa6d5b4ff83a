"""The tools of agents: search, remember, forget and look back, with dates, sources and ids.

They are sync and async from the same steps, and answer errors that a model can correct.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel, Field

from kg_memory.adapters.namespace import (
    NamespaceTemplate,
    Where,
    place_here,
    place_of,
    validate_memory,
    validate_search_options,
    validate_speaker,
)
from kg_memory.adapters.rendering import MOST, parse_id, render_added, render_history, render_receipt, render_results
from kg_memory.errors import InputError, MemoryPaused, renaming
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import EpisodeInput, EpisodeKind, Fact
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.text.message_fields import USER
from kg_memory.validation import validate_count

SOURCE = "tool"
AGENT = "agent"
"""The author of a deletion, in the audit log."""

Answer = tuple[str, Any]
"""The text that the model reads, and the same as plain JSON for the program around it."""
Steps = Callable[..., Flow[Answer]]
"""Answers one call: takes `CallContext` and the arguments by name, yields `Call`."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The memory and the namespace of a tool, which no model chooses; the thread and the graph task of its call.

    A task that runs again keeps its id. `context` is what fills in other templates of namespaces than the tool's.
    """

    memory: GraphMemory
    namespace: str
    thread: str | None = None
    task: str | None = None
    context: Any = None

    def call(self, path: str, *args: object, **kwargs: object) -> Flow[Any]:
        """Call the verb at *path*, such as ``facts.history``, in the namespace of the tool."""
        group, _, verb = path.rpartition(".")
        owner = getattr(self.memory, group) if group else self.memory
        return (yield from call(owner, verb, *args, namespace=self.namespace, **kwargs))


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
        make("remember", Remember, partial(remember, speaker=speaker)),
        make("forget_memory", ForgetMemory, forget),
        make("memory_history", MemoryHistory, partial(_history, believed_at=believed_at)),
    ]


def _search(
    here: CallContext,
    query: str,
    as_of: str | None = None,
    limit: int | None = None,
    *,
    most: int,
    options: Mapping[str, Any],
) -> Flow[Answer]:
    results = yield from search(here, query, most if limit is None else limit, during=as_of, **options)
    return answer_results(results)


def _history(
    here: CallContext, name: str, relation: str | None = None, *, believed_at: Time | None = None
) -> Flow[Answer]:
    facts: list[Fact] = yield from here.call("facts.history", name, relation, limit=MOST, believed_at=believed_at)
    return render_history(name, facts), {"facts": [fact.model_dump(mode="json") for fact in facts]}


# Steps that other tools share


def search(
    here: CallContext, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **options: Any
) -> Flow[SearchResults]:
    """Search the memory, at most *limit* of each kind, or *of_each* times that for a caller that drops some.

    *options* are those of `GraphMemory.search`.
    """
    most = of_each * most_of(limit)
    with renaming(question="query", during="as_of"):
        results: SearchResults = yield from here.call(
            "search", query, limit=most, during=during, thread=here.thread, **options
        )
    return results


def answer_results(results: SearchResults) -> Answer:
    """Return the facts and the episodes of *results* as a model reads them, none where the memory abstains."""
    shown = results.model_copy(update={"facts": (), "episodes": ()}) if results.abstains else results
    fields = {"question", "time", "facts", "episodes", "answerable", "degraded"}
    return render_results(results), shown.model_dump(mode="json", include=fields)


def most_of(limit: int) -> int:
    """Return *limit*, `MOST` at most. Errors: `InputError` for what is no number above 0."""
    return min(validate_count("limit", limit), MOST)


def remember(
    here: CallContext,
    content: str,
    speaker: str | None,
    kind: EpisodeKind = EpisodeKind.MESSAGE,
    labels: Mapping[str, Any] = MappingProxyType({}),
) -> Flow[Answer]:
    """Remember *content*; a task that is run again after a crash remembers it once."""
    id_ = _digest(f"{here.task}/{content}") if here.task else None
    episode = EpisodeInput(
        content=content, kind=kind, speaker=speaker, thread=here.thread, source=SOURCE, source_id=id_, labels=labels
    )
    added: AddResult
    [added] = yield from here.call("add_many", [episode])
    return render_added(added), added.model_dump(mode="json")


def forget(here: CallContext, id: str, reason: str = "") -> Flow[Answer]:  # noqa: A002 - as the model is told
    """Forget the fact or the episode that a tool showed as *id*; see `GraphMemory.privacy` for what goes with it."""
    kind, own = parse_id(id)
    forgotten: ForgetReceipt = yield from here.call("privacy.forget", **{kind: own}, by=AGENT, reason=reason)
    return render_receipt(f"{kind}:{own}", forgotten), forgotten.model_dump(mode="json")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Making tools


def tool(
    memory: GraphMemory, template: NamespaceTemplate, name: str, arguments: type[BaseModel], steps: Steps
) -> BaseTool:
    """Return the tool called *name*; the docstring of *arguments* tells the model what it is for.

    An `InputError` is answered to the model as a failed call, and so is a pause; other errors are raised.
    """

    def answer(runtime: ToolRuntime = None, **values: Any) -> Flow[Answer]:  # type: ignore[assignment]
        here = _where(memory, template, runtime)
        try:
            return (yield from steps(here, **values))
        except (InputError, MemoryPaused) as error:
            raise ToolException(str(error)) from error

    function, coroutine = both(answer)
    return StructuredTool(
        name=name,
        description=_prose(arguments.__doc__ or ""),
        args_schema=arguments,
        func=function,
        coroutine=coroutine,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _prose(docstring: str) -> str:
    """Return *docstring* with one line a paragraph."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))


def _where(memory: GraphMemory, template: NamespaceTemplate, runtime: object) -> CallContext:
    """Return the place of the call; ignore a *runtime* that is not LangGraph's, which a model may have forged."""
    if isinstance(runtime, ToolRuntime):
        place = place_of(template, runtime.context, runtime.config)
        context = (runtime.context, (runtime.config or {}).get("configurable") or {})
        return CallContext(memory, place.namespace, place.thread, _task(runtime), context)
    place = place_here(template)  # where no graph runs, or the one that does hands its tools no runtime
    try:
        return CallContext(memory, place.namespace, place.thread, _task(get_runtime()))
    except (KeyError, RuntimeError):
        return CallContext(memory, place.namespace, place.thread)


def _task(runtime: object) -> str | None:
    return getattr(getattr(runtime, "execution_info", None), "task_id", None)
