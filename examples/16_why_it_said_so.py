"""Find out why an agent gave an answer: ask what the memory believed at that time, and what has changed since.

An audit needs only the time of the answer, because corrections never overwrite earlier beliefs.
Runs offline, without a key: ``python examples/16_why_it_said_so.py``
"""

from datetime import UTC, datetime
from time import sleep
from uuid import uuid4

from kg_memory import GraphMemory

NAMESPACE = f"example-audit-{uuid4()}"  # new in each run, as the time of believing cannot be set back
DAY = "2024-04-20"

with GraphMemory.open(model="offline") as memory:

    def home(**when: datetime) -> str:
        [fact] = memory.facts.about("Ann", as_of=DAY, namespace=NAMESPACE, **when)
        return f"{fact.sentence}, as {fact.sources[0].speaker} said {fact.sources[0].quote!r}"

    memory.add("I live in Bergen.", speaker="Ann", at="2024-01-10", namespace=NAMESPACE)
    memory.add("I moved to Oslo last week!", speaker="Ann", at="2024-05-14", namespace=NAMESPACE)
    answered_at = datetime.now(UTC)
    print(f"The agent was asked about {DAY}: {home()}")

    sleep(0.01)
    memory.add("Actually I moved to Oslo in April.", speaker="Ann", at="2024-06-03", namespace=NAMESPACE)
    print(f"It would answer now: {home()}")
    print(f"It believed then: {home(believed_at=answered_at)}")
    print("Since then:")
    for change in memory.facts.changes(answered_at, namespace=NAMESPACE):
        fact = change.after or change.before
        print(f"    {change.kind}: {fact.sentence}  [{fact.valid_at or ''} .. {fact.invalid_at or ''}]")
