"""Steps as nodes of a LangGraph graph, sync and async, with LangGraph or without it.

LangGraph shows the steps in traces and streams. If no trace or stream observes them, a `Pipeline` runs the steps one
after another by the same nodes and edges, which saves LangGraph's overhead and its import: see "Steps that nobody sees"
in `docs/decisions.md`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kg_memory.errors import KGMemoryError
from kg_memory.models.operations import StepUsage
from kg_memory.runtime import telemetry
from kg_memory.runtime.caches import CACHED_ANSWERS, BoundedCache, CachedAnswers, GraphCache
from kg_memory.runtime.config import RunConfig
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Call, both, call
from kg_memory.runtime.flow import Flow, T
from kg_memory.runtime.telemetry import log_end, log_step_failure
from kg_memory.settings import Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

START, END = "__start__", "__end__"
"""LangGraph's names for the start and the end of a graph."""
TRACING = tuple(f"{prefix}_{name}" for prefix in ("LANGSMITH", "LANGCHAIN") for name in ("TRACING", "TRACING_V2"))
"""The environment variables that switch LangSmith's tracing on."""
MIN_TIME = 10**9
"""Numbers from here on are times in microseconds, not counts."""

State = Mapping[str, Any]
Update = dict[str, Any]
"""The keys that a step adds to a state."""
Step = Callable[[Any, Settings], Flow[Update]]
FindCache = Callable[[State, str], GraphCache | None]
"""Returns the stored answers of a model, by a state and the model's name."""
Codec = Callable[[State], State]
"""Converts a LangGraph state into the values of the steps, or these values into a LangGraph state."""
Write = Callable[[Update], None]
"""Writes an event of a step for ``stream_mode="custom"``."""
Take = Callable[[Any, Any, Write], T]
"""Runs a step on a state, with the context of the run and the writer of its events."""
OnFailure = Callable[[State, str, Exception, bool], Flow[str | None]]
"""Handles a failure, by the state, the name of the step, the error, and whether the step itself raised it; returns the
status of the episode, if it stores one."""


MOST_STEPS = 1000
"""The most steps that LangGraph allows in one run; more than those after which a pipeline gives up by itself."""


Branch = tuple[Callable[[Any], Hashable], Mapping[Hashable, str]]
"""A function that chooses by the state, and the names of the next nodes by its choices."""


@dataclass(frozen=True)
class PipelineNode:
    """A node of a graph that runs one step, sync or async."""

    name: str
    take: Take[Update]
    atake: Take[Awaitable[Update]]
    decode: Codec
    encode: Codec

    def as_runnable(self) -> Any:
        """Return this node as a `Runnable`, for a LangGraph graph."""
        return _runnable_class()(self)


@cache
def _runnable_class() -> Any:
    from langchain_core.runnables import Runnable  # noqa: PLC0415 - LangGraph takes a second to import
    from langgraph.runtime import get_runtime  # noqa: PLC0415

    class NodeRunnable(Runnable[Any, State]):
        """Adapter that makes a `PipelineNode` (a step of a pipeline) a node of a LangGraph graph."""

        def __init__(self, node: PipelineNode) -> None:
            self.node, self.name = node, node.name

        def invoke(self, input: Any, config: Any = None, **_: Any) -> State:  # noqa: A002, ARG002
            runtime: Any = get_runtime()
            node = self.node
            return node.encode(node.take(node.decode(input), runtime.context, runtime.stream_writer))

        async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> State:  # noqa: A002, ARG002
            runtime: Any = get_runtime()
            node = self.node
            return node.encode(await node.atake(node.decode(input), runtime.context, runtime.stream_writer))

    return NodeRunnable


class Pipeline:
    """A graph of steps; LangGraph runs it only if a trace or stream observes the steps."""

    def __init__(
        self,
        name: str,
        nodes: list[PipelineNode],
        edges: Mapping[str, str | Branch],
        schemas: tuple[Any, Any, Any],
        decode: Codec = dict,
        encode: Codec = dict,
    ) -> None:
        self.name, self.nodes, self.edges = name, {node.name: node for node in nodes}, edges
        self.schemas, self.decode, self.encode = schemas, decode, encode

    @cached_property
    def graph(self) -> StateGraph[Any, Any, Any, Any]:
        """The LangGraph graph of the steps, not compiled yet."""
        from langgraph.graph import StateGraph  # noqa: PLC0415 - takes a second to import

        state, context, given = self.schemas
        graph = StateGraph(state, context, input_schema=given)
        for name, node in self.nodes.items():
            graph.add_node(name, node.as_runnable())
        for name, following in self.edges.items():
            if isinstance(following, str):
                graph.add_edge(name, following)
            else:
                graph.add_conditional_edges(name, following[0], dict(following[1]))
        return graph

    def _invoke(self, input: State, *, context: RunConfig | None = None) -> Flow[State]:  # noqa: A002
        """Run the graph from the state *input* and return the final state; LangGraph runs it only if it is observed.

        *context*: settings for this run.
        """
        if are_steps_seen():
            return self.decode((yield from call(self._compiled, "invoke", self.encode(input), context=context)))
        state, name = dict(input), self._next_node(START, input)
        while name != END:
            node, given = self.nodes[name], (state, context, ignore_event)
            update = yield Call(partial(node.take, *given), partial(node.atake, *given))
            if "steps" in update and "steps" in state:  # the records of all steps
                update = {**update, "steps": state["steps"] + update["steps"]}
            state = {**state, **update}
            name = self._next_node(name, state)
        return state

    invoke, ainvoke = both(_invoke)

    @cached_property
    def _compiled(self) -> Any:
        # No checkpoints: a user's node may invoke this graph several times in parallel. LangGraph numbers nested graphs
        # by order of arrival, so a resumed graph could continue from the checkpoint of another call.
        # A limit of steps of its own: a run repeats steps if others wrote meanwhile, and the caller's limit is low.
        return self.graph.compile(name=self.name, checkpointer=False).with_config(recursion_limit=MOST_STEPS)

    def _next_node(self, name: str, state: State) -> str:
        following = self.edges[name]
        if isinstance(following, str):
            return following
        choose, ends = following
        return ends[choose(state)]


