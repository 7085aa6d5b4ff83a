"""The retrieval graph that the LangGraph server and Studio open: it searches the memory and writes the context."""

from graphs.memory import memory
from kg_memory.retrieval.graph import build

graph = build(memory.driver.for_reads(), memory.settings)
