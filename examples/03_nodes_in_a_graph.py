"""Add memory to your own graph: one node recalls before the model call, another remembers after it.

Set OPENAI_API_KEY to use a chat model (and OPENAI_BASE_URL for a server other than OpenAI's); without it, a stand-in
repeats what the memory returns. Then: ``python examples/03_nodes_in_a_graph.py``
"""

import os

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph

from kg_memory import GraphMemory
from kg_memory.adapters import recall_node, remember_node, with_memory


def repeat(messages: list) -> AIMessage:  # a stand-in for a chat model
    told = [line[2:] for line in messages[-1].content.splitlines() if line.startswith("- ")]
    return AIMessage(f"(no key) The memory says: {told[0]}" if told else "(no key) The memory knows nothing of this.")


model = ChatOpenAI(model="gpt-4.1-mini") if os.environ.get("OPENAI_API_KEY") else RunnableLambda(repeat)


class State(MessagesState):
    memory_context: str  # written by `recall`


def answer(state: State) -> dict:
    return {"messages": [model.invoke(with_memory(state["messages"], state["memory_context"]))]}


with GraphMemory.open(model="offline") as memory:  # read by built-in rules; without `model`, by a chat model
    recall = recall_node(memory, "example-nodes/{user_id}")
    remember = remember_node(memory, "example-nodes/{user_id}", user="Ann")
    graph = StateGraph(State).add_sequence([("recall", recall), answer, ("remember", remember)])
    chat = graph.set_entry_point("recall").compile()

    for thread, text in (("monday", "I live in Oslo."), ("tuesday", "Where do I live?")):
        print(f"\n{thread}: {text}\n    ", end="")
        config = {"configurable": {"user_id": "ann@example.com", "thread_id": thread}}
        for token, _ in chat.stream({"messages": [("user", text)]}, config, stream_mode="messages"):
            print(token.content, end="", flush=True)
    print()
