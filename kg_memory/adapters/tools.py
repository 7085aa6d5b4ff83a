"""LangChain tools with which an agent searches, adds to and deletes from the memory, and looks up histories.

Each works sync and async. Errors that a model can correct are returned to the model as failed tool calls.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel, Field

from kg_memory.adapters.messages import index_of_question
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
from kg_memory.errors import InputError, MemoryPaused, NotFound, renaming
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
FORGET = "forget_memory"
AGENT = "agent"
"""The author of an agent's deletions in the audit log."""

Answer = tuple[str, Any]
"""The result of a tool: the text for the model, and the same as plain JSON for the application."""
Steps = Callable[..., Flow[Answer]]
"""A function that answers one tool call, given a `CallContext` and the arguments by name."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of one tool call: the memory, the user's namespace and the thread id of the conversation.

    `task`: the id of the LangGraph task, the same when the task runs again.
    """

    memory: GraphMemory
    namespace: str
    thread: str | None = None
    task: str | None = None
    context: Any = None
    namespaces: Sequence[str] = ()
    """The namespaces to search; none means `namespace` only."""

    def call(self, path: str, *args: object, **kwargs: object) -> Flow[Any]:
        """Call a method of the memory in the namespace of this tool call, and return its result.

        *path*: the method, such as ``"search"`` or ``"facts.history"``.
        """
        group, _, verb = path.rpartition(".")
        owner = getattr(self.memory, group) if group else self.memory
        return (yield from call(owner, verb, *args, **{"namespace": self.namespace, **kwargs}))


class SearchMemory(Arguments):
    """Search this user's long-term memory. Returns dated facts and past messages, with their sources and ids.

    Call this before you answer a question that earlier conversations may have covered: the user's life, people, work,
    preferences, plans and dates. Do not call this for general knowledge, or for what is already in this conversation.
    """

    query: str = Field(description="What to search for: a question or key words, with names of people or things.")
    as_of: str | None = Field(
        default=None,
        description="Only for questions about the past: the time in question, as a date or in words, such as '2019', "
        "'2024-05-03' or 'last March'. Leave it out for questions about the present.",
    )
    limit: int | None = Field(default=None, description=f"The maximum number of facts and of messages, up to {MOST}.")


class Remember(Arguments):
    """Save a statement to this user's long-term memory, for later conversations.

    Call this when the user asks you to remember something, or states something lasting about themselves or their
    world: a preference, a fact, a plan, or a change ("I moved to Oslo"). An older fact that the statement contradicts
    is ended automatically and kept as history, so do not forget it first. Do not save small talk, guesses, or
    information that came from this memory.
    """

    content: str = Field(
        description="One statement in the user's own words that can be understood by itself, with names and dates."
    )


class ForgetMemory(Arguments):
    """Permanently delete one message with all facts learned from it, or one fact with every message that states it.

    Call this only when the user asks you to forget something: it cannot be undone. Call search_memory first, to get
    the id. The user's request is deleted too: if it says something else to keep, call remember with that. Do not call
    this when something has changed: call remember with the new statement instead, which keeps the past.
    """

    id: str = Field(description="The id at the start of a line that a search shows: 'fact:...' or 'episode:...'.")
    reason: str = Field(default="", description="Why it is to be forgotten, in a few words that do not quote it.")


class MemoryHistory(Arguments):
    """Look up the history of one person, place or thing: its past and present facts with dates, newest first.

    Call this for questions such as "since when", "where before", "how often" or "what changed". For a fact that holds
    now, call search_memory instead.
    """

    name: str = Field(description="The name of one person, place or thing, and nothing else, such as 'Ann' or 'Acme'.")
    relation: str | None = Field(
        default=None, description="Only facts with this relation, such as 'lives in' or 'works at'. Leave out for all."
    )


