"""Import a file of messages, with progress, and list the entities. In a second run, stored messages are skipped.

The file is JSON Lines, an OpenAI or LangChain message list, a LoCoMo or BEAM file, or a plain text chat. With
OPENAI_API_KEY it is read by OpenAI's model, else by built-in rules: ``python examples/11_many_messages.py [FILE]``
"""

import sys

from kg_memory import GraphMemory
from kg_memory.contrib.chats import read
from kg_memory.contrib.demo.demo import read_story
from kg_memory.memory.adding import Progress


def show(progress: Progress) -> None:
    print(f"\r{progress.done} messages, {progress.new} new, {progress.facts} facts", end="", flush=True)


messages = read(sys.argv[1]) if len(sys.argv) > 1 else read_story()
with GraphMemory.open() as memory:
    memory.add_many(messages, namespace="example", progress=show)
    print()
    for entity in memory.entities.list(namespace="example", limit=5):
        print(f"{entity.name} ({entity.type})")
        for fact in memory.facts.about(entity.name, namespace="example")[:3]:
            print(f"    {fact.sentence}")
