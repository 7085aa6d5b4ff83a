"""Turns of agents that call tools, and graphs that run them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

ToolCalled = tuple[str, dict[str, Any]]


class Context(TypedDict):
    user_id: str


class ScriptedChat(FakeMessagesListChatModel):
    """A chat model that says its lines, and keeps the tools that it was given."""

    given: list[BaseTool] = []  # noqa: RUF012 - a field

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedChat:
        self.given = list(tools)
        return self


def calling(*calls: ToolCalled) -> AIMessage:
    """Return what a model says that calls those tools, side by side."""
    made = [{"name": name, "args": given, "id": f"call_{n}"} for n, (name, given) in enumerate(calls)]
    return AIMessage("", tool_calls=made)


def tool_graph(tools: Iterable[BaseTool], **options: Any) -> Any:
    """Return a graph that does nothing but run the tools that are called."""
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "tools")
    return graph.compile(**options)


class Caller:
    """Calls tools through a graph, for one user after another, sync or async."""

    def __init__(self, tools: Iterable[BaseTool], *, asynchronous: bool, **options: Any) -> None:
        self.graph = tool_graph(tools, **options)
        self._asynchronous = asynchronous

    def __call__(self, user: str, name: str, /, **given: Any) -> ToolMessage:
        return self.side_by_side(user, (name, given))[0]

    def side_by_side(self, user: str, *calls: ToolCalled) -> list[ToolMessage]:
        state, context = {"messages": [calling(*calls)]}, {"user_id": user}
        if self._asynchronous:
            found = asyncio.run(self.graph.ainvoke(state, context=context))
        else:
            found = self.graph.invoke(state, context=context)
        return found["messages"][1:]
