"""Let a person decide about an uncertain contradiction, by a LangGraph interrupt.

Runs offline, without a key: ``python examples/10_human_review.py``
"""

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory import GraphMemory, Settings

NAMESPACE = "example-review"
CONFIG = {"configurable": {"thread_id": "1"}}

# Contradictions with a confidence above `auto_threshold` (0.85) take effect at once. With 1, all wait for review.
with GraphMemory.open(model="offline", settings=Settings.from_env().with_(auto_threshold=1.0)) as memory:
    memory.add("I live in Bergen.", speaker="Ann", at="2024-01-10", namespace=NAMESPACE)
    memory.add("Ann moved to Oslo.", speaker="Bo", at="2024-03-02", namespace=NAMESPACE)

    graph = memory.graphs.review.compile(checkpointer=InMemorySaver())
    state = graph.invoke({"namespace": NAMESPACE, "by": "Cy"}, CONFIG)
    if "__interrupt__" not in state:
        print("Nothing waits for review: you decided it in an earlier run.")
    else:
        for action in state["__interrupt__"][0].value["action_requests"]:
            print(action["description"])
        no = {"type": "reject", "message": "Ann says no"}  # or "approve", or "edit"
        state = graph.invoke(Command(resume={"decisions": [no]}), CONFIG)
        print("\nDecided:", *(f"{each['decision']} {each['sentence']}" for each in state["decided"]))

    print("Believed:", *(fact.sentence for fact in memory.facts.about("Ann", namespace=NAMESPACE)), sep="\n    ")
    decided = memory.reviews.list(decided=True, namespace=NAMESPACE)
    print("To undo:", *(f"memory.reviews.undo({each.id!r}, namespace={NAMESPACE!r})" for each in decided))
