"""A chat agent with a memory: it recalls before it answers, and remembers what was said."""

from dotenv import load_dotenv

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.agent import build_agent


def open_memory() -> GraphMemory:
    """Open the memory that `.env` describes; without one it is embedded, and reads by rules."""
    load_dotenv()
    return GraphMemory.open(settings=Settings.from_env())


def make_agent(memory: GraphMemory, model=None):
    """Return the agent; *model* answers, else the memory's own. Change it as any graph of LangGraph."""
    return build_agent(memory, model=model, namespace="users/{user_id}")


def make_review(memory: GraphMemory):
    """Return the graph that asks a person about contradictions that are not sure, by an interrupt."""
    return memory.graphs.review
