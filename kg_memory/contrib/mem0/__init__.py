"""The verbs and shapes of Mem0's open-source library, over a temporal graph: see `docs/mem0.md`.

``from kg_memory.contrib.mem0 import Memory`` takes the place of ``from mem0 import Memory``.
"""

from kg_memory.contrib.mem0.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
