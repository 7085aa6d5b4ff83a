"""The steps of a graph and what follows each, said once: LangGraph runs them, or they are taken without it.

LangGraph shows the steps in traces and streams. Where nobody sees them they are taken one after another, which spares
LangGraph's own work, most of a millisecond a step: see "Steps that nobody sees" in `docs/decisions.md`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime

from kg_memory.errors import KGMemoryError
from kg_memory.models.operations import StepUsage
from kg_memory.runtime import telemetry
from kg_memory.runtime.answer_cache import CachedAnswers, GraphCache, MemoryCache
from kg_memory.runtime.config import RunConfig
from kg_memory.runtime.flow import Driver, Flow, T
from kg_memory.runtime.telemetry import log_end, log_failure
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.validation import validate_namespace


@dataclass(frozen=True, slots=True)
class Branch:
    """Where the state decides what follows: *choose* names one of the *ways*, each of which leads to a step."""

    choose: Callable[[Any], str]
    ways: Mapping[Hashable, str]


class Pipeline:
    """The *nodes* by their names, and what comes *after* ``START`` and each of them, up to ``END``.

    It draws the empty *graph*, which is then compiled for whoever wants to see or to stop its steps.
    """

    def __init__(
        self,
        name: str,
        graph: StateGraph[Any, Any, Any, Any],
        nodes: Mapping[str, PipelineNode],
        after: Mapping[str, str | Branch],
    ) -> None:
        self.name, self.graph = name, graph
        self._nodes, self._after = nodes, after
        for each, step in nodes.items():
            graph.add_node(each, step)
        for each, then in after.items():
            if isinstance(then, Branch):
                graph.add_conditional_edges(each, then.choose, dict(then.ways))
            else:
                graph.add_edge(each, then)

    def invoke(self, given: Mapping[str, Any], *, context: RunConfig | None = None) -> dict[str, Any]:
        """Return the state that becomes of what is *given*, by LangGraph where its steps can be seen."""
        if steps_are_seen():
            return self._compiled.invoke(given, context=context)  # type: ignore[no-any-return]
        state, name = dict(given), self._step_after(START, given)
        while name != END:
            state = _with(state, self._nodes[name].take(state, context, _unheard))
            name = self._step_after(name, state)
        return state

    async def ainvoke(self, given: Mapping[str, Any], *, context: RunConfig | None = None) -> dict[str, Any]:
        """`invoke`, for asyncio."""
        if steps_are_seen():
            return await self._compiled.ainvoke(given, context=context)  # type: ignore[no-any-return]
        state, name = dict(given), self._step_after(START, given)
        while name != END:
            state = _with(state, await self._nodes[name].atake(state, context, _unheard))
            name = self._step_after(name, state)
        return state

    @cached_property
    def _compiled(self) -> Any:
        # It may be invoked side by side within a node of the user's: LangGraph would number these graphs by their
        # order of arrival, and a resumed graph would take up one call's checkpoint in another.
        return self.graph.compile(name=self.name, checkpointer=False)

    def _step_after(self, name: str, state: Mapping[str, Any]) -> str:
        then = self._after[name]
        return then.ways[then.choose(state)] if isinstance(then, Branch) else then


def steps_are_seen() -> bool:
    """Tell whether a run of LangChain's or LangGraph's goes on here, or all runs are traced: these show the steps."""
    return ensure_config().get("callbacks") is not None or bool(CallbackManager.configure().handlers)


def _with(state: dict[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Return *state* with what a step brings; the `steps` that were taken add up, as `IngestionState` has it."""
    taken = {"steps": [*state.get("steps", ()), *update["steps"]]} if "steps" in update else {}
    return {**state, **update, **taken}


def _unheard(_: Mapping[str, Any]) -> None:
    """Tell nobody."""


UNCHANGED = RunConfig()
TIMED = ("facts", "related", "comparisons", "grounds", "revision", "instants")
"""The keys of states that have times in them, which may be open."""
LEAST_TIME = 10**9
"""Numbers from here on are times in microseconds, not counts."""

Step = Callable[[Any, Settings], Flow[dict[str, Any]]]
Store = Callable[[Mapping[str, Any], str], GraphCache | None]
"""Where the answers of a model are kept, of a state and the model's name, until what they are for is saved."""
Say = Callable[[dict[str, Any]], None]
"""Told the news of a step."""
Take = Callable[[Any, Any, Say], T]
"""Takes a step: of a state, with the context of the run, and who is told its news."""
OnFailure = Callable[[Mapping[str, Any], str, Exception, bool], Flow[str | None]]
"""What is done about a failure: of a state, by the name of a step and its error, and whether the step itself raised it.
It returns how far the episode is by that, if that is noted.
"""


class PipelineNode(Runnable[Any, dict[str, Any]]):
    """What LangGraph calls: nothing else, as the graph itself traces its nodes. `take` and `atake` do without it."""

    def __init__(self, name: str, take: Take[dict[str, Any]], atake: Take[Awaitable[dict[str, Any]]]) -> None:
        self.name = name
        self.take, self.atake = take, atake

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ARG002
        runtime: Runtime[Any] = get_runtime()
        return self.take(unrounded(input), runtime.context, runtime.stream_writer)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ARG002
        runtime: Runtime[Any] = get_runtime()
        return await self.atake(unrounded(input), runtime.context, runtime.stream_writer)


