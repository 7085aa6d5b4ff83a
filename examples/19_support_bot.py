"""Build a support bot that remembers customers between tickets, and hands over to a person with a briefing.

Each ticket is a thread. It calls a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than
OpenAI's) and ``pip install "langchain>=1.2.18"``. Then: ``python examples/19_support_bot.py``
"""

import os
import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from kg_memory import GraphMemory
from kg_memory.adapters import BackgroundMemory, KGMemoryMiddleware

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit(
        "This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's). "
        "Without a key, run 01 to 04 or any other without a dagger in examples/README.md."
    )

# Here built-in rules read the messages, free of charge. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory, BackgroundMemory(memory) as background:
    remembering = KGMemoryMiddleware(memory, "example-support/{user_id}", profile_tokens=200, background=background)
    bot = create_agent(init_chat_model("openai:gpt-4.1-mini"), middleware=[remembering], system_prompt="You help.")

    def answer(customer: str, ticket: str, text: str) -> None:
        given = {"messages": [{"role": "user", "content": text}]}
        state = bot.invoke(given, {"configurable": {"thread_id": ticket}}, context={"user_id": customer})
        print(f"{ticket}, {customer}: {text}\n    {state['messages'][-1].content}")
        background.flush()  # only needed here, where the next ticket follows at once

    answer("ann", "ticket-1", "I live in Oslo and I plan to visit Bergen.")
    answer("ann", "ticket-2", "Where do I live?")

    print("\nFor the person who takes over:")
    print(memory.reports.handoff(namespace="example-support/ann"))
