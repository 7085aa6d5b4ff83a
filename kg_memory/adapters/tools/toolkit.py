"""A tool made of steps that are written once: where it works, sync and async, and errors that a model can mend."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel

from kg_memory.adapters.namespace import NamespaceTemplate, Place, place_here, place_of
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Episode, EpisodeInput, EpisodeKind, Fact, Kind
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.retrieval.context.templates import episode_line, fact_line
from kg_memory.runtime.flow import Flow, T, arun, run
from kg_memory.text import context_markers
from kg_memory.text.context_markers import HEADINGS, TAGS
from kg_memory.text.tokenise import terms
from kg_memory.validation import validate_count

Answer = tuple[str, Any]
"""What the model reads, and the same as plain JSON for the program around it."""
Steps = Callable[..., Flow[Answer]]
"""Answers one call: takes `Here` and the arguments by name, yields `Call` and `InThread`."""


@dataclass(frozen=True, slots=True)
class Here:
    """Where a tool is called: in which thread, and by which task of a graph; one that is run again has the same id."""

    thread: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A verb of the memory to call in the namespace of the tool, which no step and no model chooses."""

    verb: str
    given: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


def call(verb: str, *given: Any, **named: Any) -> Flow[Any]:
    """Return what the verb of the memory answers."""
    return (yield Call(verb, given, named))


@dataclass(frozen=True, slots=True)
class InThread:
    """A function of the namespace that may block; on an event loop it is called in a thread."""

    function: Callable[..., Any]
    given: tuple[Any, ...]


def in_thread(function: Callable[..., T], *given: Any) -> Flow[T]:
    """Return what *function* answers to the namespace and what is *given*."""
    answer: T = yield InThread(function, given)
    return answer


def tool(
    memory: GraphMemory, template: NamespaceTemplate, name: str, arguments: type[BaseModel], steps: Steps
) -> BaseTool:
    """Return the tool called *name*; the docstring of *arguments* tells the model what it is for.

    What a model can mend (`InputError`) is answered to it as a failed call, all else is raised.
    """

    def run_it(runtime: ToolRuntime = None, **given: Any) -> Answer:  # type: ignore[assignment]
        place, here = _where(template, runtime)
        try:
            return run(steps(here, **given), partial(_perform, memory, place.namespace))
        except InputError as error:
            raise ToolException(str(error)) from error

    async def arun_it(runtime: ToolRuntime = None, **given: Any) -> Answer:  # type: ignore[assignment]
        place, here = _where(template, runtime)
        try:
            return await arun(steps(here, **given), partial(_aperform, memory, place.namespace))
        except InputError as error:
            raise ToolException(str(error)) from error

    return StructuredTool(
        name=name,
        description=_prose(arguments.__doc__ or ""),
        args_schema=arguments,
        func=run_it,
        coroutine=arun_it,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _perform(memory: GraphMemory, namespace: str, effect: Call | InThread) -> Any:
    if isinstance(effect, InThread):
        return effect.function(namespace, *effect.given)
    return _verb(memory, effect.verb)(*effect.given, namespace=namespace, **effect.named)


async def _aperform(memory: GraphMemory, namespace: str, effect: Call | InThread) -> Any:
    if isinstance(effect, InThread):
        return await asyncio.to_thread(effect.function, namespace, *effect.given)
    return await _verb(memory, effect.verb, "a")(*effect.given, namespace=namespace, **effect.named)


def _verb(memory: GraphMemory, path: str, prefix: str = "") -> Callable[..., Any]:
    """Return the verb at *path*, such as ``facts.history``; with the prefix ``a`` its async form."""
    group, _, name = path.rpartition(".")
    verb: Callable[..., Any] = getattr(getattr(memory, group) if group else memory, f"{prefix}{name}")
    return verb


def _prose(docstring: str) -> str:
    """Return *docstring* with one line a paragraph."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))


def _where(template: NamespaceTemplate, runtime: object) -> tuple[Place, Here]:
    """Return where the call comes from; a *runtime* that is none of LangGraph's is a forgery and does not count."""
    if isinstance(runtime, ToolRuntime):
        place = place_of(template, runtime.context, runtime.config)
        return place, Here(place.thread, _task(runtime))
    place = place_here(template)  # where no graph runs, or the one that does hands its tools no runtime
    try:
        return place, Here(place.thread, _task(get_runtime()))
    except (KeyError, RuntimeError):
        return place, Here(place.thread)


def _task(runtime: object) -> str | None:
    return getattr(getattr(runtime, "execution_info", None), "task_id", None)


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


SOURCE = "tool"
AGENT = "agent"
"""Who forgets, in the log."""
MOST = 50
"""Lines of each kind that a model is shown, whatever it asks for."""
_ID = re.compile(r"(fact|episode):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def search(
    here: Here, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **manner: Any
) -> Flow[SearchResults]:
    """Return what is found, at most *limit* of each kind, or *of_each* times that where some are to be left out.

    *manner* is how `GraphMemory.search` is to search.
    """
    most = of_each * most_of(limit)
    found: SearchResults = yield from call(
        "search", query, limit=most, during=during or None, thread=here.thread, **manner
    )
    return found


def shown(found: SearchResults) -> Answer:
    """Return the facts and the episodes of *found* as a model reads them."""
    return found_lines(found), found.model_dump(mode="json", include={"question", "time", "facts", "episodes"})


def most_of(limit: int) -> int:
    """Return *limit*, `MOST` at most. Errors: `InputError` for what is no number above 0."""
    return min(validate_count("limit", limit), MOST)


def remember(here: Here, content: str, speaker: str | None, kind: EpisodeKind = EpisodeKind.MESSAGE) -> Flow[Answer]:
    """Remember *content*; a task that is run again after a crash remembers it once."""
    given = EpisodeInput(
        content=content, kind=kind, speaker=speaker, thread=here.thread, source=SOURCE,
        source_id=_digest(f"{here.task}/{content}") if here.task else None,
    )  # fmt: skip
    added: AddResult
    [added] = yield from call("add_many", [given])
    return added_lines(added), added.model_dump(mode="json")


def forget(id_: str, reason: str = "") -> Flow[Answer]:
    """Forget the fact or the episode that a tool showed as *id_*; see `GraphMemory.privacy` for what goes with it."""
    kind, own = named(id_)
    forgotten: ForgetReceipt = yield from call("privacy.forget", **{kind: own}, by=AGENT, reason=reason)
    return forgotten_lines(f"{kind}:{own}", forgotten), forgotten.model_dump(mode="json")


def known(id_: str) -> Flow[None]:
    """Do nothing if there is a fact or an episode that a tool showed as *id_*. Errors: `InputError` else."""
    kind, own = named(id_)
    yield from call("privacy.forget", **{kind: own}, by=AGENT, dry_run=True)


def named(id_: str) -> tuple[str, str]:
    """Return ``fact`` or ``episode`` and the id of it that a tool showed as *id_*.

    Errors: `InputError` when it is no such id.
    """
    match = _ID.fullmatch(id_.strip())
    if match is None:
        raise InputError(f"{id_!r} is no id of this memory: give one that search_memory showed, such as 'fact:...'")
    return match[1], match[2]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
