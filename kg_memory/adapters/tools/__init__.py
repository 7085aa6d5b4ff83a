"""The tools that agents call."""

from kg_memory.adapters.tools.native import memory_tools

__all__ = ["memory_tools"]
