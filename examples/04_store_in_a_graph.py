"""Use a LangGraph store whose items are also read into facts; a search returns items and facts.

Runs offline, without a key: ``python examples/04_store_in_a_graph.py``
"""

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from kg_memory import GraphMemory
from kg_memory.contrib.langmem import EpisodeStore

NOTES = ("users", "ann", "notes")


def keep(state: MessagesState, runtime: Runtime) -> None:
    message = state["messages"][-1]
    runtime.store.put(NOTES, message.id, {"content": message.content})


# `KGStore` is the plain store: it stores any value as it is, without reading facts from it.
with GraphMemory.open(model="offline") as memory:
    store = EpisodeStore(memory)
    graph = StateGraph(MessagesState)
    graph.add_node(keep)
    graph.add_edge(START, "keep")
    notes = graph.compile(store=store)
    notes.invoke({"messages": [{"role": "user", "content": "Ann lives in Oslo.", "id": "1"}]})
    notes.invoke({"messages": [{"role": "user", "content": "Ann works at Fjord Labs.", "id": "2"}]})

    print("the item:", store.get(NOTES, "1").value)
    for found in store.search(NOTES, query="Where does Ann live?", limit=4):
        print(f"{found.score:.2f}  {found.value['content']}  ({found.key})")
