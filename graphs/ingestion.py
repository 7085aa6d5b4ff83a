"""The ingestion graph, for the LangGraph server and Studio: settings -> memory -> graph."""

from kg_memory import GraphMemory
from kg_memory.ingestion.graph import build

memory = GraphMemory()
graph = build(memory.driver, memory.settings)
