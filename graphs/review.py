"""The review graph that the LangGraph server and Studio open: it asks a person about uncertain contradictions."""

from graphs.memory import memory
from kg_memory.maintenance.review.graph import build

graph = build(memory.driver, memory.settings)