def with_the_episode(state: Mapping[str, Any], model: str) -> GraphCache | None:
    """Keep the answers about the episode of *state* with it."""
    if "episode" not in state:
        return None
    return GraphCache(state["episode"]["id"], model, state.get("answers") or {}, done=bool(state.get("done")))


def make_node(
    step: Step, driver: Driver, settings: Settings, *, metered: bool = False, on_failure: OnFailure | None = None,
    store: Store = with_the_episode,
) -> PipelineNode:  # fmt: skip
    """Return the node that runs *step*, sync and async.

    One that is *metered* adds a `usage.StepUsage` to the state's `steps`. What *on_failure* makes of the state, the
    name of the step and its error runs before the error is raised. *store* says where answers are kept meanwhile.
    """
    kept = MemoryCache()
    graph = step.__module__.removeprefix("kg_memory.").partition(".")[0]

    def begin(state: Any, context: Any, say: Say) -> tuple[CachedAnswers, Flow[dict[str, Any]]]:
        # As a subgraph, it runs in a graph that has a context of its own kind.
        chosen = context if isinstance(context, RunConfig) else UNCHANGED
        asking = CachedAnswers(
            validate_namespace(state.get("namespace")), kept, chosen.prompts(),
            None if driver.model_name == OFFLINE else store(state, driver.model_name),
            lambda done, of: say({"step": step.__name__, "done": done, "of": of}),
        )  # fmt: skip
        return asking, asking.through(step(state, chosen.settings(settings)))

    def failed(state: Any, error: Exception, asking: CachedAnswers, began: float) -> Flow[None]:
        if on_failure is not None:
            yield from _noted(on_failure, state, error, asking, asking.took(step.__name__, began))

    def end(state: Any, update: dict[str, Any], asking: CachedAnswers, began: float) -> dict[str, Any]:
        return _metered(state, update, asking.namespace, asking.took(step.__name__, began)) if metered else update

    def take(state: Any, context: Any, say: Say) -> dict[str, Any]:
        began = time.perf_counter()
        asking, flow = begin(state, context, say)
        with telemetry.step(graph, step.__name__, asking.namespace) as told:
            try:
                with asking.kept_on_failure():
                    update = driver.run(flow, asking.namespace)
            except Exception as error:
                with suppress(KGMemoryError):  # the first error tells more than that it could not be noted
                    driver.run(failed(state, error, asking, began), asking.namespace)
                raise
            say({"step": step.__name__, **told(news(update))})
            return end(state, update, asking, began)

    async def atake(state: Any, context: Any, say: Say) -> dict[str, Any]:
        began = time.perf_counter()
        asking, flow = begin(state, context, say)
        with telemetry.step(graph, step.__name__, asking.namespace) as told:
            try:
                with asking.kept_on_failure():
                    update = await driver.arun(flow, asking.namespace)
            except Exception as error:
                with suppress(KGMemoryError):
                    await driver.arun(failed(state, error, asking, began), asking.namespace)
                raise
            say({"step": step.__name__, **told(news(update))})
            return end(state, update, asking, began)

    return PipelineNode(step.__name__, take, atake)


def _metered(state: Mapping[str, Any], update: dict[str, Any], namespace: str, took: StepUsage) -> dict[str, Any]:
    """Return *update* with what the step *took*; at the one that saved all, the log has what all took until then."""
    if "saved_at" in update:
        log_end(namespace, {**state, **update}, took)
    return {**update, "steps": [took.model_dump()]}


def _noted(
    on_failure: OnFailure, state: Mapping[str, Any], error: Exception, asking: CachedAnswers, took: StepUsage
) -> Flow[None]:
    """Do what is to be done about a failure, and write it into the log, also where that fails."""
    if isinstance(error, KGMemoryError):
        error.steps = (*(StepUsage(**each) for each in state.get("steps") or ()), took)
    status = None
    try:
        status = yield from on_failure(state, took.step, error, asking.caused(error))
    finally:
        log_failure(asking.namespace, state, took, error, status)


def unrounded(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return *state* with its open ends exact: where JavaScript edits a state, it rounds such large numbers."""
    return {**state, **{name: _exact(state[name]) for name in TIMED if name in state}}


def _exact(value: Any) -> Any:
    match value:
        case list():
            return [_exact(each) for each in value]
        case dict():
            return {name: _exact(each) for name, each in value.items()}
        case int() if abs(value) > OPEN_END:
            return OPEN_END if value > 0 else OPEN_START
    return value


def news(update: Mapping[str, Any]) -> dict[str, Any]:
    """Return what *update* brings, as counts and yes or no, without any words of it."""
    told = {name: value if _is_count(value) else _summary(value) for name, value in update.items()}
    return {name: value for name, value in told.items() if value is not None}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < LEAST_TIME


def _summary(value: Any) -> Any:
    match value:
        case bool():
            return value
        case list():
            return len(value)
        case dict():
            inner = {name: _summary(each) for name, each in value.items()}
            return {name: each for name, each in inner.items() if each is not None} or None
    return None
