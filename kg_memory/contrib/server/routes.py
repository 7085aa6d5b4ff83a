"""The routes under ``/v1/namespaces/{namespace}`` that call methods of `GraphMemory`."""

from __future__ import annotations

from kg_memory.contrib.server.endpoints import NAMESPACE, Route

QUESTION = {"question": "Where does Ann live?"}
FACT = {"subject": "Ann", "predicate": "WORKS_AT", "object": "Acme", "valid_at": "2024-05", "source_id": "crm/4711"}
EPISODE = {"content": "I moved to Oslo last week!", "speaker": "Ann", "at": "2024-05-14T09:30:00Z"}
REPLACE = {"with_text": "Ann lives in Bergen."}
MERGE = {"others": ["Annie"], "reason": "the same person"}
SPLIT = {"episodes": ["0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11"], "name": "Ann Smith"}
DECIDE = {"choice": "accept", "reason": "she told me herself"}
RELATION = {"canonical": "LIVES_IN", "single_valued": True}
ROUTES = (
    Route("POST", "/search", "search", example={**QUESTION, "as_of": "2024-02-01", "limit": 5}),
    Route("POST", "/context", "context", example={**QUESTION, "max_tokens": 500}),
    Route("GET", "/profile", "profile"),
    Route("GET", "/stats", "stats"),
    Route("POST", "/pause", "pause", "write"),
    Route("POST", "/unpause", "unpause", "write"),
    Route("GET", "/episodes", "episodes.list"),
    Route("GET", "/episodes/{episode}", "episodes.get"),
    Route("POST", "/episodes/retry", "episodes.retry", "write"),
    Route("POST", "/episodes/summarise", "episodes.summarise", "write", example={"thread": "t-1"}),
    Route("POST", "/episodes/deepen", "episodes.deepen", "write"),
    Route("GET", "/facts", "facts.list"),
    Route("POST", "/facts", "facts.add", "write", 201, example=FACT),
    Route("POST", "/facts/batch", "facts.add_many", "write", 201, example={"rows": [FACT]}),
    Route("GET", "/facts/stale", "facts.stale", heavy=True),
    Route("GET", "/facts/{fact}", "facts.get"),
    Route("GET", "/facts/{fact}/explain", "facts.explain"),
    Route("GET", "/facts/{fact}/sources", "facts.sources"),
    Route("GET", "/facts/{fact}/evolution", "facts.evolution"),
    Route("GET", "/facts/{fact}/consequences", "facts.consequences", whole=True, heavy=True),
    Route("POST", "/facts/{fact}/retract", "facts.retract", "review", example={"reason": "she says it is not so"}),
    Route("POST", "/facts/{fact}/replace", "facts.replace", "review", 201, example=REPLACE),
    Route("GET", "/changes", "facts.changes"),
    Route("GET", "/entities", "entities.list"),
    Route("GET", "/entities/{name}", "entities.card"),
    Route("GET", "/entities/{name}/facts", "facts.about"),
    Route("GET", "/entities/{name}/history", "facts.history"),
    Route("GET", "/entities/{name}/timeline", "facts.timeline", whole=True, heavy=True),
    Route("GET", "/entities/{name}/around", "entities.around", heavy=True),
    Route("GET", "/entities/{name}/path", "entities.path", heavy=True),
    Route("GET", "/entities/{name}/similar", "entities.similar"),
    Route("POST", "/entities/{into}/merge", "entities.merge", "review", example=MERGE),
    Route("POST", "/entities/{entity}/split", "entities.split", "review", example=SPLIT),
    Route("GET", "/identities", "entities.decisions"),
    Route("GET", "/identities/waiting", "reviews.identities"),
    Route("POST", "/identities/{decision}/undo", "entities.undo", "review"),
    Route("POST", "/identities/{doubt}/decide", "reviews.decide_identity", "review", example={"choice": "reject"}),
    Route("GET", "/communities", "communities.list"),
    Route("GET", "/communities/{name}", "communities.get"),
    Route("POST", "/communities/refresh", "communities.refresh", "write", heavy=True),
    Route("GET", "/reviews", "reviews.list"),
    Route("GET", "/conflicts", "reviews.conflicts"),
    Route("GET", "/verdicts", "reviews.verdicts"),
    Route("POST", "/reviews/{review}/decide", "reviews.decide", "review", example=DECIDE),
    Route("POST", "/reviews/{review}/undo", "reviews.undo", "review"),
    Route("GET", "/predicates", "predicates.list"),
    Route("PATCH", "/predicates/{name}", "predicates.update", "review", example=RELATION),
    Route("GET", "/reports/digest", "reports.digest"),
    Route("GET", "/reports/identity", "reports.identity"),
    Route("GET", "/reports/handoff", "reports.handoff"),
    Route("GET", "/usage", "usage.spent"),
    Route("POST", "/usage/estimate", "usage.estimate", example={"episodes": [EPISODE]}),
    Route("POST", "/evict", "privacy.evict", "forget", example={"expired_days": 90, "dry_run": True}),
    Route("GET", "/audit", "privacy.audit", "admin"),
)
BY_VERB = {route.verb: f"{route.method} {NAMESPACE}{route.path}" for route in ROUTES}
"""The routes by method name, such as ``facts.list``: error texts name routes instead of methods."""
