"""What is not sure waits for a person: a LangGraph interrupt asks, and the answer decides what is believed.

Runs offline, without a key: ``python examples/10_human_review.py``
"""

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory import GraphMemory, Settings

NAMESPACE = "example-review"
CONFIG = {"configurable": {"thread_id": "1"}}

# What is surer than `auto_threshold` (0.85) is believed at once. With 1, all that contradicts something waits.
with GraphMemory.open(model="offline", settings=Settings.from_env().with_(auto_threshold=1.0)) as memory:
    memory.add("I live in Bergen.", speaker="Ann", at="2024-01-10", namespace=NAMESPACE)
    memory.add("Ann moved to Oslo.", speaker="Bo", at="2024-03-02", namespace=NAMESPACE)

    graph = memory.graphs.review.compile(checkpointer=InMemorySaver())
    state = graph.invoke({"namespace": NAMESPACE, "by": "Cy"}, CONFIG)
    if "__interrupt__" not in state:
        print("Nothing waits: it was decided when this ran before.")
    else:
        for action in state["__interrupt__"][0].value["action_requests"]:
            print(action["description"])
        no = {"type": "reject", "message": "Ann says no"}  # or "approve", or "edit" with other dates or another verdict
        state = graph.invoke(Command(resume={"decisions": [no]}), CONFIG)
        print("\nDecided:", *(f"{each['decision']} {each['sentence']}" for each in state["decided"]))

    print("Believed:", *(fact.sentence for fact in memory.facts.about("Ann", namespace=NAMESPACE)), sep="\n    ")
    decided = memory.reviews.list(decided=True, namespace=NAMESPACE)
    print("To undo:", *(f"memory.undo({each.id!r}, namespace={NAMESPACE!r})" for each in decided))
