"""The HTTP API as an ASGI application: `create_app`, the uvicorn server that runs it, and LangGraph authentication."""

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
from kg_memory.contrib.server.answers import MOST, Page, PagePosition, cut_page
from kg_memory.contrib.server.endpoints import LenientRoute, add_route, describe
from kg_memory.contrib.server.explorer import routes as explorer
from kg_memory.contrib.server.gate import RequestGate
from kg_memory.contrib.server.keys import ApiKey
from kg_memory.contrib.server.mcp.http import PATH as MCP_PATH
from kg_memory.contrib.server.mcp.http import Endpoint as McpEndpoint
from kg_memory.contrib.server.problems import add_handlers, describe_problems
from kg_memory.contrib.server.routes import BY_VERB, ROUTES
from kg_memory.contrib.server.service import Options, Service
from kg_memory.falkor.wire import State
from kg_memory.memory.memory import GraphMemory
from kg_memory.text.identity import replace_unstorable

ABOUT = """\
Long-term memory for LLM agents as a temporal knowledge graph. The operations are the methods of the Python library, by
the same names. Lists are paged: pass the `next` of a page as `cursor` to get the following page.
"""
PATHS = ("/v1/", "/api/graph/", "/healthz", "/explorer")
"""Prefixes of the paths of this API; other paths may belong to an application that this one is mounted in."""
DEFAULT = Options()


def create_app(memory: GraphMemory, options: Options = DEFAULT, *, close_memory: bool = False) -> FastAPI:
    """Return a FastAPI application that serves *memory* over HTTP and MCP.

    *close_memory* closes the memory when the application shuts down. The application's `state.service` is its
    `Service`. Run it with any ASGI server: ``uvicorn.run(create_app(memory))``.
    """
    service = Service(memory, options)
    mcp = McpEndpoint(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        """While the app runs, accept MCP requests and extract facts from saved episodes in the background.

        On shutdown, the background reader gets `Options.stop_seconds` to finish its work.
        """
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
    app.add_middleware(RequestGate, paths=paths, service=service)
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
    """Register all HTTP routes on *router* itself, because LangGraph's server does not support nested routers."""
    # On the router itself: LangGraph's server does not support nested routers.
    for part in (graph, writing, transfer, events, explorer):
        part.add_routes(router, service)
    for route in ROUTES:
        add_route(router, service, route)

    @router.get("/v1/namespaces", **describe("data.namespaces"))
    async def list_namespaces(
        key: KnownKey,
        state: State | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
        cursor: str | None = None,
    ) -> Page[str]:
        """List the namespaces that hold data and that the key may access; *state*: only those awake or asleep."""
        place = PagePosition.from_cursor(cursor)
        found = await service.memory.data.anamespaces(state)
        names = [replace_unstorable(name) for name in found if key.reaches(name)]  # JSON has no lone surrogates
        return cut_page(names[place.skip :], place, limit)

    @router.get("/v1/key", **describe("server.key"))
    async def describe_key(key: KnownKey) -> ApiKey:
        """Return the id, name, scopes and namespaces of the key that this request sends."""
        return key

    @router.get("/healthz", tags=["server"], operation_id="server.health")
    async def check_health() -> dict[str, str]:
        """Return ``{"status": "ok"}`` while the server runs. Needs no key."""
        return {"status": "ok"}


class StoppingServer(uvicorn.Server):
    """A uvicorn server that closes open event streams on a stop signal. Otherwise it would wait for them forever."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """On a stop signal, set `Service.stopping`, so that open event streams end, and let uvicorn shut down."""
        self._service.stopping = True
        super().handle_exit(sig, frame)


def make_auth(memory: GraphMemory) -> Auth:
    """Return an ``auth`` object for ``langgraph.json``: LangGraph's server then requires the API keys of *memory*.

    Requests from this machine need no key as long as no key was ever created.
    """
    guard, auth = Service(memory, Options()).guard, Auth()

    @auth.authenticate
    async def authenticate(request: Request) -> Auth.types.MinimalUserDict:
        key = await guard.identify(find_secret(request.headers), request)
        if key is None:
            raise Auth.exceptions.HTTPException(status_code=401, detail=NO_KEY)
        return {"identity": key.id, "display_name": key.name, "permissions": list(key.scopes), "is_authenticated": True}

    return auth
