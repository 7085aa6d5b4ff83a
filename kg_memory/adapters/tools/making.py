"""A tool made of steps that are written once: where it works, sync and async, and errors that a model can mend."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
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
from kg_memory.runtime.flow import Flow, T, arun, run

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
