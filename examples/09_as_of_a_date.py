"""Ask what was true on a date, and how that became known; messages arrive out of order, and one is a correction.

Runs offline, without a key: ``python examples/09_as_of_a_date.py``
"""

from collections.abc import Iterable

from kg_memory import Fact, GraphMemory

SAID = (
    ("2024-03-10", "I moved back to Bergen last month."),
    ("2019-01-10", "I live in Bergen and work at Fjord Labs."),
    ("2022-05-14", "I moved to Oslo in 2021!"),
    ("2024-03-12", "Actually I moved back to Bergen in January, not February."),
    ("2024-04-02", "I'm in Paris this week."),
    ("2024-05-01", "I no longer work at Fjord Labs."),
)

with GraphMemory.open(model="offline") as memory:
    for day, text in SAID:
        memory.add(text, speaker="Ann", at=day, namespace="example-time", thread="t1")

    def show(title: str, facts: Iterable[Fact]) -> None:
        print(f"\n{title}")
        for fact in facts:
            until = f"{fact.invalid_at:%Y-%m-%d}" if fact.invalid_at else "now"
            since = f"{fact.valid_at:%Y-%m-%d} ({fact.precision})" if fact.valid_at else "unknown"
            print(f"    {fact.predicate} {', '.join(fact.objects)}: {since} to {until}")

    show("Where Ann lived, newest first", memory.facts.history("Ann", "lives in", namespace="example-time"))
    show("True in the summer of 2023", memory.facts.about("Ann", during="summer 2023", namespace="example-time"))
    found = memory.search("Where did Ann live before she moved to Oslo?", limit=1, namespace="example-time")
    show(f"Asked in words, read as {found.time.reading}", found.facts)

    print("\nHow we came to believe this")
    for change in memory.facts.changes("2000", namespace="example-time"):
        fact = change.after or change.before
        print(f"    {change.kind}: {fact.predicate} {', '.join(fact.objects)}")
