"""The Redis servers behind a URL: one server, the primary that a Sentinel names, or the masters of a Redis Cluster."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from kg_memory.errors import DatabaseUnavailable, SettingsError
from kg_memory.falkor.wire import REPLICATED_IN, PipelinedReads, QueryBatch, fill_pipeline, settle_reply
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import PerLoop
from kg_memory.validation import hide_password

T = TypeVar("T")
SCHEMES = ("falkor://", "falkors://", "unix://")
OPENING = 10.0
"""Timeout in seconds for connecting to a server and for its first answer; later answers may take longer."""

# No retries: redis-py would repeat a write that timed out although the server applied it.
_OPTIONS: dict[str, Any] = {
    "decode_responses": True,
    "socket_connect_timeout": OPENING,
    "retry": Retry(NoBackoff(), 0),
    "driver_info": None,  # else redis-py reads its own version from disk at each connection, on the event loop
}
_TCP: dict[str, Any] = {}
if sys.platform == "linux":
    # Without keepalive, a host that vanished is noticed only after a quarter of an hour.
    _TCP["socket_keepalive"] = True
    _TCP["socket_keepalive_options"] = {
        socket.TCP_KEEPIDLE: 5,
        socket.TCP_KEEPINTVL: 2,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: 11_000,
    }
CONNECTIONS = 16
COUNTED_FOR = 1.0
"""Seconds for which the number of a server's replicas is cached."""
SILENT = 5.0
"""Seconds without an answer after which a cluster is asked whether another server has replaced the silent one."""
LOST_CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError)

_POOL: dict[str, Any] = {"max_connections": CONNECTIONS, "timeout": None, "socket_timeout": None}


def redis_urls(url: str, timeout: float | None = None) -> list[str]:
    """Validate *url*, and return one redis-py URL for each host: ``falkor://a:6379,b:6379`` gives two."""
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
            f"the URL has no host, or an invalid port, got {shown!r}; escape special characters in a password, "
            "%2F for /, %23 for # and so on"
        )
    limit = "" if timeout is None else f"{'&' if '?' in url else '?'}socket_timeout={timeout}"
    plain = [one.replace("falkors://", "rediss://", 1).replace("falkor://", "redis://", 1) + limit for one in urls]
    try:
        for one in plain:
            redis.ConnectionPool.from_url(one, **options_for(one)).make_connection()  # which does not connect
    except (TypeError, ValueError, redis.RedisError) as error:
        raise SettingsError(f"invalid option in the URL {shown!r} ({error}): correct or remove it") from None
    return plain


