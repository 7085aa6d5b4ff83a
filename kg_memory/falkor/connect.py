"""One FalkorDB, embedded or a server: queries on namespace graphs, sync and async."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from inspect import signature
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import redis
import redis.asyncio
from falkordb import FalkorDB
from falkordb.asyncio import FalkorDB as AsyncFalkorDB
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from kg_memory.errors import (
    DatabaseClosed,
    DatabaseVersionError,
    KGMemoryError,
    SettingsError,
)
from kg_memory.falkor.binaries import OLDEST_MODULE
from kg_memory.falkor.index_lock import making_lock, renewed
from kg_memory.falkor.wire import (
    MOVED,
    PipelinedReads,
    QueryBatch,
    QueryRunner,
    Row,
    decode_rows,
    prepend_parameters,
    query_command,
    translate_error,
)
from kg_memory.runtime import telemetry
from kg_memory.runtime.lifecycle import PerLoop, renew_in_children

KEY_PREFIX = "kg:"
LONGEST_KEY = 512
SCHEMES = ("falkor://", "falkors://", "unix://")
CONNECTIONS = 16
NO_GRAPH = "empty key"
LOST = (redis.ConnectionError, redis.TimeoutError, OSError)
ADVICE = "check that the server runs and the URL is right, then try again"
CLOSED = "this memory was closed: open another"


def graph_key(namespace: str, prefix: str = KEY_PREFIX) -> str:
    """Return the Redis key of *namespace*'s graph: any Unicode string has one of its own among those of *prefix*."""
    encoded = quote(namespace, safe="@.-_~", errors="surrogatepass")
    if len(encoded) > LONGEST_KEY:
        encoded = "#" + hashlib.sha256(encoded.encode()).hexdigest()
    return prefix + encoded


class Host(Protocol):
    """Where the server is."""

    def url(self) -> str:
        """Return the server's URL, starting an embedded server where there is none."""

    def close(self) -> None:
        """Stop using the server."""


