"""Remember in the background: messages are saved at once and read later, so that answers do not wait for reading.

Runs offline, without a key: ``python examples/06_background_memory.py``
"""

from kg_memory import GraphMemory
from kg_memory.adapters import BackgroundMemory

WHERE = {"namespace": "example-background", "thread": "monday"}

with GraphMemory.open(model="offline") as memory, BackgroundMemory(memory, after_seconds=5, on_failure=print) as later:
    later.submit([{"content": "I live in Oslo.", "speaker": "Ann"}], **WHERE)
    later.submit([{"content": "I work at Fjord Labs.", "speaker": "Ann"}], **WHERE)
    print(f"saved: 2, still to be read: {later.pending}")
    print("found by its words already:", memory.search("Oslo", **WHERE).episodes[0].content)

    later.flush()  # read now; otherwise five seconds after the last message of the thread, or at exit
    print(
        f"still to be read: {later.pending}, failed: {len(later.failures)}"
    )  # failed messages stay saved: memory.episodes.resume()
    for fact in memory.facts.about("Ann", namespace=WHERE["namespace"]):
        print(fact.sentence)
