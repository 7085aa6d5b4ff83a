"""The interface of Mem0's open-source library, implemented with a `GraphMemory`; see `docs/mem0.md`.

Replace ``from mem0 import Memory`` by ``from kg_memory.contrib.mem0 import Memory``.
"""

from kg_memory.contrib.mem0.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
