"""Add memory to an agent with middleware: on Tuesday it knows what the user said on Monday.

Set OPENAI_API_KEY to use a chat model (and OPENAI_BASE_URL for a server other than OpenAI's); without it, a stand-in
repeats what the memory returns. ``pip install "langchain>=1.2.18"``, then: ``python examples/02_agent_middleware.py``
"""

import os

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

from kg_memory import GraphMemory
from kg_memory.adapters import BackgroundMemory, KGMemoryMiddleware


class Repeats(SimpleChatModel):
    """A stand-in for a chat model that repeats the first line that the memory added to the last message."""

    @property
    def _llm_type(self) -> str:
        return "repeats"

    def _call(self, messages: list[BaseMessage], *_: object, **__: object) -> str:
        told = [line[2:] for line in str(messages[-1].content).splitlines() if line.startswith("- ")]
        return f"(no key) The memory says: {told[0]}" if told else "(no key) The memory knows nothing of this."


model = init_chat_model("openai:gpt-4.1-mini") if os.environ.get("OPENAI_API_KEY") else Repeats()

# Here built-in rules read the messages, free of charge. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory, BackgroundMemory(memory) as background:
    remembering = KGMemoryMiddleware(memory, "example-agent/{user_id}", background=background)
    agent = create_agent(model, middleware=[remembering])

    def say(user: str, thread: str, text: str) -> None:
        given = {"messages": [{"role": "user", "content": text}]}
        state = agent.invoke(given, {"configurable": {"thread_id": thread}}, context={"user_id": user})
        print(f"{user}, {thread}: {text}\n    {state['messages'][-1].content}")

    say("ann@example.com", "monday", "I live in Oslo and work at Fjord Labs.")
    background.flush()  # messages are saved at once and read in the background: wait until they are read
    say("ann@example.com", "tuesday", "Where do I live?")
    say("bo@example.com", "tuesday", "Where do I live?")
