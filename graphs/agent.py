"""The chat agent that the LangGraph server and Studio open; it uses the memory shared by all graphs in this folder."""

from pydantic import Field

from graphs.memory import memory
from kg_memory.contrib.agent import AgentContext, build_agent
from kg_memory.validation import DEFAULT_NAMESPACE


class StudioContext(AgentContext):
    """The context of one run: the user, and how the agent answers. Without a user, the default namespace is used."""

    user_id: str = Field(
        DEFAULT_NAMESPACE, description="The user who is talking. Each user's memory is the namespace of this name."
    )


graph = build_agent(memory, context_schema=StudioContext)
