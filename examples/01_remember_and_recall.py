"""Store two messages and recall their facts: what is true now, and what was true before.

Runs offline, without a key: ``python examples/01_remember_and_recall.py``
"""

from kg_memory import GraphMemory

with GraphMemory.open(model="offline") as memory:  # stored in your user data folder, or in KG_MEMORY_DATA_DIR
    memory.add("I live in Bergen.", speaker="Ann", at="2023-03-04", namespace="example")
    memory.add("I moved to Oslo last week.", speaker="Ann", at="2024-09-21", namespace="example")

    print("The context for an agent's prompt:", memory.context("Where does Ann live?", namespace="example"), sep="\n")
    for fact in memory.facts.about("Ann", namespace="example"):
        print(f"{fact.sentence}  [{fact.valid_at} .. {fact.invalid_at or ''}]  said: {fact.sources[0].quote!r}")
