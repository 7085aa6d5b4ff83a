"""`create_app`: the HTTP API of a memory, as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI

from kg_memory.memory.memory import GraphMemory
from kg_memory.server.access import Guard, RateLimit
from kg_memory.server.endpoints import add_route
from kg_memory.server.gate import Gate
from kg_memory.server.keys import KeyRing
from kg_memory.server.problems import add_handlers
from kg_memory.server.routes import ROUTES

ABOUT = """\
Long-term memory for LLM agents as a temporal knowledge graph. The operations are the verbs of the Python library, by
the same names. A list comes in pages: give the `next` of one as the `cursor` of the following one.
"""
PATHS = ("/v1/", "/healthz")
"""Beginnings of the paths that are ours: an application around ours may have others."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the server: the hosts and pages that it answers, and its limits."""

    hosts: tuple[str, ...] = ()
    """Names in ``Host`` that are answered beside those of this machine; ``*`` is all."""
    origins: tuple[str, ...] = ()
    """Pages of other servers that may ask, such as ``https://app.example.com``."""
    max_body: int = 10_000_000
    """Bytes of a request, but for imports."""
    rate: float = 50.0
    """Requests a second of a key."""
    burst: int = 200
    """Requests of a key at once."""


DEFAULT = Options()


def create_app(memory: GraphMemory, options: Options = DEFAULT, *, close_memory: bool = False) -> FastAPI:
    """Return the application that serves *memory*, and closes it at its end if it should."""
    guard = Guard(KeyRing(memory.driver.store.database), RateLimit(options.rate, options.burst))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        if close_memory:
            await memory.aclose()

    app = FastAPI(title="kg-memory", version="1", description=ABOUT, lifespan=lifespan, redoc_url=None)
    app.add_middleware(Gate, paths=PATHS, hosts=options.hosts, origins=options.origins, max_body=options.max_body)
    add_handlers(app)
    router = APIRouter()
    for route in ROUTES:
        add_route(router, memory, guard, route)
    app.include_router(router)

    @app.get("/healthz", tags=["server"], operation_id="server.health")
    async def health() -> dict[str, str]:
        """Tell that the server runs."""
        return {"status": "ok"}

    return app
