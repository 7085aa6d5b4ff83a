"""The ingestion graph that the LangGraph server and Studio open: it reads an episode into entities and facts."""

from graphs.memory import memory
from kg_memory.ingestion.graph import build

graph = build(memory.driver, memory.settings)
