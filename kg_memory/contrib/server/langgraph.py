"""Keys for LangGraph's server: its own routes, and ours in it, ask for the same keys."""

from __future__ import annotations

from langgraph_sdk import Auth
from starlette.requests import Request

from kg_memory.contrib.server.access import NO_KEY, find_secret
from kg_memory.contrib.server.service import Options, Service
from kg_memory.memory.memory import GraphMemory


def make_auth(memory: GraphMemory) -> Auth:
    """Return what ``langgraph.json`` names as ``auth``; as long as there is no key, this machine needs none."""
    guard, auth = Service(memory, Options()).guard, Auth()

    @auth.authenticate
    async def authenticate(request: Request) -> Auth.types.MinimalUserDict:
        key = await guard.identify(find_secret(request.headers), request)
        if key is None:
            raise Auth.exceptions.HTTPException(status_code=401, detail=NO_KEY)
        return {"identity": key.id, "display_name": key.name, "permissions": list(key.scopes), "is_authenticated": True}

    return auth
