"""A LangGraph store that persists, and that returns facts beside the items that you put.

Runs offline, without a key: ``python examples/04_store_in_a_graph.py``
"""

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from kg_memory import GraphMemory
from kg_memory.adapters import KGStore

NOTES = ("users", "ann", "notes")


def keep(state: MessagesState, runtime: Runtime) -> None:
    message = state["messages"][-1]
    runtime.store.put(NOTES, message.id, {"text": message.content})


# `remember` selects the items that are read into facts: here all below ("users",). Without it, this is a plain store.
with GraphMemory.open(model="offline") as memory, KGStore(memory, name="example", remember=[("users",)]) as store:
    graph = StateGraph(MessagesState)
    graph.add_node(keep)
    graph.add_edge(START, "keep")
    notes = graph.compile(store=store)
    notes.invoke({"messages": [{"role": "user", "content": "Ann lives in Oslo.", "id": "1"}]})
    notes.invoke({"messages": [{"role": "user", "content": "Ann works at Fjord Labs.", "id": "2"}]})

    print("the item:", store.get(NOTES, "1").value)
    for found in store.search(NOTES, query="Where does Ann live?", limit=4):
        print(f"{found.score:.2f}  {found.value.get('fact') or found.value['text']}  ({found.key})")
