"""The tools that agents call: our own, and named and shaped as users of LangMem know them."""

from kg_memory.adapters.tools.langmem import langmem_tools
from kg_memory.adapters.tools.native import memory_tools

__all__ = ["langmem_tools", "memory_tools"]
