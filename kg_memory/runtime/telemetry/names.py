"""The names by which telemetry tells verbs, providers, commands and queries apart: few, and none of them a user's."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

MEMORY_OPERATIONS = {
    **dict.fromkeys(("add", "add_many", "episodes.save", "episodes.resume", "episodes.retry"), "upsert_memory"),
    **dict.fromkeys(("search", "context", "facts.about", "facts.history", "facts.timeline"), "search_memory"),
    **dict.fromkeys(("facts.changes", "facts.evolution", "entities.list", "entities.card"), "search_memory"),
    **dict.fromkeys(("entities.around", "episodes.list", "communities.list"), "search_memory"),
    "privacy.forget": "delete_memory",
}
"""The operations of the conventions that verbs are."""
_PROVIDERS = {
    "aws": "aws.bedrock", "google_genai": "gcp.gemini", "google_vertexai": "gcp.vertex_ai", "mistralai": "mistral_ai",
    "xai": "x_ai",
}  # fmt: skip
_names: dict[str, str] = {}
"""The names of the known queries."""


def provider(model: Any) -> str:
    """Return who gives *model*, by the package that speaks to it."""
    package = type(model).__module__.partition(".")[0].removeprefix("langchain_")
    return _PROVIDERS.get(package, package)


def model_name(model: Any) -> str:
    """Return *model*'s own name, as far as it tells one."""
    told = (getattr(model, each, None) for each in ("model_name", "model", "model_id", "name"))
    return next((each for each in told if isinstance(each, str) and each), type(model).__name__)


def command_name(count: int, *, write: bool) -> str:
    """Return the Redis command that runs queries, or a batch of them."""
    name = "GRAPH.QUERY" if write else "GRAPH.RO_QUERY"
    return name if count < 2 else f"BATCH {name}"


@lru_cache(maxsize=4096)
def query_name(cypher: str) -> str | None:
    """Return the name of the constant that *cypher* is, if it is one: a query made for its filter is none."""
    if cypher not in _names:
        _names.update(_constants())
    return _names.get(cypher)


def _constants() -> dict[str, str]:
    modules = {name: module for name, module in list(sys.modules.items()) if _has_queries(name, module)}
    return {
        value: name
        for module in modules.values()
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }


def _has_queries(name: str, module: ModuleType | None) -> bool:
    place = name.removeprefix("kg_memory.")
    return module is not None and place != name and (".queries." in place or place.endswith(("cypher", ".schema")))
