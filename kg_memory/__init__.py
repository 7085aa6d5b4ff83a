"""Long-term memory for LLM agents, as a temporal knowledge graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.errors import KGMemoryError
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.models.budget import Budget, Limits
    from kg_memory.models.graph import Community, Entity, Episode, EpisodeInput, EpisodeKind, EpisodeStatus, Fact
    from kg_memory.models.ontology import EntityType, FactType
    from kg_memory.models.operations import AddResult, Usage
    from kg_memory.models.results import Context, SearchResults
    from kg_memory.retrieval.context.lines import Template
    from kg_memory.retrieval.recipe import Recipe
    from kg_memory.settings import Settings

    __version__: str

__all__ = [
    "AddResult",
    "Budget",
    "Community",
    "Context",
    "Entity",
    "EntityType",
    "Episode",
    "EpisodeInput",
    "EpisodeKind",
    "EpisodeStatus",
    "Fact",
    "FactType",
    "GraphMemory",
    "KGMemoryError",
    "Limits",
    "Recipe",
    "SearchResults",
    "Settings",
    "Template",
    "Usage",
]

_NAMES = {
    "errors": "KGMemoryError",
    "memory.memory": "GraphMemory",
    "models.budget": "Budget Limits",
    "models.ontology": "EntityType FactType",
    "models.operations": "AddResult Usage",
    "models.results": "Context SearchResults",
    "retrieval.context.lines": "Template",
    "retrieval.recipe": "Recipe",
    "settings": "Settings",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that a command which needs few of them starts fast."""
    if name == "__version__":
        return _version()
    if name not in __all__:
        hint = ": it may be in kg_memory.adapters" if name.startswith("KG") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models.graph')}"), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - most programs never ask

    try:
        return version("temporal-kg-memory")
    except PackageNotFoundError:
        return "0+unknown"
