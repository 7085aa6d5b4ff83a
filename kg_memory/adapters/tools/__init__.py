"""The tools that agents call: our own, and named and shaped as users of LangMem and Letta know them."""

from kg_memory.adapters.tools.langmem import langmem_tools
from kg_memory.adapters.tools.letta import CoreMemory, letta_tools
from kg_memory.adapters.tools.native import memory_tools

__all__ = ["CoreMemory", "langmem_tools", "letta_tools", "memory_tools"]
