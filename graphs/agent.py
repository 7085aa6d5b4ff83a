"""A chat agent with this memory, for the LangGraph server and Studio: settings -> memory -> agent."""

from pydantic import Field

from graphs.memory import memory
from kg_memory.adapters.agent import AgentContext, build_agent


class StudioContext(AgentContext):
    """Whose memory it is, and how the agent answers; one user if nobody is named."""

    user_id: str = Field("studio", description="Who is talking: each user has a memory of their own.")


graph = build_agent(memory, context_schema=StudioContext)
