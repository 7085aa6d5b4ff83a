"""Turns of agents that call tools, and graphs that run them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

ToolCalled = tuple[str, dict[str, Any]]


class Context(TypedDict):
    user_id: str


def calling(*calls: ToolCalled) -> AIMessage:
    """Return what a model says that calls those tools, side by side."""
    made = [{"name": name, "args": given, "id": f"call_{n}"} for n, (name, given) in enumerate(calls)]
    return AIMessage("", tool_calls=made)


class Caller:
    """Calls tools through a graph, for one user after another, sync or async."""

    def __init__(self, tools: Iterable[BaseTool], *, asynchronous: bool, **options: Any) -> None:
        graph = StateGraph(MessagesState, context_schema=Context).add_node("tools", ToolNode(list(tools)))
        self.graph = graph.add_edge(START, "tools").compile(**options)
        self._asynchronous = asynchronous

    def __call__(self, user: str, name: str, /, **given: Any) -> ToolMessage:
        state, context = {"messages": [calling((name, given))]}, {"user_id": user}
        if self._asynchronous:
            found = asyncio.run(self.graph.ainvoke(state, context=context))
        else:
            found = self.graph.invoke(state, context=context)
        return found["messages"][-1]