def memory_tools(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    recall_from: Sequence[str] = (),
    user: str | None = None,
    limit: int = 10,
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    believed_at: Time | None = None,
) -> list[BaseTool]:
    """Return LangChain tools for an agent: ``search_memory``, ``remember``, ``forget_memory`` and ``memory_history``.

    Example::

        agent = create_agent("openai:gpt-4.1-mini", tools=memory_tools(memory))
        agent.invoke({"messages": [("user", "Remember: I live in Oslo.")]}, context={"user_id": "ann"})

    - *namespace*: a template, filled in for each call from the graph's context or ``config["configurable"]``; the model
      cannot choose another one.
    - *recall_from*: templates of further namespaces that ``search_memory`` searches; the other tools do not reach them.
    - *user*: the speaker of statements that ``remember`` saves; None means ``"user"``.
    - *limit*: how many facts, and how many messages, a search returns by default (1 to 50).
    - *recipe*, *where* and *believed_at*: as in `GraphMemory.search`, hidden from the model.

    A call that the model can correct (an unknown id, an invalid date) returns an error message to the model; an outage
    raises. Errors: `SettingsError` for an invalid template or *user*; `InputError` for other invalid arguments.
    """
    template = NamespaceTemplate(namespace, recall_from)
    most = most_of(limit)
    make = partial(tool, validate_memory(memory), template)
    speaker = validate_speaker("user", user) or USER
    options = validate_search_options(recipe, where, believed_at=believed_at) | {"asker": speaker}
    return [
        make("search_memory", SearchMemory, partial(_search, most=most, options=options)),
        make("remember", Remember, partial(remember, speaker=speaker)),
        make(FORGET, ForgetMemory, forget),
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
    return answer_results((yield from search(here, query, most if limit is None else limit, during=as_of, **options)))


def _history(
    here: CallContext, name: str, relation: str | None = None, *, believed_at: Time | None = None
) -> Flow[Answer]:
    facts: list[Fact] = yield from here.call("facts.history", name, relation, limit=MOST, believed_at=believed_at)
    return render_history(name, relation, facts), {"facts": [fact.model_dump(mode="json") for fact in facts]}


# Steps shared with other tools, such as those of the MCP server


def search(
    here: CallContext, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **options: Any
) -> Flow[SearchResults]:
    """Search the memory for *query*; return up to ``limit * of_each`` results of each kind, such as facts.

    *of_each* is more than 1 for a tool that shows *limit* facts, but may drop some of them. *during*: the period asked
    about, such as "2019". *options*: other arguments of `GraphMemory.search`.
    """
    most = of_each * most_of(limit)
    with renaming(question="query", during="as_of"):
        place = {"namespace": here.namespaces or here.namespace, "thread": here.thread}
        results: SearchResults = yield from here.call("search", query, limit=most, during=during, **place, **options)
    return results


def answer_results(results: SearchResults) -> Answer:
    """Return search results as text for the model and as JSON.

    If the memory probably has no answer, facts and episodes are left out.
    """
    shown = results.model_copy(update={"facts": (), "episodes": ()}) if results.abstains else results
    fields = {"question", "time", "facts", "episodes", "answerable", "degraded"}
    return render_results(results), shown.model_dump(mode="json", include=fields)


def most_of(limit: int) -> int:
    """Return *limit*, the number of results that the model asks for, but at most `MOST`.

    Errors: `InputError` if it is not an integer above 0.
    """
    return min(validate_count("limit", limit), MOST)


def remember(
    here: CallContext,
    content: str,
    speaker: str | None,
    kind: EpisodeKind = EpisodeKind.MESSAGE,
    labels: Mapping[str, Any] = MappingProxyType({}),
) -> Flow[Answer]:
    """Add *content* to the memory as a message; return the facts found in it, as text for the model and as JSON.

    *speaker*: its author. *kind* and *labels*: as in `GraphMemory.add`. A LangGraph task that runs again after a crash
    adds it only once.
    """
    id_ = _digest(f"{here.task}/{content}") if here.task else None
    episode = EpisodeInput(
        content=content, kind=kind, speaker=speaker, thread=here.thread, source=SOURCE, source_id=id_, labels=labels
    )
    added: AddResult
    [added] = yield from here.call("add_many", [episode])
    return render_added(added), added.model_dump(mode="json")


def forget(here: CallContext, id: str, reason: str = "") -> Flow[Answer]:  # noqa: A002 - as the model is told
    """Permanently delete the fact or message with the id *id*, as shown by a tool; return the number of deletions.

    *id*: ``"fact:..."`` or ``"episode:..."`` (a message). *reason*: for the audit log. The result is text for the model
    and JSON. See `GraphMemory.privacy.forget` for what is deleted with it. Errors: `InputError` for an invalid or
    unknown id.
    """
    kind, own = parse_id(id)
    forgotten: ForgetReceipt = yield from here.call("privacy.forget", **{kind: own}, by=AGENT, reason=reason)
    return render_receipt(f"{kind}:{own}", forgotten), forgotten.model_dump(mode="json")


def has_forgotten(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the tool ``forget_memory`` was called with success since the last message of the user."""
    turn = messages[index_of_question(messages) or 0 :]
    return any(isinstance(each, ToolMessage) and (each.name, each.status) == (FORGET, "success") for each in turn)


def forget_request(memory: GraphMemory, namespace: str, source_ids: Sequence[str]) -> Flow[None]:
    """Delete the messages with *source_ids*, in which a user asked to forget something: they repeat it."""
    where = {"source_id": {"$in": list(source_ids)}}
    for episode in (yield from call(memory.episodes, "list", where=where, namespace=namespace)):
        reason = "it asked to forget something"
        with suppress(NotFound):
            yield from call(memory.privacy, "forget", episode=episode.id, by=AGENT, reason=reason, namespace=namespace)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Making tools


def tool(
    memory: GraphMemory, template: NamespaceTemplate, name: str, arguments: type[BaseModel], steps: Steps
) -> BaseTool:
    """Return a LangChain tool *name* that calls ``steps(context, **values)`` with the argument values from the model.

    *arguments*: the schema of the values; its docstring is the tool's description. *template*: the namespace, such as
    "{user_id}".
    """

    def answer(runtime: ToolRuntime = None, **values: Any) -> Flow[Answer]:  # type: ignore[assignment]
        here = _call_context(memory, template, runtime)
        try:
            return (yield from steps(here, **values))
        except (InputError, MemoryPaused) as error:
            raise ToolException(str(error)) from error

    function, coroutine = both(answer)
    return StructuredTool(
        name=name,
        description=_unwrap(arguments.__doc__ or ""),
        args_schema=arguments,
        func=function,
        coroutine=coroutine,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _unwrap(docstring: str) -> str:
    return "\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))


def _call_context(memory: GraphMemory, template: NamespaceTemplate, runtime: object) -> CallContext:
    if isinstance(runtime, ToolRuntime):  # a model may have forged another object
        place = place_of(template, runtime.context, runtime.config)
        context = (runtime.context, (runtime.config or {}).get("configurable") or {})
        return CallContext(memory, place.namespace, place.thread, _task(runtime), context, place.namespaces)
    place = place_here(template)  # no graph runs, or the graph passes no runtime to its tools
    here = CallContext(memory, place.namespace, place.thread, namespaces=place.namespaces)
    try:
        return replace(here, task=_task(get_runtime()))
    except (KeyError, RuntimeError):
        return here


def _task(runtime: object) -> str | None:
    return getattr(getattr(runtime, "execution_info", None), "task_id", None)
