"""Subscriptions to resources: a stream by the current protocol, notifications by the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from kg_memory.contrib.server.mcp.caller import Caller
from kg_memory.contrib.server.mcp.resources import MOST_WATCHED, take_digests, to_protocol, watch
from kg_memory.errors import KGMemoryError
from kg_memory.memory.memory import GraphMemory

Request = ServerRequestContext[Any, Any]
Publish = Callable[[str], Awaitable[None]]
Watching = Callable[[Publish], Coroutine[Any, Any, None]]
WATCHES = "kg_memory.watches"


class Host:
    """The program around the server, which limits subscriptions: here not at all, as over stdio."""

    async def is_valid(self, _caller: Caller) -> bool:
        """Return whether the caller may still subscribe."""
        return True

    def hold(self, _caller: Caller, _many: int) -> AbstractContextManager[None]:
        """Return the share of so many subscriptions of the caller. Errors: `MCPError` when it is entered."""
        return nullcontext()

    def is_heard(self, _session: str) -> bool:
        """Return whether the session has an open stream."""
        return True


class Subscriptions:
    """Watches resources for the clients that subscribed to them, as long as their keys are valid."""

    def __init__(self, memory: GraphMemory, find_caller: Callable[[Request], Caller], host: Host) -> None:
        self._memory, self._find_caller, self._host = memory, find_caller, host

    async def listen(self, request: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Tell of changes on the stream of this request, until its client goes."""
        caller = self._find_caller(request)
        uris = params.notifications.resource_subscriptions or []
        with self._host.hold(caller, max(1, len(uris))):
            watching = await self._begin(caller, uris, lambda: True)
            return await self._listen(request, params, watching)

    async def _listen(
        self, request: Request, params: SubscriptionsListenRequestParams, watching: Watching
    ) -> SubscriptionsListenResult:
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)

        async def publish(uri: str) -> None:
            await bus.publish(ResourceUpdated(uri=uri))

        task = asyncio.create_task(watching(publish))
        task.add_done_callback(lambda _: handler.close())
        try:
            return await handler(request, params)
        finally:
            task.cancel()

    async def subscribe(self, request: Request, params: SubscribeRequestParams) -> EmptyResult:
        """Tell of changes on the connection of this request, until it is closed."""
        caller, connection = self._find_caller(request), _connection_of(request)
        watches: dict[str, asyncio.Task[None]] = connection.state.setdefault(WATCHES, {})
        uri = str(params.uri)
        if uri not in watches:
            with ExitStack() as held:
                held.enter_context(self._host.hold(caller, 1))
                watching = await self._begin(caller, [uri], self._hearing(request), len(watches))
                task = asyncio.create_task(watching(request.session.send_resource_updated))
                share = held.pop_all()
            watches[uri] = task
            share.callback(_drop, watches, uri, task)
            task.add_done_callback(lambda _: share.close())
            connection.exit_stack.callback(task.cancel)
        return EmptyResult()

    def _hearing(self, request: Request) -> Callable[[], bool]:
        headers = request.request.headers if request.request is not None else {}
        return partial(self._host.is_heard, headers.get(MCP_SESSION_ID_HEADER, ""))

    async def unsubscribe(self, request: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        """Tell of changes no more."""
        watches: dict[str, asyncio.Task[None]] = _connection_of(request).state.get(WATCHES, {})
        if task := watches.pop(str(params.uri), None):
            task.cancel()
        return EmptyResult()

    async def _begin(self, caller: Caller, uris: list[str], is_heard: Callable[[], bool], watched: int = 0) -> Watching:
        """Return what watches *uris* from now on, and is given the way to tell of changes."""
        if not caller.key.has("read"):
            raise MCPError(INVALID_PARAMS, "this key does not have the scope read")
        if len(uris) + watched > MOST_WATCHED:
            raise MCPError(INVALID_PARAMS, f"a client may subscribe to {MOST_WATCHED} resources at once; drop some")
        try:
            digests = await take_digests(self._memory, uris, caller.namespace)
        except KGMemoryError as error:
            raise to_protocol(error) from None

        def begin(publish: Publish) -> Coroutine[Any, Any, None]:
            is_valid = partial(self._host.is_valid, caller)
            return watch(self._memory, digests, caller.namespace, publish, is_valid, is_heard)

        return begin


def _drop(watches: dict[str, asyncio.Task[None]], uri: str, task: asyncio.Task[None]) -> None:
    if watches.get(uri) is task:
        del watches[uri]


def _connection_of(request: Request) -> Any:
    return request.session._connection  # noqa: SLF001 - the SDK has no other way to what outlives the request