def _has_address(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return True
    # An "@" after the host comes from an unescaped "/", "?" or "#" in the password.
    return bool(parts.hostname) and parts.port != 0 and "@" not in parts.path + parts.query + parts.fragment


def _split(url: str) -> list[str]:
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


def at_address(url: str, host: str | None, port: int) -> str:
    """Return *url* with another *host* and *port*. If *host* is None, keep the host of *url*."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    name = host or parts.hostname or ""
    name = f"[{name}]" if ":" in name else name
    return parts._replace(netloc=f"{user}{at}{name}:{port}").geturl()


def options_for(url: str) -> dict[str, Any]:
    """Return the redis-py connection options for *url*, as keyword arguments; options in the URL override them."""
    if url.startswith("unix://"):
        return _OPTIONS
    return _OPTIONS | _TCP | ({"ssl_check_hostname": True} if url.startswith("rediss://") else {})


class RedisServer:
    """The connections to one Redis server: a pool for threads, and one async client for each event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.checked = False
        """Whether the FalkorDB version of the server was checked."""
        self.peers: Sequence[str] = ()
        """The URLs of the other nodes of its cluster."""
        self._replicas, self._counted_until = 0, 0.0
        """The number of the server's replicas, cached until `_counted_until` (seconds of `time.monotonic`)."""
        self.client: Any = redis.Redis(
            connection_pool=redis.BlockingConnectionPool.from_url(url, **options_for(url), **_POOL)
        )
        self.loops: PerLoop[_LoopClient] = PerLoop(partial(_LoopClient, url))
        self._reads = PipelinedReads(CONNECTIONS)

    @property
    def address(self) -> str:
        """The server's host and port, or the path of its socket, without user and password."""
        parts = urlsplit(self.url)
        return parts.netloc.rpartition("@")[2] or parts.path

    def call(self, words: Sequence[str | int], *, asking: bool = False, replicas: int = 0, **options: Any) -> Call:
        """Return the `Call` (sync or async) that sends the Redis command *words* and returns the reply."""
        commands: list[Sequence[str | int]] = [words]
        if asking:
            commands.insert(0, ["ASKING"])
        if replicas:
            commands.append(["WAIT", replicas, round(REPLICATED_IN * 1000)])
        if len(commands) > 1:
            return Call(
                lambda: settle_reply(fill_pipeline(self.client, commands).execute(raise_on_error=False), replicas),
                partial(self._execute_all, commands, replicas),
                **options,
            )
        return Call(partial(self.client.execute_command, *words), partial(self._execute, words), **options)

    def count_replicas(self, **options: Any) -> Flow[int]:
        """Return the number of the server's replicas, cached for `COUNTED_FOR` seconds; *options* go to `Call`."""
        if time.monotonic() >= self._counted_until:
            role = yield self.call(("ROLE",), **options)
            self._replicas = len(role[2]) if role[0] == "master" else 0
            self._counted_until = time.monotonic() + COUNTED_FOR
        return self._replicas

    async def _execute(self, words: Sequence[str | int]) -> Any:
        client: Any = await self.loops.get().client()
        return await self._await(client.execute_command(*words))

    async def _execute_all(self, commands: Sequence[Sequence[str | int]], replicas: int) -> Any:
        pipeline = fill_pipeline(await self.loops.get().client(), commands)
        return settle_reply(await self._await(pipeline.execute(raise_on_error=False)), replicas)

    def read_all(self, key: str, queries: QueryBatch, **options: Any) -> Call:
        """Return the `Call` that runs *queries* on the graph *key* in one batch, and returns their answers."""
        return Call(partial(self._reads.run, self.client, key, queries), partial(self._gather, key, queries), **options)

    async def _gather(self, key: str, queries: QueryBatch) -> list[Any]:
        loop_client = self.loops.get()
        return await self._await(loop_client.reads.gather(await loop_client.client(), key, queries))

    async def _await(self, reply: Awaitable[T]) -> T:
        """Return the result of *reply*; raise `redis.TimeoutError` if another server replaces this one meanwhile."""
        if not self.peers:
            return await reply
        watches: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        starting = loop.call_later(SILENT, lambda: watches.append(loop.create_task(self._expire_if_replaced(limit))))
        try:
            async with limit:
                return await reply
        except TimeoutError:
            if limit.expired():
                raise redis.TimeoutError(f"no answer for {SILENT:g} s, and another server has replaced it") from None
            raise
        finally:
            starting.cancel()
            for watch in watches:
                watch.cancel()

    async def _expire_if_replaced(self, limit: asyncio.Timeout) -> None:
        while True:
            if await asyncio.to_thread(self._is_replaced):
                limit.reschedule(0)
                return
            await asyncio.sleep(SILENT / 5)

    def _is_replaced(self) -> bool:
        try:
            replaced = self.url not in find_servers(self.peers, {}).masters()
        except (*LOST_CONNECTION, redis.RedisError, DatabaseUnavailable):
            return False
        if replaced:
            # This ends commands that block threads.
            self.client.connection_pool.disconnect()
        return replaced

    def close(self) -> None:
        self.client.close()
        self.client.connection_pool.disconnect()


class _LoopClient:
    """The async redis-py client of one event loop; opened only once, even if several tasks need it at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.reads = PipelinedReads(CONNECTIONS)
        self._lock = asyncio.Lock()
        self._generator: AsyncGenerator[redis.asyncio.Redis, None] | None = None
        self._client: redis.asyncio.Redis | None = None

    async def client(self) -> redis.asyncio.Redis:
        async with self._lock:
            if self._client is None:
                self._generator = _yield_client(self._url)
                self._client = await anext(self._generator)
            return self._client

    async def aclose(self) -> None:
        async with self._lock:
            if self._client is not None:
                await self._client.connection_pool.disconnect()
            if self._generator is not None:
                await self._generator.aclose()


async def _yield_client(url: str) -> AsyncGenerator[redis.asyncio.Redis, None]:
    # A generator, because an event loop finalises its generators when it ends.
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, **options_for(url), **_POOL)
    try:
        yield redis.asyncio.Redis(connection_pool=pool)
    finally:
        await pool.disconnect(inuse_connections=False)


class Servers:
    """A single Redis server, or the masters of a Redis Cluster, each of which holds the graphs of some hash slots."""

    def __init__(self, url: str, slots: Iterable[Any] = (), known: Mapping[str, RedisServer] | None = None) -> None:
        self.url = url
        self._known = dict(known or {})
        self._lost = set[str]()
        self.learn(slots)

    def learn(self, slots: Iterable[Any]) -> None:
        """Replace the assignment of hash slots to servers by *slots*, the reply to CLUSTER SLOTS."""
        ranges: list[tuple[int, int, list[str]]] = []
        for first, last, *nodes in sorted(slots):
            ranges.append((first, last, [at_address(self.url, host, port) for host, port, *_ in nodes]))
        self._ranges = ranges
        for server in self._known.values():
            server.peers = self._peers(server.url)

    @property
    def is_cluster(self) -> bool:
        return bool(self._ranges)

    def of(self, key: str) -> RedisServer:
        """Return the server that holds the graph with the Redis key *key*.

        Errors: `DatabaseUnavailable` if no server of the cluster has its hash slot.
        """
        ranges = self._ranges
        if not ranges:
            return self._server(self.url)
        slot = key_slot(key.encode("utf-8", "surrogatepass"))
        place = bisect_right(ranges, slot, key=itemgetter(0)) - 1
        if place < 0 or slot > ranges[place][1]:
            raise DatabaseUnavailable(
                f"no server of the cluster holds slot {slot} with the graph {key!r}; check CLUSTER NODES, then retry"
            )
        return self._server(ranges[place][2][0])

    def name_beside(self, name: str, key: str) -> str:
        """Return *name* as a Redis key on the server of the graph *key*: in a cluster, with a hash tag, ``lock{3}``."""
        if not self._ranges:
            return name
        endings = (f"{name}{{{number}}}" for number in count())
        return next(name for name in endings if self.of(name) is self.of(key))

    def at(self, host: str, port: int) -> RedisServer:
        """Return the server at *host* and *port*, to which another server of the cluster redirected a command."""
        return self._server(at_address(self.url, host, port))

    def all(self) -> list[RedisServer]:
        """Return all masters of the cluster, or the single server."""
        return [self._server(url) for url in self.masters() or [self.url]]

    def urls(self) -> list[str]:
        """Return the URLs of all servers, including replicas: connected servers first, lost servers last."""
        urls = dict.fromkeys([*self._known, *(url for _, _, nodes in self._ranges for url in nodes), self.url])
        return sorted(urls, key=self._lost.__contains__)

    def masters(self) -> list[str]:
        """Return the URLs of the cluster's masters; empty for a single server."""
        return list(dict.fromkeys(nodes[0] for _, _, nodes in self._ranges))

    def connected(self) -> Mapping[str, RedisServer]:
        """Return the servers that have been used so far: ``{url: server}``."""
        return dict(self._known)

    def drop(self, server: RedisServer) -> bool:
        """Remove *server*, whose connection was lost; return False if it was removed before."""
        if self._known.get(server.url) is not server:
            return False
        del self._known[server.url]
        self._lost.add(server.url)
        return True

    def _server(self, url: str) -> RedisServer:
        server = self._known.get(url)
        if server is None:
            server = self._known.setdefault(url, RedisServer(url))
            server.peers = self._peers(url)
        return server

    def _peers(self, url: str) -> list[str]:
        return [other for other in self.urls() if other != url] if self.is_cluster else []


def find_servers(urls: Sequence[str], known: Mapping[str, RedisServer]) -> Servers:
    """Connect to the first of *urls* that answers, and return this server, or all servers of its cluster."""
    for url in urls[:-1]:
        try:
            return _find(url, known)
        except (*LOST_CONNECTION, DatabaseUnavailable):
            continue
    return _find(urls[-1], known)


def _find(url: str, known: Mapping[str, RedisServer]) -> Servers:
    """Return the servers behind *url*: all masters of a cluster, the primary that a Sentinel names, or one server."""
    pool = redis.ConnectionPool.from_url(url, **options_for(url), socket_timeout=OPENING)
    client: Any = redis.Redis(connection_pool=pool)
    with closing(pool):
        match to_dict(client.execute_command("HELLO"))["mode"]:
            case "cluster":
                return Servers(url, client.execute_command("CLUSTER", "SLOTS"), known)
            case "sentinel":
                return Servers(at_address(url, *_primary(client)), (), known)
        return Servers(url, (), known)


def _primary(sentinel: Any) -> tuple[str, int]:
    names = [to_dict(primary)["name"] for primary in sentinel.execute_command("SENTINEL", "MASTERS")]
    if len(names) != 1:
        raise SettingsError(f"the Sentinel must watch exactly one primary, got {names}; set url to the server itself")
    host, port = sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", names[0])
    return host, int(port)


def to_dict(reply: Any) -> Mapping[str, Any]:
    """Return *reply* as a dict: the older Redis protocol gives a list of names and values, ``["ver", 42201, ...]``."""
    return reply if isinstance(reply, Mapping) else dict(zip(reply[::2], reply[1::2], strict=True))
