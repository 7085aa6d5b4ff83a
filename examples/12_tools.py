"""Give an agent memory tools, so that its model decides when to remember and when to search.

It calls a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's) and
``pip install "langchain>=1.2.18"``. Then: ``python examples/12_tools.py``
"""

import os
import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from kg_memory import GraphMemory
from kg_memory.adapters import memory_tools

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit(
        "This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's). "
        "Without a key, run 01 to 04 or any other without a dagger in examples/README.md."
    )

# Here built-in rules read the messages, free of charge. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory:
    agent = create_agent(init_chat_model("openai:gpt-4.1-mini"), memory_tools(memory, "example-tools/{user_id}"))

    for thread, text in (("monday", "Please remember that I live in Oslo."), ("tuesday", "Where do I live?")):
        config = {"configurable": {"user_id": "ann@example.com", "thread_id": thread}}
        print(f"\n{thread}: {text}")
        for message in agent.invoke({"messages": [{"role": "user", "content": text}]}, config)["messages"][1:]:
            for call in getattr(message, "tool_calls", []):
                print(f"    calls {call['name']}({call['args']})")
            if message.content:
                print(f"    {message.type}: {message.content}")
