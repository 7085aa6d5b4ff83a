"""Remember what somebody said, and recall it: what is so now, and what was so before.

Runs offline, without a key: ``python examples/01_remember_and_recall.py``
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from kg_memory import GraphMemory, Settings

with (
    TemporaryDirectory() as folder,  # leave `settings` out to keep the memory in your user data folder
    GraphMemory.open(settings=Settings(data_dir=Path(folder), model="offline", idle_seconds=0)) as memory,
):
    memory.add("I live in Bergen.", speaker="Ann", at="2023-03-04T18:20:00Z")
    added = memory.add("I moved to Oslo last week.", speaker="Ann", at="2024-09-21T17:00:00Z")
    print("facts found: ", *added.facts, sep="\n  ")

    found = memory.search("Where does Ann live?", limit=3)
    print("now: ", *(fact.sentence for fact in found.facts), sep="\n  ")

    print("then and now:")
    for fact in memory.facts_about("Ann"):
        print(f"  {fact.sentence}  [{fact.valid_at} .. {fact.invalid_at or ''}]  said: {fact.sources[0].quote!r}")

    print("what an agent's prompt gets:", memory.context("Where does Ann live?", max_tokens=300), sep="\n")
