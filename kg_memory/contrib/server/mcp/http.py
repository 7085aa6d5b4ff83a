"""MCP over HTTP at ``/v1/mcp``, with the API keys of the server.

The URL in the client's configuration names the namespace, the profile (a set of tools) and the user:
``/v1/mcp?namespace=ann&profile=read-only&user=Ann``. The API key must allow the namespace. ``recall_from=team``
names a further namespace that ``recall`` searches; it may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from kg_memory.contrib.server.access import OPEN, authorize, find_secret
from kg_memory.contrib.server.keys import ApiKey
from kg_memory.contrib.server.limits import SESSIONS, Shares
from kg_memory.contrib.server.mcp.server import MemoryServer
from kg_memory.contrib.server.mcp.server import Request as McpRequest
from kg_memory.contrib.server.mcp.tool import Caller
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.errors import InputError
from kg_memory.validation import DEFAULT_NAMESPACE

PATH = "/v1/mcp"
STATE = "kg_memory.caller"
LOOK = 0.25
"""Seconds between two checks of whether the server is stopping."""


class _LimitedSessions(StreamableHTTPSessionManager):
    shares: Shares

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        if requestor is not None:
            own = sum(owner["client_id"] == requestor["client_id"] for owner in self._session_owners.values())
            self.shares.check(SESSIONS, own + 1)
        return super()._admit_session(requestor)


class Endpoint:
    """The ASGI app for MCP requests at `PATH`. It works only inside the context manager `run`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions: _LimitedSessions | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Context manager: accept MCP requests while the body runs.

        When the server begins to stop, open streams end.
        """
        service = self._service
        server = MemoryServer(service.memory, _caller_of, service.reader.wake).build()
        # The SDK need not check hosts and origins: the middleware `RequestGate` does.
        sessions = _LimitedSessions(
            server, max_request_body_size=service.options.max_body, session_idle_timeout=service.options.session_seconds
        )
        sessions.shares = service.shares
        ready, end = asyncio.Event(), asyncio.Event()

        async def serve() -> None:
            async with sessions.run():
                ready.set()
                while not (service.stopping or end.is_set()):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(end.wait(), LOOK)
                self._sessions = None

        task = asyncio.create_task(serve())
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        self._sessions = sessions
        try:
            yield
        finally:
            end.set()
            await task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate an MCP request and answer it. Raises `ProblemError` if it is not allowed."""
        if self._sessions is None:
            raise ProblemError(503, "the server is stopping; try again later", headers={"Retry-After": "5"})
        caller = await self._find_caller(Request(scope))
        token = AccessToken(token="", client_id=caller.key.id, scopes=list(caller.key.scopes), subject=caller.namespace)
        # The SDK lets only the same key and namespace use a session again.
        await self._sessions.handle_request({**scope, STATE: caller, "user": AuthenticatedUser(token)}, receive, send)

    async def _find_caller(self, request: Request) -> Caller:
        key = await self._service.guard.authenticate(find_secret(request.headers), request)
        query = request.query_params
        namespace = _find_namespace(key, query.get("namespace"))
        others = [authorize(key, "read", name).namespace for name in query.getlist("recall_from")]
        try:
            return Caller.make(key, namespace, query.get("profile"), query.get("user"), others)
        except InputError as error:
            raise ProblemError(422, str(error)) from None


def _caller_of(request: McpRequest) -> Caller:
    assert request.request is not None  # noqa: S101 - over HTTP there is one
    caller: Caller = request.request.scope[STATE]  # stored by `Endpoint`
    return caller


def _find_namespace(key: ApiKey, named: str | None) -> str:
    """Return the namespace of an MCP session: *named*, the one in the URL, if *key* allows it.

    If *named* is None, it is the only namespace that *key* allows, or ``default`` for a local request without a key.
    Raises `ProblemError` if *key* does not allow *named*, or allows several namespaces and *named* is None.
    """
    if named is None and key == OPEN:
        return DEFAULT_NAMESPACE
    if named is None and len(key.namespaces) == 1 and "*" not in key.namespaces[0]:
        named = key.namespaces[0]
    if named is None:
        raise ProblemError(422, f"this key allows several namespaces; name one in the URL: {PATH}?namespace=NAME")
    return authorize(key, key.scopes[0], named).namespace
