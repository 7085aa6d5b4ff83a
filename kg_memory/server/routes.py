"""The routes that verbs of the memory have, under ``/v1/namespaces/{namespace}``."""

from __future__ import annotations

from kg_memory.server.endpoints import Route

ROUTES = (
    Route("POST", "/search", "search"),
    Route("POST", "/context", "context"),
    Route("GET", "/stats", "stats"),
    Route("GET", "/episodes", "episodes.list"),
    Route("GET", "/episodes/{episode}", "episodes.get"),
    Route("POST", "/facts", "facts.add", "write", 201),
    Route("GET", "/entities", "entities.list"),
    Route("GET", "/entities/{name}", "entities.card"),
    Route("GET", "/entities/{name}/facts", "facts.about"),
    Route("GET", "/entities/{name}/history", "facts.history"),
    Route("GET", "/entities/{name}/timeline", "facts.timeline", whole=True),
)
