"""An agent with memory, by middleware: it knows on Tuesday what the user said on Monday.

It calls a chat model: set OPENAI_API_KEY (OPENAI_BASE_URL for another server than OpenAI's) and
``pip install "langchain>=1.2.18"``. Then: ``python examples/02_agent_middleware.py``
"""

import os
import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from kg_memory import GraphMemory
from kg_memory.adapters import BackgroundMemory, KGMemoryMiddleware

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit("This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's).")

# Built-in rules read the messages here, at no cost. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory, BackgroundMemory(memory) as background:
    remembering = KGMemoryMiddleware(memory, "example-agent/{user_id}", background=background)
    agent = create_agent(init_chat_model("openai:gpt-4.1-mini"), middleware=[remembering])

    def say(user: str, thread: str, text: str) -> None:
        given = {"messages": [{"role": "user", "content": text}]}
        state = agent.invoke(given, {"configurable": {"thread_id": thread}}, context={"user_id": user})
        print(f"{user}, {thread}: {text}\n    {state['messages'][-1].content}")

    say("ann@example.com", "monday", "I live in Oslo and work at Fjord Labs.")
    background.flush()  # a turn is saved at once and read in the background: wait for that
    say("ann@example.com", "tuesday", "Where do I live?")
    say("bo@example.com", "tuesday", "Where do I live?")