def may_be_seen() -> bool:
    """Return whether steps may be observed: LangChain is imported, or LangSmith's tracing is on."""
    return not {"langchain_core", "langsmith"}.isdisjoint(sys.modules) or any(map(os.environ.get, TRACING))


def are_steps_seen() -> bool:
    """Return whether a trace or stream observes the steps, so that LangGraph must run them."""
    if not may_be_seen():
        return False
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415 - loaded already, except with tracing
    from langchain_core.runnables import ensure_config  # noqa: PLC0415

    return ensure_config().get("callbacks") is not None or bool(CallbackManager.configure().handlers)


def ignore_event(_: State) -> None:
    """Do nothing with an event of a finished step, ``{"step": "search", ...}``; used if no stream receives events."""


def make_node(
    step: Step,
    driver: Driver[Any],
    settings: Settings,
    *,
    metered: bool = False,
    on_failure: OnFailure | None = None,
    find_cache: FindCache | None = None,
    decode: Codec = dict,
    encode: Codec = dict,
) -> PipelineNode:
    """Return a LangGraph node that runs *step*, sync and async, with the models and the database of *driver*."""
    name, cache = step.__name__, BoundedCache[str, BaseModel](CACHED_ANSWERS)
    graph = step.__module__.removeprefix("kg_memory.").partition(".")[0]

    def run(state: State, config: RunConfig | None, namespace: str, write: Write) -> Flow[Update]:
        """Run the step on *state* with telemetry and cached model answers; return its update of the state."""
        durable = find_cache(state, driver.model.name) if find_cache and not driver.model.by_rules else None
        answers = CachedAnswers(namespace, cache, durable, partial(_report, name, write))
        with telemetry.span_step(graph, name, namespace) as record:
            try:
                with answers.cache_on_failure():
                    update = yield from answers.through(step(state, config.settings(settings) if config else settings))
            except Exception as error:
                if on_failure is not None:
                    with suppress(KGMemoryError):  # the step's error matters more than a failure to record it
                        yield from _handle_failure(on_failure, state, error, answers, answers.usage(name))
                raise
            if write is not ignore_event or telemetry.is_on():
                write({"step": name, **record(summarise_update(encode(update)))})
            return _add_usage(state, update, namespace, answers.usage(name)) if metered else update

    def begin(state: State, context: Any, write: Write) -> tuple[Flow[Update], str]:
        config = context if isinstance(context, RunConfig) else None  # an outer graph has another type of context
        namespace = validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
        return run(state, config, namespace, write), namespace

    def take(state: State, context: Any, write: Write) -> Update:
        return driver.run(*begin(state, context, write))

    async def atake(state: State, context: Any, write: Write) -> Update:
        return await driver.arun(*begin(state, context, write))

    return PipelineNode(name, take, atake, decode, encode)


def _report(step: str, write: Write, done: int, total: int) -> None:
    write({"step": step, "done": done, "of": total})


def _add_usage(state: State, update: Update, namespace: str, usage: StepUsage) -> Update:
    # The step has saved the message.
    if "saved_at" in update:
        log_end(namespace, {**state, **update}, usage)
    return {**update, "steps": [usage.model_dump()]}


def _handle_failure(
    on_failure: OnFailure, state: State, error: Exception, answers: CachedAnswers, usage: StepUsage
) -> Flow[None]:
    """Call *on_failure* after a step failed, add the usage of all steps to *error*, and log the failure."""
    if isinstance(error, KGMemoryError):
        error.steps = (*(StepUsage(**step) for step in state.get("steps") or ()), usage)
    status = None
    try:
        status = yield from on_failure(state, usage.step, error, answers.is_raised_by_step(error))
    finally:
        log_step_failure(answers.namespace, state, usage, error, status)


def summarise_update(update: State) -> Update:
    """Return the sizes in a step's output, without texts: ``{"facts": [f, g], "id": "a"}`` -> ``{"facts": 2}``."""
    summaries = {key: value if _is_count(value) else _summarise(value) for key, value in update.items()}
    return {key: summary for key, summary in summaries.items() if summary is not None}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < MIN_TIME


def _summarise(value: Any) -> Any:
    """Return the size of *value*, without texts: ``[a, b] -> 2``, ``{"x": [a], "y": "b"} -> {"x": 1}``.

    None for any other value, and for a dict in which no sizes remain.
    """
    match value:
        case bool():
            return value
        case list():
            return len(value)
        case dict():
            inner = {key: _summarise(item) for key, item in value.items()}
            return {key: summary for key, summary in inner.items() if summary is not None} or None
    return None
