"""Memory in your own graph: one node recalls before the model call, one remembers after it.

It calls a chat model: set OPENAI_API_KEY (OPENAI_BASE_URL for another server than OpenAI's).
Then: ``python examples/03_nodes_in_a_graph.py``
"""

import os
import sys

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory import GraphMemory
from kg_memory.adapters import recall_node, remember_node, with_memory

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit("This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's).")

model = ChatOpenAI(model="gpt-4.1-mini")


class State(MessagesState):
    memory_context: str  # written by `recall`


def answer(state: State) -> dict:
    return {"messages": [model.invoke(with_memory(state["messages"], state["memory_context"]))]}


# Built-in rules read the messages here, at no cost. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory:
    recall = recall_node(memory, "example-nodes/{user_id}")
    remember = remember_node(memory, "example-nodes/{user_id}", user="Ann")
    graph = StateGraph(State).add_sequence([("recall", recall), answer, ("remember", remember)])
    graph.add_edge(START, "recall")
    chat = graph.compile()

    for thread, text in (("monday", "I live in Oslo."), ("tuesday", "Where do I live?")):
        print(f"\n{thread}: {text}\n    ", end="")
        given = {"messages": [{"role": "user", "content": text}]}
        config = {"configurable": {"user_id": "ann@example.com", "thread_id": thread}}
        for token, _ in chat.stream(given, config, stream_mode="messages"):
            print(token.content, end="", flush=True)
    print()
