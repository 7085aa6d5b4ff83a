"""The URL of the database: what it may be, and the connections that redis-py makes of it."""

from __future__ import annotations

import socket
import sys
from inspect import signature
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from kg_memory.errors import SettingsError
from kg_memory.settings import hide_password

SCHEMES = ("falkor://", "falkors://", "unix://")
OPENING = 10.0
"""Seconds in which a server must answer the first command: later ones may take as long as they do."""

# No retries: redis-py would repeat a write that timed out although it was applied.
_OPTIONS: dict[str, Any] = {
    "decode_responses": True,
    "socket_connect_timeout": OPENING,
    "retry": Retry(NoBackoff(), 0),
}
if "driver_info" in signature(AbstractConnection).parameters:
    # Else redis-py reads its own version from disk at each connection, on the event loop.
    _OPTIONS["driver_info"] = None
_TCP: dict[str, Any] = {}
if sys.platform == "linux":
    # Else a host that vanished would be noticed after a quarter of an hour: the network says nothing about it.
    _TCP["socket_keepalive"] = True
    _TCP["socket_keepalive_options"] = {
        socket.TCP_KEEPIDLE: 5,
        socket.TCP_KEEPINTVL: 2,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: 11_000,
    }


def redis_urls(url: str, timeout: float | None = None) -> list[str]:
    """Return the URLs as redis-py writes them: one for each host, as in ``falkor://a:6379,b:6379``.

    *timeout* is how many seconds an answer may take.

    Errors: `SettingsError` for a URL that is none.
    """
    shown = hide_password(url) if isinstance(url, str) else url
    if not (isinstance(url, str) and url.startswith(SCHEMES)):
        raise SettingsError(
            f"the URL must begin with one of {', '.join(SCHEMES)}, got {shown!r}; use falkor://host:6379, falkors:// "
            "for TLS, or unix:///path, or leave it out for the embedded database in data_dir"
        )
    urls = _split(url)
    try:
        valid = bool(urls) and all(map(_has_address, urls))
    except ValueError:  # the port is not a number, or there is no host
        valid = False
    if not valid:
        raise SettingsError(
            f"the URL has no host, or a port that is no number, got {shown!r}; write special characters of a password "
            "as %2F for /, %23 for # and so on"
        )
    limit = "" if timeout is None else f"{'&' if '?' in url else '?'}socket_timeout={timeout}"
    plain = [one.replace("falkors://", "rediss://", 1).replace("falkor://", "redis://", 1) + limit for one in urls]
    try:
        for one in plain:
            redis.ConnectionPool.from_url(one, **options_for(one)).make_connection()  # which does not connect
    except (TypeError, ValueError, redis.RedisError) as error:
        raise SettingsError(f"an option of the URL {shown!r} cannot be used: {error}") from None
    return plain


def _has_address(url: str) -> bool:
    """Return whether *url* has a host and a valid port; an "@" behind them is of a password. Errors: `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return True
    return bool(parts.hostname) and parts.port != 0 and "@" not in parts.path + parts.query + parts.fragment


def _split(url: str) -> list[str]:
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


def at_address(url: str, host: str | None, port: int) -> str:
    """Return *url* with another address; without a *host*, at the same one, as a server alone in a cluster says."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    name = host or parts.hostname or ""
    name = f"[{name}]" if ":" in name else name
    return parts._replace(netloc=f"{user}{at}{name}:{port}").geturl()


def options_for(url: str) -> dict[str, Any]:
    """Return the options of connections to *url*, which may set others itself."""
    if url.startswith("unix://"):
        return _OPTIONS
    return _OPTIONS | _TCP | ({"ssl_check_hostname": True} if url.startswith("rediss://") else {})
