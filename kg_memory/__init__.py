"""Long-term memory for LLM agents as a temporal knowledge graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.errors import KGMemoryError
    from kg_memory.memory.episodes import Progress
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.memory.usage import Estimate
    from kg_memory.models.budget import Budget, Limits
    from kg_memory.models.context import Context
    from kg_memory.models.graph import (
        AddResult,
        Change,
        Community,
        CommunityRefresh,
        Decision,
        Entity,
        Episode,
        EpisodeInput,
        EpisodeKind,
        EpisodeStatus,
        EvictionResult,
        Explanation,
        Fact,
        Hit,
        Review,
        SearchResults,
        Source,
        Stats,
        TimelineEvent,
    )
    from kg_memory.models.receipts import AuditEntry, AuditReport, ForgetReceipt, Residue
    from kg_memory.models.surroundings import CommunityCard, Neighbourhood
    from kg_memory.models.transfers import ExportResult, ImportResult
    from kg_memory.models.usage import DailyUsage, StepUsage, Usage
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
    "AuditReport": "models.receipts",
    "AuditEntry": "models.receipts",
    "Budget": "models.budget",
    "CommunityCard": "models.surroundings",
    "Context": "models.context",
    "DailyUsage": "models.usage",
    "EntityType": "settings",
    "FactType": "settings",
    "Estimate": "memory.usage",
    "ExportResult": "models.transfers",
    "ForgetReceipt": "models.receipts",
    "GraphMemory": "memory.memory",
    "ImportResult": "models.transfers",
    "KGMemoryError": "errors",
    "Limits": "models.budget",
    "Neighbourhood": "models.surroundings",
    "Progress": "memory.episodes",
    "Recipe": "retrieval.recipe",
    "Residue": "models.receipts",
    "Settings": "settings",
    "StepUsage": "models.usage",
    "Template": "retrieval.context.templates",
    "Usage": "models.usage",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command that needs little of it starts fast."""
    if name not in __all__:
        hint = ": it may be in kg_memory.adapters" if name.startswith("KG") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models.graph')}"), name)
