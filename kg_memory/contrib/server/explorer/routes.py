"""Routes of the explorer, a web page that shows the graph: its files, the graph as columns, and doubtful facts."""

from __future__ import annotations

import asyncio
import gzip
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from kg_memory.contrib.server.access import KnownKey, Reading, is_local
from kg_memory.contrib.server.endpoints import NAMESPACE
from kg_memory.contrib.server.explorer.columns import FAR, read_columns
from kg_memory.contrib.server.service import Service
from kg_memory.retrieval.clocks import parse_moment, read_grounds
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Point, find_doubts

STATIC = Path(__file__).parent / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types layout-worker"
)
"""Content security policy of the page: only files of this server, no inline scripts, no markup made from text."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
PREMISED = """
MATCH (f:Fact)-[:RESTS_ON]->(:Fact)
RETURN DISTINCT f.id AS id
"""
Instant = Annotated[int, Query(ge=-FAR, le=FAR, description="Milliseconds since 1970.")]


class Moment(BaseModel):
    """A time, in milliseconds since 1970."""

    at: int


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the explorer's web page, and the routes that only this page calls, to *router*."""
    _add_page(router, service)
    driver = service.memory.driver

    @router.get(NAMESPACE + "/explorer/columns", include_in_schema=False)
    async def read_graph(request: Request, access: Reading) -> Response:
        """Return the nodes and links of the graph as bytes (see `pack_columns`), or status 304 if they are unchanged.

        The bytes are compressed unless the client is on the same machine.
        """
        known = request.headers.get("if-none-match", "")
        tag, body = await service.jobs.run(
            request,
            access.namespace,
            ("columns", known),
            lambda _: driver.arun(read_columns(known), access.namespace),
            cancel=True,
        )
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, Accept-Encoding"}
        if body is None:
            return Response(None, 304, headers)
        if not is_local(request) and "gzip" in request.headers.get("accept-encoding", ""):
            body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return Response(body, 200, headers, "application/octet-stream")

    @router.get(NAMESPACE + "/explorer/doubts", include_in_schema=False)
    async def list_doubts(request: Request, access: Reading, as_of: Instant, believed_at: Instant) -> dict[str, int]:
        """Return the facts that were doubtful at the time *as_of*, as believed at *believed_at*.

        The result maps the id of each fact to the start of the doubt. All times are milliseconds since 1970.
        """
        flow = read_doubts(as_of * 1000, believed_at * 1000)
        asked = ("doubts", as_of, believed_at)
        doubts = await service.jobs.run(
            request, access.namespace, asked, lambda _: driver.arun(flow, access.namespace), cancel=True
        )
        return {id_: since // 1000 for id_, since in doubts.items()}


def read_doubts(as_of: int, believed_at: int) -> Flow[dict[str, int]]:
    """Return the facts that were doubtful at the time *as_of*, and since when: ``{"f1": 1715679000000000}``.

    Doubtful: a fact that it depends on is no longer true. *believed_at*: only what the memory knew by then counts. All
    times are microseconds since the epoch.
    """
    facts_by_id, _ = yield from read_grounds(row["id"] for row in (yield from fetch(PREMISED)))
    return {id_: doubt.since for id_, doubt in find_doubts(facts_by_id, Point(as_of, believed_at)).items()}


def _add_page(router: APIRouter, service: Service) -> None:
    """Add routes for the files of the web page, and a route that parses a time in words, to *router*."""
    story = files("kg_memory.contrib.demo").joinpath("story.jsonl").read_text("utf-8")
    pages = StaticFiles(directory=STATIC)

    @router.get("/explorer", include_in_schema=False)
    async def open_page() -> Response:
        return RedirectResponse("explorer/")

    @router.get("/explorer/story.jsonl", include_in_schema=False)
    async def read_story(_: KnownKey) -> Response:
        return Response(story, 200, HEADERS, "application/jsonl")

    @router.get("/explorer/moment", include_in_schema=False)
    async def read_moment(_: KnownKey, text: Annotated[str, Query(min_length=1, max_length=200)]) -> Moment:
        """Return the start of a time in words, such as ``last March``, in milliseconds since 1970."""
        return Moment(at=parse_moment("text", text, service.memory.driver.clock()) // 1000)

    # A route, not a mount: LangGraph's server does not accept mounts.
    @router.get("/explorer/{path:path}", include_in_schema=False)
    async def read_page(path: str, request: Request) -> Response:
        """Return a static file of the explorer (web page), such as ``icon.svg``; an empty *path* is ``index.html``."""
        response = await pages.get_response(path or "index.html", request.scope)
        response.headers.update(HEADERS)
        return response
