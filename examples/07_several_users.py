"""Serve several users in one asyncio process, each with a separate memory.

The namespace is a template that each run of the graph fills from its context.
Runs offline, without a key: ``python examples/07_several_users.py``
"""

import asyncio

from langgraph.graph import START, MessagesState, StateGraph

from kg_memory import GraphMemory
from kg_memory.adapters import recall_node, remember_node

NAMESPACE = "example/{org}/{user_id}"
SAID = {"ann@example.com": "I live in Oslo.", "bo.berg": "I live in Bergen.", "李雷": "我住在北京。"}


class State(MessagesState):
    memory_context: str


async def main() -> None:
    async with GraphMemory.open(model="offline") as memory:
        graph = StateGraph(State)
        graph.add_node("recall", recall_node(memory, NAMESPACE))
        graph.add_node("remember", remember_node(memory, NAMESPACE))
        graph.add_edge(START, "recall")
        graph.add_edge("recall", "remember")  # your model's node goes between these nodes
        chat = graph.compile()

        async def say(user: str, text: str) -> str:
            given = {"messages": [{"role": "user", "content": text}]}
            state = await chat.ainvoke(given, context={"org": "acme", "user_id": user})
            return state["memory_context"]

        await asyncio.gather(*(say(user, text) for user, text in SAID.items()))
        for user in SAID:
            print(f"The context for {user}:\n{await say(user, 'Where do I live?')}\n")


asyncio.run(main())
