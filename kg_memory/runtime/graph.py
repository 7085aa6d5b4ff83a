"""The steps of a graph and what follows each, said once: LangGraph runs them, or they are taken without it.

LangGraph shows the steps in traces and streams. Where nobody sees them they are taken one after another, which spares
LangGraph's own work, most of a millisecond a step: see "Steps that nobody sees" in `docs/decisions.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import ensure_config
from langgraph.graph import END, START, StateGraph

from kg_memory.runtime.config import Context
from kg_memory.runtime.nodes import Node


@dataclass(frozen=True, slots=True)
class Fork:
    """Where the state decides what follows: *choose* names one of the *ways*, each of which leads to a step."""

    choose: Callable[[Any], str]
    ways: Mapping[Hashable, str]


class Course:
    """The *nodes* by their names, and what comes *after* ``START`` and each of them, up to ``END``.

    It draws the empty *graph*, which is then compiled for whoever wants to see or to stop its steps.
    """

    def __init__(
        self,
        name: str,
        graph: StateGraph[Any, Any, Any, Any],
        nodes: Mapping[str, Node],
        after: Mapping[str, str | Fork],
    ) -> None:
        self.name, self.graph = name, graph
        self._nodes, self._after = nodes, after
        for each, step in nodes.items():
            graph.add_node(each, step)
        for each, then in after.items():
            if isinstance(then, Fork):
                graph.add_conditional_edges(each, then.choose, dict(then.ways))
            else:
                graph.add_edge(each, then)

    def invoke(self, given: Mapping[str, Any], *, context: Context | None = None) -> dict[str, Any]:
        """Return the state that becomes of what is *given*, by LangGraph where its steps can be seen."""
        if steps_are_seen():
            return self._compiled.invoke(given, context=context)  # type: ignore[no-any-return]
        state, name = dict(given), self._step_after(START, given)
        while name != END:
            state = _with(state, self._nodes[name].take(state, context, _unheard))
            name = self._step_after(name, state)
        return state

    async def ainvoke(self, given: Mapping[str, Any], *, context: Context | None = None) -> dict[str, Any]:
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
        return then.ways[then.choose(state)] if isinstance(then, Fork) else then


def steps_are_seen() -> bool:
    """Tell whether a run of LangChain's or LangGraph's goes on here, or all runs are traced: these show the steps."""
    return ensure_config().get("callbacks") is not None or bool(CallbackManager.configure().handlers)


def _with(state: dict[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Return *state* with what a step brings; the `steps` that were taken add up, as `IngestionState` has it."""
    taken = {"steps": [*state.get("steps", ()), *update["steps"]]} if "steps" in update else {}
    return {**state, **update, **taken}


def _unheard(_: Mapping[str, Any]) -> None:
    """Tell nobody."""
