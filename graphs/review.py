"""The review graph, for the LangGraph server and Studio: settings -> memory -> graph."""

from graphs.memory import memory
from kg_memory.maintenance.review.graph import build

graph = build(memory.driver, memory.settings)