class Database:
    """Connections to one FalkorDB server.

    The *host* is asked for its URL at the first query, and again after the server went away. Once closed, it stays so.
    *advice* says what to do where the server cannot be reached.
    """

    def __init__(self, host: Host, *, allow_old: bool = False, advice: Callable[[], str] = lambda: ADVICE) -> None:
        self._host = host
        self._advice = advice
        self._allow_old = allow_old
        self._opening = threading.Lock()
        """Held while the host is asked, which may take minutes: never waited for on an event loop."""
        self._link: _Link | None = None
        self._inherited: list[_Link] = []
        self.closed = False
        """Whether `close` was called: it stays so."""
        self._absences: Counter[str] = Counter()
        self.generation = 0
        """Grows with each new connection to a server."""
        renew_in_children(self)

    def forked(self) -> None:
        """Let go of the parent's connections, unfinalised: that would take them out of its event loops."""
        self._opening = threading.Lock()
        if self._link is not None:
            self._inherited.append(self._link)
            self._link = None

    @property
    def stale(self) -> QueryRunner:
        """What answers reads that may be some moments old: this itself, where there is no replica."""
        return self

    def state(self, key: str) -> tuple[int, int]:
        """Return what changes when all that was known of the graph *key* may be stale."""
        return self.generation, self._absences[key]

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        """Run *cypher* on the graph *key* and return its rows; a missing graph has none to read.

        Errors: `DatabaseUnavailable`, `QueryError`, `EmbeddingMismatch` for a vector of another dimension.
        """
        link = self._linked()
        with telemetry.command(link.url, key, ((cypher, params),), write=write) as told, self._translated(link, key):
            words = query_command(key, cypher, params, write=write)
            return told(decode_rows(link.client.connection.execute_command(*words)))
        return []

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        """`query` on the running event loop."""
        link = await self._alinked()
        with telemetry.command(link.url, key, ((cypher, params),), write=write) as told, self._translated(link, key):
            words = query_command(key, cypher, params, write=write)
            return told(decode_rows(await (await link.loops.get().client()).connection.execute_command(*words)))
        return []

    def read_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        """Run reading *queries* on the graph *key* at once and return the rows of each; else as `query`."""
        link = self._linked()
        with telemetry.command(link.url, key, queries) as told:
            with self._translated(link):
                answers = link.lanes.answers(link.client.connection, key, queries)
            return told([self._answered(link, key, answer) for answer in answers])

    async def aread_all(self, key: str, queries: QueryBatch) -> list[list[Row]]:
        """`read_all` on the running event loop."""
        link = await self._alinked()
        with telemetry.command(link.url, key, queries) as told:
            with self._translated(link):
                on_this_loop = link.loops.get()
                answers = await on_this_loop.lanes.aanswers((await on_this_loop.client()).connection, key, queries)
            return told([self._answered(link, key, answer) for answer in answers])

    def _answered(self, link: _Link, key: str, answer: Any) -> list[Row]:
        with self._translated(link, key):
            if isinstance(answer, Exception):
                raise answer
            return decode_rows(answer)
        return []

    def command(self, *words: str | int) -> Any:
        """Do a command of the server itself and return its reply; errors as `query`."""
        link = self._linked()
        with self._translated(link):
            return link.client.connection.execute_command(*words)

    async def acommand(self, *words: str | int) -> Any:
        """`command` on the running event loop."""
        link = await self._alinked()
        with self._translated(link):
            return await (await link.loops.get().client()).connection.execute_command(*words)

    @contextmanager
    def making(self) -> Iterator[None]:
        """Make a graph or an index inside, alone among all clients: FalkorDB crashes where two make one at once."""
        link = self._linked()
        with self._translated(link):
            lock = making_lock(link.client.connection)
            lock.acquire()
        try:
            with renewed(lock):
                yield
        finally:
            with suppress(redis.exceptions.LockError), self._translated(link):
                lock.release()

    def explain(self, key: str, cypher: str, params: Mapping[str, Any]) -> str:
        """Return the execution plan of *cypher* as text."""
        link = self._linked()
        with self._translated(link):
            return str(link.client.select_graph(key).explain(prepend_parameters(cypher, params)))
        return ""

    def namespaces(self) -> list[str]:
        """Return the namespaces that have a graph, sorted; one with a very long name as its hash."""
        link = self._linked()
        with self._translated(link):
            keys = link.client.list_graphs()
            names = (key.removeprefix(KEY_PREFIX) for key in keys if key.startswith(KEY_PREFIX))
            return sorted(unquote(name, errors="surrogatepass") for name in names)
        return []

    def delete(self, key: str) -> None:
        """Delete the graph *key* and everything in it."""
        link = self._linked()
        with self._translated(link):
            self._absences[key] += 1
            link.client.select_graph(key).delete()

    def client(self) -> FalkorDB:
        """Return the connected sync client, connecting first where there is none."""
        return self._linked().client

    async def aclient(self) -> AsyncFalkorDB:
        """Return the connected client of the running event loop, connecting first where there is none."""
        link = await self._alinked()
        with self._translated(link):
            return await link.loops.get().client()

    def _linked(self) -> _Link:
        link = self._link
        if link is not None:
            return link
        if self.closed:
            raise DatabaseClosed(CLOSED)
        with self._opening:
            if self.closed:
                raise DatabaseClosed(CLOSED)
            return self._link or self._new_link()

    def _new_link(self) -> _Link:
        with self._translated():
            link = _Link(_redis_url(self._host.url()))
            self._check_version(link.client)
        self._link = link
        self.generation += 1
        return link

    async def _alinked(self) -> _Link:
        link = self._link
        return link if link is not None else await asyncio.to_thread(self._linked)

    def _check_version(self, client: FalkorDB) -> None:
        modules = client.connection.execute_command("MODULE", "LIST")
        modules = (m if isinstance(m, Mapping) else dict(zip(m[::2], m[1::2], strict=True)) for m in modules)  # redis<8
        versions = [int(each["ver"]) for each in modules if each["name"] == "graph"]
        if not versions:
            raise DatabaseVersionError(
                "the server has no FalkorDB module: start one with `docker run falkordb/falkordb`"
            )
        if versions[0] < OLDEST_MODULE and not self._allow_old:
            raise DatabaseVersionError(
                f"the server's FalkorDB is version {versions[0]}, below {OLDEST_MODULE} (4.22.1), and may lose data at "
                "a restart: upgrade it, or set allow_old_falkordb to use it all the same"
            )

    @contextmanager
    def _translated(self, link: _Link | None = None, key: str = "") -> Iterator[None]:
        """Turn all errors over *link* into ours; a read of the missing graph *key* is not an error."""
        try:
            yield
        except KGMemoryError:
            raise
        except Exception as error:
            if self.closed:  # under a query, which fails in many ways then
                raise DatabaseClosed(CLOSED) from error
            if isinstance(error, redis.ResponseError) and NO_GRAPH in str(error):
                self._absences[key] += 1
                return
            if isinstance(error, (*LOST, *MOVED)) and self._link is link:
                self._link = None  # so that the next query looks for the server again
            if isinstance(error, (*LOST, redis.ResponseError)):
                raise translate_error(error, self._advice) from error
            raise

    def close(self) -> None:
        """Close the connections, for good; those of a running event loop are closed by `aclose`."""
        self.closed = True
        with self._opening:
            link, self._link = self._link, None
            try:
                if link is not None:
                    link.close()
            finally:
                self._host.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and the sync ones, for good."""
        self.closed = True
        link = self._link
        on_this_loop = link.loops.pop() if link is not None else None
        if on_this_loop is not None:
            await on_this_loop.aclose()
        await asyncio.to_thread(self.close)


class _Link:
    """The connections to one running server: a pool for the threads, and one for each event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = FalkorDB(connection_pool=redis.BlockingConnectionPool.from_url(url, **_POOL))
        self.lanes = PipelinedReads(CONNECTIONS)
        self.loops: PerLoop[_LoopClient] = PerLoop(partial(_LoopClient, url))

    def close(self) -> None:
        self.client.connection.close()
        pool = getattr(self.client.connection, "connection_pool", None)
        if pool is not None:
            pool.disconnect()


