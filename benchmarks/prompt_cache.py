"""Measure how much of each model request the provider's prompt cache can serve, by where the recalled text stands.

    python -m benchmarks.prompt_cache [--turns 20]

An agent with the middleware, and a graph with `recall_node`, answer a conversation; its user's memory has an older one.
Each request is written as the JSON of OpenAI's chat API. A prefix cache serves the bytes that a request shares with the
start of the request before it. The table has these bytes as a share of all bytes sent, and as a share of the most that
is possible: what the two requests share without the recalled text, and this text too if the turn is the same.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from os.path import commonprefix
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.opening import opened
from kg_memory import GraphMemory
from kg_memory.adapters import recall_node, remember_node, with_memory
from kg_memory.adapters.middleware import KGMemoryMiddleware
from kg_memory.adapters.nodes import PlaceOfText
from kg_memory.text.context_markers import REMEMBERED

RECALLED = re.compile(r"(?:\\n\\n)?" + re.escape(REMEMBERED) + r'[^"]*(?:\\"[^"]*)*')
"""The text from the memory in a request."""
SYSTEM = "You are the assistant of a travel agency. " + "Answer briefly, and only from what you know. " * 20
PLACES = "Oslo Bergen Turin Porto Graz Lyon Ghent Riga Split Cork Brno Basel Malmo Parma Delft Leeds Tartu Lugo".split()


@tool
def forecast(place: str) -> str:
    """Return the weather of tomorrow at *place*."""
    return f"Tomorrow in {place}: 14 to 19 degrees, wind from the west, showers in the afternoon."


class Recorder(BaseChatModel):
    """A chat model without a server that keeps its requests as JSON; with *calls*, each answer needs a tool first."""

    calls: bool
    requests: list[str] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, *_: Any, **__: Any) -> Recorder:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.requests.append(json.dumps(convert_to_openai_messages(messages)))
        number = len(self.requests)
        answer = AIMessage(f"Number {number}: I would go by train, and book a room near the station two weeks before.")
        if self.calls and isinstance(messages[-1], HumanMessage):
            place = PLACES[number % len(PLACES)]
            answer = AIMessage("", tool_calls=[{"name": "forecast", "args": {"place": place}, "id": f"call-{number}"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


class State(MessagesState):
    """The state of the graph with nodes."""

    memory_context: str


def agent(memory: GraphMemory, model: Recorder, place: PlaceOfText) -> Any:
    """Return an agent with the middleware."""
    middleware = [KGMemoryMiddleware(memory, place=place, remember="inline")]
    tools = [forecast] if model.calls else []
    return create_agent(model, tools, middleware=middleware, system_prompt=SYSTEM, checkpointer=InMemorySaver())


def nodes(memory: GraphMemory, model: Recorder, place: PlaceOfText) -> Any:
    """Return a graph that recalls, answers and remembers."""

    def answer(state: State) -> dict[str, Any]:
        prompt = with_memory([("system", SYSTEM), *state["messages"]], state["memory_context"], place)
        return {"messages": [model.invoke(prompt)]}

    graph = StateGraph(State)
    graph.add_node("recall", recall_node(memory, repeat=False))
    graph.add_node("answer", answer)
    graph.add_node("tools", ToolNode([forecast]))
    graph.add_node("remember", remember_node(memory))
    graph.set_entry_point("recall")
    graph.add_edge("recall", "answer")
    graph.add_conditional_edges("answer", tools_condition, {"tools": "tools", "__end__": "remember"})
    graph.add_edge("tools", "answer")
    return graph.compile(checkpointer=InMemorySaver())


def shares(make: Callable[[Recorder], Any], turns: int, user: str, *, calls: bool) -> tuple[float, float]:
    """Return how much of a conversation's requests a prefix cache can serve: of all bytes, and of the possible ones."""
    model = Recorder(calls=calls)
    graph = make(model)
    for turn in range(turns):
        text = f"I want to go from {PLACES[turn % 9]} to {PLACES[-1 - turn % 9]}. How did I like it the last time?"
        graph.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": user, "user_id": user}})
    served = possible = 0
    for before, after in pairwise(model.requests):
        told = [RECALLED.findall(request) for request in (before, after)]
        bare = [RECALLED.sub("", request) for request in (before, after)]
        served += _shared(before, after)
        possible += _shared(*bare) + (len(told[0][0].encode()) if told[0] == told[1] != [] else 0)
    return served / sum(len(request.encode()) for request in model.requests[1:]), served / possible


def _shared(before: str, after: str) -> int:
    """Return the number of bytes of the common start of two requests."""
    return len(commonprefix([before, after]).encode())  # noqa: RUF071 - no paths


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    turns = parser.parse_args().turns
    print("| | tools | place | served | of the possible |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, opened(Path(folder)) as memory:
        cases = product((("middleware", agent), ("recall_node", nodes)), (False, True), ("system", "message"))
        for (name, make), calls, place in cases:
            user = f"{name}-{calls}-{place}"
            past = (f"I was in {where} in 20{10 + n}, and liked its old town." for n, where in enumerate(PLACES))
            memory.add_many([{"content": text, "speaker": "user"} for text in past], namespace=user)
            served, share = shares(partial(make, memory, place=place), turns, user, calls=calls)
            print(f"| {name} | {'yes' if calls else 'no'} | {place} | {served:.3f} | {share:.3f} |", flush=True)


if __name__ == "__main__":
    main()
