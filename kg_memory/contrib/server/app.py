"""`create_app`: the HTTP API of a memory, as an ASGI application, and what runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Annotated

import uvicorn
from fastapi import APIRouter, FastAPI, Query
from langgraph_sdk import Auth
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from kg_memory.contrib.server import events, graph, transfer, writing
from kg_memory.contrib.server.access import NO_KEY, KnownKey, find_secret
from kg_memory.contrib.server.answers import MOST, Page, Place, cut_page
from kg_memory.contrib.server.endpoints import LenientRoute, add_route, describe
from kg_memory.contrib.server.explorer import routes as explorer
from kg_memory.contrib.server.gate import Gate
from kg_memory.contrib.server.keys import ApiKey
from kg_memory.contrib.server.mcp.http import PATH as MCP_PATH
from kg_memory.contrib.server.mcp.http import Endpoint as McpEndpoint
from kg_memory.contrib.server.problems import add_handlers, describe_problems
from kg_memory.contrib.server.routes import BY_VERB, ROUTES
from kg_memory.contrib.server.service import Options, Service
from kg_memory.memory.memory import GraphMemory

ABOUT = """\
Long-term memory for LLM agents as a temporal knowledge graph. The operations are the verbs of the Python library, by
the same names. A list comes in pages: give the `next` of one as the `cursor` of the following one.
"""
PATHS = ("/v1/", "/api/graph/", "/healthz", "/explorer")
"""Beginnings of the paths that are ours: an application around ours may have others."""
DEFAULT = Options()


def create_app(memory: GraphMemory, options: Options = DEFAULT, *, close_memory: bool = False) -> FastAPI:
    """Return the application that serves *memory*, and closes it at its end if it should.

    Its `state.service` is the `Service`.
    """
    service = Service(memory, options)
    mcp = McpEndpoint(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.reader.start()
        async with mcp.run():
            yield
        service.stopping = True
        await service.reader.stop(options.stop_seconds)
        if close_memory:
            await memory.aclose()

    app = FastAPI(title="kg-memory", version="1", description=ABOUT, lifespan=lifespan, redoc_url=None)
    app.state.service = service
    paths = ("/",) if options.alone else PATHS
    app.add_middleware(Gate, paths=paths, service=service)
    if options.origins:
        exposed = ("ETag", "Location", "Retry-After", "X-Request-ID")
        app.add_middleware(
            CORSMiddleware, allow_origins=options.origins, allow_methods="*", allow_headers="*", expose_headers=exposed
        )
    add_handlers(app, paths, {"data.namespaces": "GET /v1/namespaces", **BY_VERB})
    describe_problems(app)
    app.router.route_class = LenientRoute
    _add_routes(app.router, service)
    if options.alone:
        app.router.routes.append(Route("/", lambda _: RedirectResponse("explorer/")))
    app.router.routes.append(Route(MCP_PATH, mcp))
    return app


def _add_routes(router: APIRouter, service: Service) -> None:
    """Add all routes to *router* itself: LangGraph's server can wrap routes, but no routers in routers."""
    for part in (graph, writing, transfer, events, explorer):
        part.add_routes(router, service)
    for route in ROUTES:
        add_route(router, service, route)

    @router.get("/v1/namespaces", **describe("data.namespaces"))
    async def list_namespaces(
        key: KnownKey, limit: Annotated[int, Query(ge=1, le=MOST)] = 100, cursor: str | None = None
    ) -> Page[str]:
        """Return the namespaces that hold something and that the key reaches."""
        place = Place.from_cursor(cursor)
        names = [name for name in await service.memory.data.anamespaces() if key.reaches(name)]
        return cut_page(names[place.skip :], place, limit)

    @router.get("/v1/key", **describe("server.key"))
    async def describe_key(key: KnownKey) -> ApiKey:
        """Return what the key of the request may do."""
        return key

    @router.get("/healthz", tags=["server"], operation_id="server.health")
    async def check_health() -> dict[str, str]:
        """Tell that the server runs."""
        return {"status": "ok"}


class StoppingServer(uvicorn.Server):
    """A server that ends the streams of events when it is told to stop, as they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._service.stopping = True
        super().handle_exit(sig, frame)


def make_auth(memory: GraphMemory) -> Auth:
    """Return the ``auth`` of ``langgraph.json``: LangGraph's server asks for the same keys.

    As long as there is no key, this machine needs none.
    """
    guard, auth = Service(memory, Options()).guard, Auth()

    @auth.authenticate
    async def authenticate(request: Request) -> Auth.types.MinimalUserDict:
        key = await guard.identify(find_secret(request.headers), request)
        if key is None:
            raise Auth.exceptions.HTTPException(status_code=401, detail=NO_KEY)
        return {"identity": key.id, "display_name": key.name, "permissions": list(key.scopes), "is_authenticated": True}

    return auth
