"""Long-term memory for LLM agents as a temporal knowledge graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.budgets import Budget, Limits
    from kg_memory.calls import Progress
    from kg_memory.context_text import Context
    from kg_memory.errors import KGMemoryError
    from kg_memory.estimate import Estimate
    from kg_memory.memory import GraphMemory
    from kg_memory.model import (
        Added,
        Change,
        Community,
        CommunityRefresh,
        Decision,
        Entity,
        Episode,
        EpisodeInput,
        EpisodeKind,
        EpisodeStatus,
        Evicted,
        Fact,
        Found,
        Hit,
        Moment,
        Review,
        Source,
        Stats,
        Why,
    )
    from kg_memory.receipts import AuditCheck, AuditEntry, Forgotten, Residue
    from kg_memory.recipes import Recipe
    from kg_memory.retrieval.templates import Template
    from kg_memory.settings import EntityType, FactType, Settings
    from kg_memory.surroundings import CommunityCard, Neighbourhood
    from kg_memory.transfer.outcome import Exported, Imported
    from kg_memory.usage import DaySpent, StepUsage, Usage

__all__ = [
    "Added",
    "AuditCheck",
    "AuditEntry",
    "Budget",
    "Change",
    "Community",
    "CommunityCard",
    "CommunityRefresh",
    "Context",
    "DaySpent",
    "Decision",
    "Entity",
    "EntityType",
    "Episode",
    "EpisodeInput",
    "EpisodeKind",
    "EpisodeStatus",
    "Estimate",
    "Evicted",
    "Exported",
    "Fact",
    "FactType",
    "Forgotten",
    "Found",
    "GraphMemory",
    "Hit",
    "Imported",
    "KGMemoryError",
    "Limits",
    "Moment",
    "Neighbourhood",
    "Progress",
    "Recipe",
    "Residue",
    "Review",
    "Settings",
    "Source",
    "Stats",
    "StepUsage",
    "Template",
    "Usage",
    "Why",
]

_HOMES = {
    "AuditCheck": "receipts",
    "AuditEntry": "receipts",
    "Budget": "budgets",
    "CommunityCard": "surroundings",
    "Context": "context_text",
    "DaySpent": "usage",
    "EntityType": "settings",
    "FactType": "settings",
    "Estimate": "estimate",
    "Exported": "transfer.outcome",
    "Forgotten": "receipts",
    "GraphMemory": "memory",
    "Imported": "transfer.outcome",
    "KGMemoryError": "errors",
    "Limits": "budgets",
    "Neighbourhood": "surroundings",
    "Progress": "calls",
    "Recipe": "recipes",
    "Residue": "receipts",
    "Settings": "settings",
    "StepUsage": "usage",
    "Template": "retrieval.templates",
    "Usage": "usage",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command that needs little of it starts fast."""
    if name not in __all__:
        hint = ": it may be in kg_memory.adapters" if name.startswith("KG") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model')}"), name)
