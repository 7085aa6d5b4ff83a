"""A chat agent with memory: it recalls facts before it answers, and remembers the conversation."""

from dotenv import load_dotenv

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.agent import build_agent


def open_memory() -> GraphMemory:
    """Open the memory with the settings in `.env`; without that file, an embedded database read by built-in rules."""
    load_dotenv()
    return GraphMemory.open(settings=Settings.from_env())


def make_agent(memory: GraphMemory, model=None):
    """Return the agent as an uncompiled LangGraph graph, which you can change.

    *model* is the chat model that answers, by default the memory's.
    """
    return build_agent(memory, model=model, namespace="users/{user_id}")


def make_review(memory: GraphMemory):
    """Return the uncompiled graph that asks a person about uncertain contradictions, by a LangGraph interrupt."""
    return memory.graphs.review
