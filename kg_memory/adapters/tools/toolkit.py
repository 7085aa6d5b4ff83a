"""Build sync and async tools from the same steps, and answer errors that a model can correct."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel

from kg_memory.adapters.calls import call, twins
from kg_memory.adapters.namespace import NamespaceTemplate, place_here, place_of
from kg_memory.errors import InputError, MemoryPaused
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Episode, EpisodeInput, EpisodeKind, Fact, Kind
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.retrieval.context.templates import episode_line, fact_line
from kg_memory.runtime.flow import Flow
from kg_memory.text import context_markers
from kg_memory.text.context_markers import HEADINGS, TAGS
from kg_memory.text.tokenise import terms
from kg_memory.validation import validate_count

Answer = tuple[str, Any]
"""The text that the model reads, and the same as plain JSON for the program around it."""
Steps = Callable[..., Flow[Answer]]
"""Answers one call: takes `Here` and the arguments by name, yields `Call`."""


@dataclass(frozen=True, slots=True)
class Here:
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

    function, coroutine = twins(answer)
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


def _where(memory: GraphMemory, template: NamespaceTemplate, runtime: object) -> Here:
    """Return the place of the call; ignore a *runtime* that is not LangGraph's, which a model may have forged."""
    if isinstance(runtime, ToolRuntime):
        place = place_of(template, runtime.context, runtime.config)
        context = (runtime.context, (runtime.config or {}).get("configurable") or {})
        return Here(memory, place.namespace, place.thread, _task(runtime), context)
    place = place_here(template)  # where no graph runs, or the one that does hands its tools no runtime
    try:
        return Here(memory, place.namespace, place.thread, _task(get_runtime()))
    except (KeyError, RuntimeError):
        return Here(memory, place.namespace, place.thread)


def _task(runtime: object) -> str | None:
    return getattr(getattr(runtime, "execution_info", None), "task_id", None)


DATA = context_markers.QUOTED
NOTHING = "Nothing in memory about this."


def render_results(results: SearchResults) -> str:
    """Return the facts and the episodes of *results*, best first; where the memory abstains, the line that says so."""
    if results.abstains:
        return escape_line(str(results.answerable))
    query_terms = set(terms(results.question))
    facts = section("facts", (render_fact(fact, query_terms) for fact in results.facts))
    visible = (episode for episode in results.episodes if not episode.withheld)
    episodes = section("episodes", (render_episode(episode, query_terms) for episode in visible))
    time = f"Asked: {escape_line(results.time.reading)}." if results.time and results.time.since else ""
    return "\n\n".join(filter(None, (DATA, time, facts, episodes))) if facts or episodes else NOTHING


def render_history(name: str, facts: Iterable[Fact]) -> str:
    """Return the periods of the entity called *name*."""
    periods = section("facts", (render_fact(fact, set()) for fact in facts))
    if not periods:
        return (
            f"Nothing in memory about what is called {escape_line(name)!r}; search_memory finds names by other words."
        )
    return f"{DATA} Newest first.\n\n{periods}"


def render_added(added: AddResult) -> str:
    """Return the facts in an episode that was just remembered."""
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
    return "\n".join(
        [f"Remembered as {id_}.", *(lines or ["No fact was found in it; its words are found by a search."])]
    )


def render_receipt(id_: str, gone: ForgetReceipt) -> str:
    """Return the numbers of what was forgotten with *id_*; the words themselves are gone."""
    counts = f"messages: {len(gone.episodes)}, facts: {len(gone.facts)}, people and things: {len(gone.entities)}"
    again = f"\nFacts that hold again, as what had ended them is gone: {len(gone.restored)}." if gone.restored else ""
    return f"Forgotten for good: {id_}; in all {counts}.{again}"


def section(kind: Kind, lines: Iterable[str]) -> str:
    """Return *lines* under the heading of their kind; "" when there are none."""
    body = list(lines)
    return "\n".join((HEADINGS[kind], f"<{TAGS[kind]}>", *body, f"</{TAGS[kind]}>")) if body else ""


def render_fact(fact: Fact, query_terms: set[str]) -> str:
    """Return a fact's line with its id."""
    return f"- fact:{fact.id} {fact_line(fact, query_terms).removeprefix('- ')}"


def render_episode(episode: Episode, query_terms: set[str]) -> str:
    """Return an episode's line with its id."""
    return f"- episode:{episode.id} {episode_line(episode, query_terms).removeprefix('- ')}"


SOURCE = "tool"
AGENT = "agent"
"""The author of a deletion, in the audit log."""
MOST = 50
"""The most lines of each kind that a model sees, whatever limit it asks for."""
_ID = re.compile(r"(fact|episode):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def search(
    here: Here, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **options: Any
) -> Flow[SearchResults]:
    """Search the memory, at most *limit* of each kind, or *of_each* times that for a caller that drops some.

    *options* are those of `GraphMemory.search`.
    """
    most = of_each * most_of(limit)
    results: SearchResults = yield from here.call(
        "search", query, limit=most, during=during or None, thread=here.thread, **options
    )
    return results


def answer_results(results: SearchResults) -> Answer:
    """Return the facts and the episodes of *results* as a model reads them, none where the memory abstains."""
    shown = results.model_copy(update={"facts": (), "episodes": ()}) if results.abstains else results
    fields = {"question", "time", "facts", "episodes", "answerable"}
    return render_results(results), shown.model_dump(mode="json", include=fields)


def most_of(limit: int) -> int:
    """Return *limit*, `MOST` at most. Errors: `InputError` for what is no number above 0."""
    return min(validate_count("limit", limit), MOST)


def remember(
    here: Here,
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


def forget(here: Here, id_: str, reason: str = "") -> Flow[Answer]:
    """Forget the fact or the episode that a tool showed as *id_*; see `GraphMemory.privacy` for what goes with it."""
    kind, own = parse_id(id_)
    forgotten: ForgetReceipt = yield from here.call("privacy.forget", **{kind: own}, by=AGENT, reason=reason)
    return render_receipt(f"{kind}:{own}", forgotten), forgotten.model_dump(mode="json")


def parse_id(id_: str) -> tuple[str, str]:
    """Return ``fact`` or ``episode`` and the id of it that a tool showed as *id_*.

    Errors: `InputError` for another id.
    """
    match = _ID.fullmatch(id_.strip())
    if match is None:
        raise InputError(f"id must be one that a search showed, such as 'fact:...', got {id_!r}")
    return match[1], match[2]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
