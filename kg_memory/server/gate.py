"""The gate before all routes: hosts, origins, sizes, request ids, and names with a slash in paths."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg_memory.runtime.telemetry import describe_error
from kg_memory.server.access import is_loopback
from kg_memory.server.problems import own_path, problem_response
from kg_memory.server.service import Options

logger = logging.getLogger("kg_memory.server")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ENCODED = ("/v1/", "/api/graph/")
"""Beginnings of paths whose parameters are decoded after routing, so that ``team%2Fann`` is one of them."""
STREAMED = re.compile(r"/v1/namespaces/[^/]+/import(/[^/]+)?")
"""The path whose body is read as it comes, with a limit of its own."""
FAULT = "the server met a fault of its own; its log has it by the request id"


class Gate:
    """Middleware for the requests whose paths begin with one of *paths*; others pass unseen."""

    def __init__(self, app: ASGIApp, *, paths: Sequence[str], options: Options) -> None:
        self._app, self._paths, self._max_body = app, tuple(paths), options.max_body
        self._hosts, self._origins = frozenset(options.hosts), frozenset(options.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it with a problem."""
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

        async def refuse(code: int, detail: str) -> None:
            await problem_response(code, detail, request_id)(scope, receive, send_marked)

        inner = _keep_encoded(scope)
        limit = None if STREAMED.fullmatch(own_path(inner)) else self._max_body
        try:
            if problem := self._problem(headers, limit):
                await refuse(*problem)
            else:
                await self._app(inner, _limit_body(receive, limit), send_marked)
        except Exception as error:
            if status:
                raise
            logger.error("request %s failed: %s", request_id, describe_error(error))  # noqa: TRY400 - may quote
            logger.debug("request %s failed", request_id, exc_info=error)
            await refuse(500, FAULT)
        finally:
            seconds = time.perf_counter() - began
            logger.info(
                "%s %s -> %d in %.4f s (request %s)", scope["method"], _route(inner), status, seconds, request_id
            )

    def _problem(self, headers: Headers, limit: int | None) -> tuple[int, str] | None:
        """Return the status and the detail of what is wrong with a request by its *headers*, if anything is."""
        host, origin = headers.get("host", ""), headers.get("origin")
        name = _split(f"//{host}").hostname or ""
        if "*" not in self._hosts and name not in self._hosts and not is_loopback(name):
            return 421, f"this server does not answer for the host {name[:100]!r}; allow it with --allow-host"
        if origin is not None and _split(origin).netloc != host and origin not in self._origins:
            return 403, f"pages of {origin[:100]!r} may not ask this server; allow them with --allow-origin"
        length = headers.get("content-length", "0")
        if limit is not None and (not length.isdecimal() or int(length) > limit):
            return 413, f"the body must have at most {limit} bytes"
        return None


def _keep_encoded(scope: Scope) -> Scope:
    """Return *scope* with its path as it was sent, so that a slash within a parameter does not end it."""
    raw: bytes = scope.get("raw_path") or b""
    if own_path(scope).startswith(ENCODED) and raw:
        return {**scope, "path": raw.partition(b"?")[0].decode("ascii", "replace")}
    return scope


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as an unfinished IPv6 address
        return urlsplit("")


def _limit_body(receive: Receive, limit: int | None) -> Receive:
    if limit is None:
        return receive
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, f"the body must have at most {limit} bytes")  # which FastAPI lets pass
        return message

    return receive_limited


def _route(scope: Any) -> str:
    """Return the template of the path: the path itself names namespaces and entities, which logs do not have."""
    return getattr(scope.get("route"), "path", "(no route)")
