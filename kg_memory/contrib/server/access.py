"""Access: the key of a request, its scopes and namespaces, and how often it may ask."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
"""The key of requests from this machine while no key was ever made."""
LONGEST_NAMESPACE = 1000
"""The most characters of a namespace over HTTP."""
NO_KEY = "give a key as `Authorization: Bearer kgm_...`; `kg-memory keys create` makes one"

BEARER = HTTPBearer(auto_error=False, description="A key made by `kg-memory keys create`")
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, for clients without a bearer")


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a request: its `key`, and the `namespace` that it is about."""

    key: ApiKey
    namespace: str


class Guard:
    """Checks the keys of requests against *keys*, and counts them against *limit*."""

    def __init__(self, keys: KeyRing, limit: RateLimit) -> None:
        self.keys, self._limit = keys, limit

    async def identify(self, secret: str | None, request: Request) -> ApiKey | None:
        """Return the key of a request; `OPEN` where none is needed."""
        if secret:
            return await self.keys.afind(secret)
        return OPEN if is_local(request) and not await self.keys.aexist() else None

    async def authenticate(self, secret: str | None, request: Request) -> ApiKey:
        """Return the key of a request, and count it; one without a valid key counts for its address.

        Where the gate has found the key, it is that. Raises `ProblemError` 401 or 429.
        """
        known: ApiKey | None = request.scope.get("state", {}).get("key")
        if known is not None:
            return known
        key = await self.identify(secret, request)
        address = request.client.host if request.client else ""
        if wait := self._limit.take(key.id if key else f"address {address}"):
            seconds = max(1, round(wait))
            raise ProblemError(
                429, f"too many requests; try again in {seconds} s", headers={"Retry-After": str(seconds)}
            )
        if key is None:
            raise ProblemError(401, NO_KEY, headers={"WWW-Authenticate": "Bearer"})
        return key

    async def is_valid(self, key: ApiKey) -> bool:
        """Return whether *key*, which was taken before, would be taken now."""
        return not await self.keys.aexist() if key == OPEN else await self.keys.ais_valid(key.id)


def find_secret(headers: Mapping[str, str]) -> str | None:
    """Return the secret of the key that a request has in its *headers*."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")) or None


async def find_key(
    request: Request,
    _bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    _header: Annotated[str | None, Depends(HEADER)],
) -> ApiKey:
    """Return the key of a request; a dependency, which documents the two ways to send it."""
    guard: Guard = request.app.state.service.guard
    return await guard.authenticate(find_secret(request.headers), request)


KnownKey = Annotated[ApiKey, Depends(find_key)]
Namespace = Annotated[
    str, AfterValidator(unquote), Path(min_length=1, description="Whose memory it is; a slash in it is `%2F`.")
]


def require(scope: Scope) -> Callable[..., Awaitable[Access]]:
    """Return a dependency that lets a request with *scope* pass, in the namespace of its path."""

    async def check(key: KnownKey, namespace: Namespace) -> Access:
        return authorize(key, scope, namespace)

    return check


Reading = Annotated[Access, Depends(require("read"))]
Writing = Annotated[Access, Depends(require("write"))]
Forgetting = Annotated[Access, Depends(require("forget"))]
Ruling = Annotated[Access, Depends(require("admin"))]


def authorize(key: ApiKey, scope: Scope, namespace: str) -> Access:
    """Return the access of *key* to *namespace*.

    Raises `ProblemError` 403, whether the namespace holds anything or not.
    """
    if not key.has(scope):
        raise ProblemError(403, f"this key does not have the scope {scope}")
    if len(namespace) > LONGEST_NAMESPACE:
        raise ProblemError(422, f"namespace must have at most {LONGEST_NAMESPACE} characters, got {len(namespace)}")
    if namespace != replace_unstorable(namespace):
        raise ProblemError(422, "namespace must have no NUL and no lone surrogate; leave them out")
    if not key.reaches(validate_namespace(namespace)):
        raise ProblemError(403, "this key does not reach this namespace")
    return Access(key, namespace)


def is_local(request: Request) -> bool:
    """Return whether a request comes from this machine, by the address of its socket, to a name of this machine.

    One with a header of proxies does not, unless a proxy is trusted: then what that proxy added decides.
    """
    clients = [request.client.host if request.client else "", request.url.hostname or ""]
    if request.app.state.service.options.trust_proxy:
        clients.append(request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip())
    elif any(name in request.headers for name in FORWARDED):
        return False
    return all(map(is_loopback, clients))


def is_loopback(host: str) -> bool:
    """Return whether *host* is a name or an address of this machine."""
    try:
        return host in LOOPBACK or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
