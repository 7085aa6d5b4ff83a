"""LangMem's functions and classes, which store memories in a temporal graph: change the import, and tutorials run.

``from kg_memory.contrib.langmem import create_manage_memory_tool``. See ``docs/langmem.md``.
"""

from kg_memory.contrib.langmem.asking import AnnotatedTrajectory
from kg_memory.contrib.langmem.extraction import (
    ExtractedMemory,
    Memory,
    RemoveDoc,
    create_memory_manager,
    create_thread_extractor,
)
from kg_memory.contrib.langmem.manager import MemoryPhase, create_memory_searcher, create_memory_store_manager
from kg_memory.contrib.langmem.prompts import (
    Prompt,
    arender_rules,
    create_multi_prompt_optimizer,
    create_prompt_optimizer,
    render_rules,
)
from kg_memory.contrib.langmem.reflection import ReflectionExecutor
from kg_memory.contrib.langmem.short_term import (
    RunningSummary,
    SummarizationNode,
    SummarizationResult,
    asummarize_messages,
    summarize_messages,
)
from kg_memory.contrib.langmem.store import EpisodeStore
from kg_memory.contrib.langmem.tools import create_manage_memory_tool, create_search_memory_tool

__all__ = [
    "AnnotatedTrajectory",
    "EpisodeStore",
    "ExtractedMemory",
    "Memory",
    "MemoryPhase",
    "Prompt",
    "ReflectionExecutor",
    "RemoveDoc",
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "arender_rules",
    "asummarize_messages",
    "create_manage_memory_tool",
    "create_memory_manager",
    "create_memory_searcher",
    "create_memory_store_manager",
    "create_multi_prompt_optimizer",
    "create_prompt_optimizer",
    "create_search_memory_tool",
    "create_thread_extractor",
    "render_rules",
    "summarize_messages",
]
