"""ASGI middleware in front of all routes: checks host, origin, API key and body size, and adds request ids.

It also preserves percent-encoded slashes (``%2F``) in paths, and answers exceptions with problem details (RFC 9457).
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg_memory.contrib.server.access import find_secret, is_loopback
from kg_memory.contrib.server.limits import SOON, Turns
from kg_memory.contrib.server.parameters import SMALL, most_bytes
from kg_memory.contrib.server.problems import ProblemError, own_path, problem_response, to_problem
from kg_memory.contrib.server.service import Service
from kg_memory.runtime.flow import TURN
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.message_fields import has_more_values

logger = logging.getLogger("kg_memory.contrib.server")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ENCODED = ("/v1/", "/api/graph/")
"""Prefixes of paths that need an API key, and whose parameters are decoded after routing: ``team%2Fann`` is one."""
LONGEST_HEAD = 32_000
"""The longest path, query and headers together, in bytes."""
LARGE = 10_000
"""The bytes from which a body of episodes or facts is large: 1,000 facts in 50 kB take 20 s and 20 MB. Elsewhere,
a body is large from `SMALL` bytes."""
LARGE_AT_ONCE = 2
"""Large bodies that are read at the same time; they are handled one by one. Further requests wait."""
BODY_SECONDS = 30.0
"""Seconds within which the whole body must arrive, and which a large body waits for its turn."""
DROPPED, DROP_SECONDS = 200_000, 1.0
"""The bytes from which the body of a rejected request is read and dropped, and the seconds that this may take."""
MOST_VALUES, MOST_VALUES_OF_SMALL = 50_000, 5_000
"""The most JSON values in a body with many episodes or facts, and in any other body: parsing blocks other requests."""
CLIENT_LEFT = 499
"""The status in the log for a request whose client disconnected before the response."""
BUSY = "the server is busy with other large requests; try again later, or send fewer items at a time"
FAULT = "internal server error; find the request id in the server's log"


class RequestGate:
    """ASGI middleware that checks each request under one of *paths* before it reaches a route."""

    def __init__(self, app: ASGIApp, *, paths: Sequence[str], service: Service) -> None:
        options = service.options
        self._app, self._paths, self._max_body, self._guard = app, tuple(paths), options.max_body, service.guard
        self._hosts, self._origins = frozenset(options.hosts), frozenset(options.origins)
        self._turns = Turns()
        self._large, self._handled, self._dropped = asyncio.Semaphore(LARGE_AT_ONCE), asyncio.Lock(), asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request and pass it on to the application; if it is rejected or fails, send an error response."""
        if scope["type"] != "http" or not own_path(scope).startswith(self._paths):
            await self._app(scope, receive, send)
            return
        headers, began = Headers(scope=scope), time.perf_counter()
        asked = headers.get("x-request-id", "")
        request_id = asked if REQUEST_ID.fullmatch(asked) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                marked = MutableHeaders(scope=message)
                marked["X-Request-ID"] = request_id
                marked["X-Content-Type-Options"] = "nosniff"
            await send(message)

        inner = _keep_encoded(scope)
        try:
            await self._pass(inner, headers, receive, send_marked)
        except ClientDisconnect:  # no response can be sent
            status = status or CLIENT_LEFT
        except Exception as error:
            if status:
                raise
            problem = to_problem(error)
            if problem is None:
                logger.error("request %s failed: %s", request_id, describe_error(error))  # noqa: TRY400 - may quote
                logger.debug("request %s failed", request_id, exc_info=error)
                problem = ProblemError(500, FAULT)
            answer = problem_response(problem, request_id)
            del problem  # its traceback refers to this frame and the body: a cycle that only the collector would free
            await answer(scope, receive, send_marked)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(inner.get("route"), "path", "(no route)")  # the path itself may contain user names
            logger.info("%s %s -> %d in %.4f s (request %s)", scope["method"], route, status, seconds, request_id)

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Check a request, read its body if its path has a limit of bytes, and pass the request on."""
        path = own_path(scope)
        limit = most_bytes(path, self._max_body)
        is_batch = (limit or 0) > SMALL and not path.startswith("/v1/mcp")
        large = (limit or 0) > SMALL and _body_may_exceed(headers, LARGE if is_batch else SMALL)
        async with AsyncExitStack() as held:
            try:
                self._check(scope, headers, limit)
                if path.startswith(ENCODED):
                    key = scope["state"]["key"] = await self._guard.authenticate(find_secret(headers), Request(scope))
                    TURN.set(partial(self._turns.take, key.id))
                if large:
                    async with asyncio.timeout(BODY_SECONDS):
                        await held.enter_async_context(self._large)
            except (ProblemError, TimeoutError) as error:
                if _body_may_exceed(headers, DROPPED):
                    await self._drop_body(receive)
                raise error if isinstance(error, ProblemError) else ProblemError(429, BUSY, headers=SOON) from None
            if limit is None or not _body_may_exceed(headers, 0):
                await self._app(scope, receive, send)
                return

            async def send_and_release(message: Message) -> None:
                await held.aclose()  # released before the response is sent: it may be a long stream
                await send(message)

            body = await _read_body(receive, limit)
            if large:
                await held.enter_async_context(self._handled)
            most = MOST_VALUES if is_batch else MOST_VALUES_OF_SMALL
            text = body.decode("latin-1")
            if await asyncio.to_thread(has_more_values, text, most) if large else has_more_values(text, most):
                raise ProblemError(413, f"the body must have at most {most} JSON values; send it in parts")
            await self._app(scope, _replay(body, receive), send_and_release)

    async def _drop_body(self, receive: Receive) -> None:
        """Read and drop the body of a rejected request, one request at a time, for at most `DROP_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DROP_SECONDS), self._dropped:
                while (await receive()).get("more_body"):
                    pass

    def _check(self, scope: Scope, headers: Headers, limit: int | None) -> None:
        """Raise `ProblemError` if the host, origin, size of the headers or content length is not allowed."""
        head = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if head + sum(len(name) + len(value) for name, value in headers.raw) > LONGEST_HEAD:
            raise ProblemError(431, f"path, query and headers must have at most {LONGEST_HEAD} bytes; shorten them")
        host, origin = headers.get("host", ""), headers.get("origin")
        name = _split_url(f"//{host}").hostname or ""
        if "*" not in self._hosts and name not in self._hosts and not is_loopback(name):
            raise ProblemError(
                421, f"host {name[:100]!r} is not allowed; start the server with --allow-host NAME to allow it"
            )
        if origin is not None and _split_url(origin).netloc != host and origin not in self._origins:
            raise ProblemError(
                403, f"origin {origin[:100]!r} is not allowed; start the server with --allow-origin URL to allow it"
            )
        length = headers.get("content-length", "0")
        if limit is not None and (not length.isdecimal() or int(length) > limit):
            raise ProblemError(413, f"the body must have at most {limit} bytes; send it in parts")


def _keep_encoded(scope: Scope) -> Scope:
    """Return *scope* with the path as the client sent it, so that ``%2F`` in a parameter is not read as a slash."""
    raw: bytes = scope.get("raw_path") or b""
    if own_path(scope).startswith(ENCODED) and raw:
        return {**scope, "path": raw.partition(b"?")[0].decode("ascii", "replace")}
    return scope


def _split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as an incomplete IPv6 address
        return urlsplit("")


def _body_may_exceed(headers: Headers, size: int) -> bool:
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or not length.isdecimal() or int(length) > size


async def _read_body(receive: Receive, limit: int) -> bytes:
    """Read and return the whole request body.

    Errors: `ProblemError`, `ClientDisconnect`.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while (message := await receive())["type"] == "http.request":
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise ProblemError(413, f"the body must have at most {limit} bytes; send it in parts")
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise ProblemError(408, f"the body did not arrive within {BODY_SECONDS:g} s; send a smaller one") from None
    raise ClientDisconnect


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
