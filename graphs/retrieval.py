"""The retrieval graph, for the LangGraph server and Studio: settings -> memory -> graph."""

from graphs.memory import memory
from kg_memory.retrieval.graph import build

graph = build(memory.driver.for_reads(), memory.settings)
