"""Authentication and authorization of HTTP requests: API keys, scopes, namespaces and the rate limit."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Request
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import AfterValidator

from kg_memory.contrib.server.keys import ApiKey, KeyRing, Scope
from kg_memory.contrib.server.limits import RateLimit
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import validate_namespace

LOOPBACK = ("localhost", "127.0.0.1", "::1")
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
OPEN = ApiKey(id="local", name="local", scopes=("admin",), created_at=datetime.fromtimestamp(0, UTC))
"""The key of requests from this machine as long as the database has never had an API key."""
LONGEST_NAMESPACE = 1000  # characters, over HTTP
NO_KEY = "API key missing or invalid: send `Authorization: Bearer kgm_...`; `kg-memory keys create` makes a key"

BEARER = HTTPBearer(auto_error=False, description="A key made by `kg-memory keys create`")
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, for clients without bearer tokens")


@dataclass(frozen=True, slots=True)
class Access:
    """The result of a successful authorization: the API `key` of the request, and the `namespace` that it may use."""

    key: ApiKey
    namespace: str


class Guard:
    """Authenticates requests by the API keys in *keys*, and limits how many requests each key may send per second."""

    def __init__(self, keys: KeyRing, limit: RateLimit) -> None:
        self.keys, self._limit = keys, limit

    async def identify(self, secret: str | None, request: Request) -> ApiKey | None:
        """Return the API key with the secret text *secret*, or None if there is no such key or no secret.

        But until a key is created, a local request without a secret gets `OPEN`, which allows everything.
        """
        if secret:
            return await self.keys.afind(secret)
        return OPEN if is_local(request) and not await self.keys.aexist() else None

    async def authenticate(self, secret: str | None, request: Request) -> ApiKey:
        """Return the API key with the secret text *secret*, and count *request* against its rate limit.

        Errors: `ProblemError` 401 without a valid key, 429 above the rate limit.
        """
        known: ApiKey | None = request.scope.get("state", {}).get("key")
        if known is not None:
            return known
        key = await self.identify(secret, request)
        address = request.client.host if request.client else ""
        if wait := self._limit.take(key.id if key else f"address {address}"):
            seconds = max(1, round(wait))
            raise ProblemError(429, f"too many requests; retry in {seconds} s", headers={"Retry-After": str(seconds)})
        if key is None:
            raise ProblemError(401, NO_KEY, headers={"WWW-Authenticate": "Bearer"})
        return key

    async def is_valid(self, key: ApiKey) -> bool:
        """Return whether *key* is still valid, so not revoked; open streams check this before they send.

        The built-in key `OPEN` is valid until the first API key is created.
        """
        return not await self.keys.aexist() if key == OPEN else await self.keys.ais_valid(key.id)


def find_secret(headers: Mapping[str, str]) -> str | None:
    """Return the API key in request *headers*: from ``Authorization: Bearer KEY`` or ``X-API-Key``, else ``None``."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")) or None


async def find_key(
    request: Request,
    _bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    _header: Annotated[str | None, Depends(HEADER)],
) -> ApiKey:
    """FastAPI dependency: return the API key of *request*, or raise `ProblemError` 401 or 429."""
    guard: Guard = request.app.state.service.guard
    return await guard.authenticate(find_secret(request.headers), request)


KnownKey = Annotated[ApiKey, Depends(find_key)]
Namespace = Annotated[
    str, AfterValidator(unquote), Path(min_length=1, description="The namespace; write a slash in it as `%2F`.")
]


def require_scope(scope: Scope) -> Callable[..., Awaitable[Access]]:
    """Return a FastAPI dependency that requires an API key with *scope* ("read" etc.) in the URL's namespace."""

    async def check(key: KnownKey, namespace: Namespace) -> Access:
        return authorize(key, scope, namespace)

    return check


Reading = Annotated[Access, Depends(require_scope("read"))]
Writing = Annotated[Access, Depends(require_scope("write"))]
Forgetting = Annotated[Access, Depends(require_scope("forget"))]
Ruling = Annotated[Access, Depends(require_scope("admin"))]


def authorize(key: ApiKey, scope: Scope, namespace: str) -> Access:
    """Return an `Access` if *key* has *scope* (such as "write") and allows *namespace*.

    Errors: `ProblemError`.
    """
    if not key.has(scope):
        raise ProblemError(403, f"this key lacks the scope {scope!r}; use a key that has it")
    if len(namespace) > LONGEST_NAMESPACE:
        raise ProblemError(422, f"namespace must have at most {LONGEST_NAMESPACE} characters, got {len(namespace)}")
    if namespace != replace_unstorable(namespace):
        raise ProblemError(422, "namespace must not contain NUL characters or lone surrogates; remove them")
    if not key.reaches(validate_namespace(namespace), scope):
        reason = f"this key does not allow {scope!r} in the namespace {short(namespace)}"
        raise ProblemError(403, f"{reason}; `GET /v1/key` shows what it allows")
    return Access(key, namespace)


def is_local(request: Request) -> bool:
    """Return whether *request* comes from this machine.

    A request with proxy headers does not, unless ``trust_proxy`` is set and ``X-Forwarded-For`` ends locally.
    """
    clients = [request.client.host if request.client else "", request.url.hostname or ""]
    if request.app.state.service.options.trust_proxy:
        clients.append(request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip())
    elif any(name in request.headers for name in FORWARDED):
        return False
    return all(map(is_loopback, clients))


def is_loopback(host: str) -> bool:
    """Return whether *host* is a name or an address of this machine: ``"localhost"``, ``"127.0.0.1"``, ``"[::1]"``."""
    try:
        return host in LOOPBACK or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
