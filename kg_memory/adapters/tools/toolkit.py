"""Build sync and async tools from the same steps, and answer errors that a model can correct."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, place_of
from kg_memory.adapters.rendering import MOST, parse_id, render_added, render_receipt, render_results
from kg_memory.errors import InputError, MemoryPaused, renaming
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
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


SOURCE = "tool"
AGENT = "agent"
"""The author of a deletion, in the audit log."""


def search(
    here: Here, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **options: Any
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
