"""A chat agent with this memory, for the LangGraph server and Studio: settings -> memory -> agent."""

from pydantic import Field

from graphs.memory import memory
from kg_memory.contrib.agent import AgentContext, build_agent
from kg_memory.validation import DEFAULT_NAMESPACE


class StudioContext(AgentContext):
    """Whose memory it is, and how the agent answers; if nobody is named, the one that the other graphs write to."""

    user_id: str = Field(
        DEFAULT_NAMESPACE, description="Who is talking: each user has a memory of their own, in that namespace."
    )


graph = build_agent(memory, context_schema=StudioContext)
