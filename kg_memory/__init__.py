"""Long-term memory for LLM agents as a temporal knowledge graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.errors import KGMemoryError
    from kg_memory.memory.adding import Progress
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.memory.usage import Estimate
    from kg_memory.models.budget import Budget, Limits
    from kg_memory.models.graph import (
        Change,
        Community,
        Decision,
        Entity,
        Episode,
        EpisodeInput,
        EpisodeKind,
        EpisodeStatus,
        Fact,
        Review,
        Source,
        TimelineEvent,
    )
    from kg_memory.models.operations import (
        AddResult,
        AuditEntry,
        AuditReport,
        CommunityRefresh,
        DailyUsage,
        EvictionResult,
        ExportResult,
        ForgetReceipt,
        ImportResult,
        Residue,
        Stats,
        StepUsage,
        Usage,
    )
    from kg_memory.models.results import CommunityCard, Context, Explanation, Hit, Neighbourhood, SearchResults
    from kg_memory.retrieval.context.templates import Template
    from kg_memory.retrieval.recipe import Recipe
    from kg_memory.settings import EntityType, FactType, Settings

__all__ = [
    "AddResult",
    "AuditEntry",
    "AuditReport",
    "Budget",
    "Change",
    "Community",
    "CommunityCard",
    "CommunityRefresh",
    "Context",
    "DailyUsage",
    "Decision",
    "Entity",
    "EntityType",
    "Episode",
    "EpisodeInput",
    "EpisodeKind",
    "EpisodeStatus",
    "Estimate",
    "EvictionResult",
    "Explanation",
    "ExportResult",
    "Fact",
    "FactType",
    "ForgetReceipt",
    "GraphMemory",
    "Hit",
    "ImportResult",
    "KGMemoryError",
    "Limits",
    "Neighbourhood",
    "Progress",
    "Recipe",
    "Residue",
    "Review",
    "SearchResults",
    "Settings",
    "Source",
    "Stats",
    "StepUsage",
    "Template",
    "TimelineEvent",
    "Usage",
]

_HOMES = {
    "AddResult": "models.operations",
    "AuditEntry": "models.operations",
    "AuditReport": "models.operations",
    "Budget": "models.budget",
    "CommunityCard": "models.results",
    "CommunityRefresh": "models.operations",
    "Context": "models.results",
    "DailyUsage": "models.operations",
    "EntityType": "settings",
    "Estimate": "memory.usage",
    "EvictionResult": "models.operations",
    "Explanation": "models.results",
    "ExportResult": "models.operations",
    "FactType": "settings",
    "ForgetReceipt": "models.operations",
    "GraphMemory": "memory.memory",
    "Hit": "models.results",
    "ImportResult": "models.operations",
    "KGMemoryError": "errors",
    "Limits": "models.budget",
    "Neighbourhood": "models.results",
    "Progress": "memory.adding",
    "Recipe": "retrieval.recipe",
    "Residue": "models.operations",
    "SearchResults": "models.results",
    "Settings": "settings",
    "Stats": "models.operations",
    "StepUsage": "models.operations",
    "Template": "retrieval.context.templates",
    "Usage": "models.operations",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command that needs little of it starts fast."""
    if name not in __all__:
        hint = ": it may be in kg_memory.adapters" if name.startswith("KG") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models.graph')}"), name)
