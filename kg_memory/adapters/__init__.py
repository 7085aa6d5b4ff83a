"""Integrations with LangGraph and LangChain: a store, a retriever, graph nodes, agent tools and agent middleware.

Import them from here: ``from kg_memory.adapters import KGStore``. Modules are loaded on first use, so only
`KGMemoryMiddleware` needs the extra ``agents``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.adapters.background import BackgroundMemory, Failure
    from kg_memory.adapters.middleware import KGMemoryMiddleware
    from kg_memory.adapters.nodes import recall_node, remember_node, summarise_node, with_memory
    from kg_memory.adapters.retriever import KGRetriever
    from kg_memory.adapters.store.store import KGStore
    from kg_memory.adapters.tools import memory_tools

_NAMES = {
    "background": "BackgroundMemory Failure",
    "middleware": "KGMemoryMiddleware",
    "nodes": "recall_node remember_node summarise_node with_memory",
    "retriever": "KGRetriever",
    "store.store": "KGStore",
    "tools": "memory_tools",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "BackgroundMemory",
    "Failure",
    "KGMemoryMiddleware",
    "KGRetriever",
    "KGStore",
    "memory_tools",
    "recall_node",
    "remember_node",
    "summarise_node",
    "with_memory",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
