"""The review graph, for the LangGraph server and Studio: settings -> memory -> graph."""

from kg_memory import GraphMemory
from kg_memory.review.graph import build

memory = GraphMemory()
graph = build(memory.driver, memory.settings)