class _LoopClient:
    """The async client of one event loop, one however many ask for it at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.lanes = PipelinedReads(CONNECTIONS)
        self._lock = asyncio.Lock()
        self._opened: AsyncGenerator[AsyncFalkorDB, None] | None = None
        self._client: AsyncFalkorDB | None = None

    async def client(self) -> AsyncFalkorDB:
        async with self._lock:
            if self._client is None:
                self._opened = _opened(self._url)
                self._client = await anext(self._opened)
            return self._client

    async def aclose(self) -> None:
        async with self._lock:
            pool = getattr(self._client and self._client.connection, "connection_pool", None)
            if pool is not None:
                await pool.disconnect()
            if self._opened is not None:
                await self._opened.aclose()


async def _opened(url: str) -> AsyncGenerator[AsyncFalkorDB, None]:
    """Yield a client of the running event loop.

    A generator, since a loop ends its generators when it ends, and one that nobody refers to any more too: so the
    sockets are closed on their loop, and no loop outlives its end for their sake.
    """

    def made() -> AsyncFalkorDB:
        return AsyncFalkorDB(connection_pool=redis.asyncio.BlockingConnectionPool.from_url(url, **_POOL))

    client = await asyncio.to_thread(made)  # the constructor probes the server with blocking calls
    try:
        yield client
    finally:
        pool = getattr(client.connection, "connection_pool", None)
        if pool is not None:
            await pool.disconnect(inuse_connections=False)


# No retries: a write that timed out may have been applied, and redis-py would apply it again.
_POOL: dict[str, Any] = {
    "max_connections": CONNECTIONS,
    "timeout": None,
    "decode_responses": True,
    "socket_timeout": None,
    "socket_connect_timeout": 10,
    "retry": Retry(NoBackoff(), 0),
}
if "driver_info" in signature(AbstractConnection).parameters:
    # Or redis-py looks its own version up in its files at each connection, on the event loop.
    _POOL["driver_info"] = None


def _redis_url(url: str) -> str:
    try:
        known = isinstance(url, str) and url.startswith(SCHEMES) and urlsplit(url).port != 0
    except ValueError:  # the port is no number, or the host is none
        known = False
    if not known:
        raise SettingsError(
            f"{url!r} is not a FalkorDB URL: use falkor://host:6379, falkors:// for TLS, or unix:///path; "
            "the embedded database is opened without one, and keeps its files in the setting data_dir"
        )
    return url.replace("falkors://", "rediss://", 1).replace("falkor://", "redis://", 1)
