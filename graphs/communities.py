"""The communities graph that the LangGraph server and Studio open: it clusters entities and summarises the clusters."""

from graphs.memory import memory
from kg_memory.communities.graph import build

graph = build(memory.driver, memory.settings)
