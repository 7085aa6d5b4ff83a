"""Steps as LangGraph nodes: one flow, true sync and true async.

Whatever is so for every step has its one place here: the run's own settings and prompts, the answers that a failed
try has paid for, and the news of what a step did, for ``stream_mode="custom"``.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from kg_memory.asking import Asking, Kept
from kg_memory.contexts import Context
from kg_memory.flow import Driver, Flow
from kg_memory.identity import checked_namespace
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, OPEN_START
from kg_memory.usage import StepUsage, Usage

UNCHANGED = Context()
TIMED = ("facts", "beliefs", "instants")
"""The keys of states that have times in them, which may be open."""
LEAST_TIME = 10**9
"""Numbers from here on are times in microseconds, not counts."""

Step = Callable[[Any, Settings], Flow[dict[str, Any]]]


class Node(Runnable[Any, dict[str, Any]]):
    """What a graph calls: nothing else, as the graph itself traces its nodes."""

    def __init__(
        self, name: str, call: Callable[[Any], dict[str, Any]], acall: Callable[[Any], Awaitable[dict[str, Any]]]
    ) -> None:
        self.name = name
        self._call, self._acall = call, acall

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ARG002
        return self._call(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ARG002
        return await self._acall(input)


def node(step: Step, driver: Driver, settings: Settings, *, metered: bool = False) -> Node:
    """Return the node that runs *step*, sync under ``invoke`` and async under ``ainvoke``.

    One that is *metered* adds a `usage.StepUsage` to the state's `steps`.
    """
    kept = Kept()

    def begin(state: Any, context: Any) -> tuple[Asking, Flow[dict[str, Any]]]:
        # As a subgraph, it runs in a graph that has a context of its own kind.
        chosen = context if isinstance(context, Context) else UNCHANGED
        state = unrounded(state)
        asking = Asking(checked_namespace(state.get("namespace")), kept, chosen.prompts())
        return asking, asking.through(step(state, chosen.settings(settings)))

    def end(update: dict[str, Any], asking: Asking, began: float, tell: Callable[[Any], None]) -> dict[str, Any]:
        tell({"step": step.__name__, **news(update)})
        if not metered:
            return update
        spent = dict(sum(asking.spent, Usage()))
        took = StepUsage(step=step.__name__, seconds=round(time.perf_counter() - began, 6), **spent)
        return {**update, "steps": [took.model_dump()]}

    def call(state: Any) -> dict[str, Any]:
        runtime, began = get_runtime(), time.perf_counter()
        asking, flow = begin(state, runtime.context)
        with asking.kept_on_failure():
            update = driver.run(flow, asking.namespace)
        return end(update, asking, began, runtime.stream_writer)

    async def acall(state: Any) -> dict[str, Any]:
        runtime, began = get_runtime(), time.perf_counter()
        asking, flow = begin(state, runtime.context)
        with asking.kept_on_failure():
            update = await driver.arun(flow, asking.namespace)
        return end(update, asking, began, runtime.stream_writer)

    return Node(step.__name__, call, acall)


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
    told = {name: value if _is_count(value) else _told(value) for name, value in update.items()}
    return {name: value for name, value in told.items() if value is not None}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < LEAST_TIME


def _told(value: Any) -> Any:
    match value:
        case bool():
            return value
        case list():
            return len(value)
        case dict():
            inner = {name: _told(each) for name, each in value.items()}
            return {name: each for name, each in inner.items() if each is not None} or None
    return None
