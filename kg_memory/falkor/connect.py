"""Connect to a FalkorDB, embedded or a server, and run queries on the graphs of namespaces, sync and async."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from kg_memory.falkor.wire import (
    FORMER_PRIMARY,
    Params,
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
from kg_memory.runtime.driver import CLOSED
from kg_memory.runtime.effects import Call, both, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import PerLoop, renew_in_children

KEY_PREFIX = "kg:"
LONGEST_KEY = 512
SCHEMES = ("falkor://", "falkors://", "unix://")
CONNECTIONS = 16
MISSING_GRAPH = "empty key"
LOST_CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError)
ADVICE = "check that the server runs and the URL is right, then try again"


def graph_key(namespace: str, prefix: str = KEY_PREFIX) -> str:
    """Return the Redis key of *namespace*'s graph: *prefix* and a text that is unique to each Unicode string."""
    encoded = quote(namespace, safe="@.-_~", errors="surrogatepass")
    if len(encoded) > LONGEST_KEY:
        encoded = "#" + hashlib.sha256(encoded.encode()).hexdigest()
    return prefix + encoded


class Host(Protocol):
    """The place of a server."""

    def url(self) -> str:
        """Return the server's URL, after starting an embedded server if none runs."""

    def close(self) -> None:
        """Stop using the server."""


class Database:
    """Connections to one FalkorDB server.

    It asks *host* for the URL at the first query, and again after the server went away. Once closed, it stays closed.
    *advice* returns what to do when the server cannot be reached.
    """

    def __init__(self, host: Host, *, allow_old: bool = False, advice: Callable[[], str] = lambda: ADVICE) -> None:
        self._host = host
        self._advice = advice
        self._allow_old = allow_old
        self._opening = threading.Lock()
        """Held while the host starts, which may take minutes: never acquired on an event loop."""
        self._link: _Link | None = None
        self._inherited: list[_Link] = []
        self.closed = False
        self._absences: Counter[str] = Counter()
        self.generation = 0
        """Incremented with each new connection to a server."""
        renew_in_children(self)

    def renew(self) -> None:
        """Drop the parent's connections without finalising them, which would remove them from its event loops."""
        self._opening = threading.Lock()
        if self._link is not None:
            self._inherited.append(self._link)
            self._link = None

    @property
    def stale(self) -> QueryRunner:
        """The runner of reads that may be some moments old: the database itself where it has no replica."""
        return self

    def state(self, key: str) -> tuple[int, int]:
        """Return a value that changes when cached knowledge of the graph *key* may be outdated."""
        return self.generation, self._absences[key]

    def query_flow(self, key: str, cypher: str, params: Params, *, write: bool) -> Flow[list[Row]]:
        """Run *cypher* on the graph *key* and return its rows; reading a missing graph returns none.

        Errors: `DatabaseUnavailable`, `QueryError`, `EmbeddingMismatch` for a vector of another dimension.
        """
        link = yield from self.connect()
        span = partial(self._span, link, key, ((cypher, params),), write=write)
        words = query_command(key, cypher, params, write=write)
        rows: list[Row] | None = yield link.call(words, read=decode_rows, span=span)
        return rows or []

    query, aquery = both(query_flow)

    def read_all_flow(self, key: str, queries: QueryBatch) -> Flow[list[list[Row]]]:
        """Run reading *queries* on the graph *key* at once and return the rows of each; else as `query`."""
        link = yield from self.connect()
        rows: list[list[Row]] = yield Call(
            partial(link.reads.run, link.client.connection, key, queries),
            partial(link.gather, key, queries),
            read=lambda answers: [self._to_rows(link, key, answer) for answer in answers],
            span=partial(self._span, link, key, queries),
        )
        return rows

    read_all, aread_all = both(read_all_flow)

    def _to_rows(self, link: _Link, key: str, answer: Any) -> list[Row]:
        with self._map_errors(link, key):
            if isinstance(answer, Exception):
                raise answer
            return decode_rows(answer)
        return []

    def command_flow(self, *words: str | int) -> Flow[Any]:
        """Do a command of the server itself and return its reply; errors as `query`."""
        link = yield from self.connect()
        with self._map_errors(link):
            return (yield link.call(words))

    command, acommand = both(command_flow)

    def map_errors(self) -> AbstractContextManager[None]:
        """Raise errors of redis and of the network inside as ours."""
        return self._map_errors(self._link)

    def explain(self, key: str, cypher: str, params: Params) -> str:
        """Return the execution plan of *cypher* as text."""
        link = self._connect()
        with self._map_errors(link):
            return str(link.client.select_graph(key).explain(prepend_parameters(cypher, params)))
        return ""

    def namespaces(self) -> list[str]:
        """Return the namespaces that have a graph, sorted; one with a very long name as its hash."""
        link = self._connect()
        with self._map_errors(link):
            keys = link.client.list_graphs()
            names = (key.removeprefix(KEY_PREFIX) for key in keys if key.startswith(KEY_PREFIX))
            return sorted(unquote(name, errors="surrogatepass") for name in names)
        return []

    def delete(self, key: str) -> None:
        """Delete the graph *key* and everything in it."""
        link = self._connect()
        with self._map_errors(link):
            self._absences[key] += 1
            link.client.select_graph(key).delete()

    def client(self) -> FalkorDB:
        """Return the sync client, connecting first if necessary."""
        return self._connect().client

    def connect(self) -> Flow[_Link]:
        """Connect if necessary; an event loop is not kept waiting."""
        link = self._link
        if link is None:
            link = yield in_thread(self._connect)
        return link

    def _connect(self) -> _Link:
        link = self._link
        if link is not None:
            return link
        if self.closed:
            raise DatabaseClosed(CLOSED)
        with self._opening:
            if self.closed:
                raise DatabaseClosed(CLOSED)
            return self._link or self._open_link()

    def _open_link(self) -> _Link:
        with self._map_errors():
            link = _Link(_redis_url(self._host.url()))
            self._check_version(link.client)
        self._link = link
        self.generation += 1
        return link

    def _check_version(self, client: FalkorDB) -> None:
        modules = client.connection.execute_command("MODULE", "LIST")
        modules = (m if isinstance(m, Mapping) else dict(zip(m[::2], m[1::2], strict=True)) for m in modules)  # redis<8
        versions = [int(module["ver"]) for module in modules if module["name"] == "graph"]
        if not versions:
            raise DatabaseVersionError(
                "the server has no FalkorDB module; start one with `docker run falkordb/falkordb`"
            )
        if versions[0] < OLDEST_MODULE and not self._allow_old:
            raise DatabaseVersionError(
                f"the server's FalkorDB is version {versions[0]}, below {OLDEST_MODULE} (4.22.1), and may lose data at "
                "a restart; upgrade it, or set allow_old_falkordb to use it all the same"
            )

    @contextmanager
    def _span(self, link: _Link, key: str, queries: QueryBatch, *, write: bool = False) -> Iterator[telemetry.Recorder]:
        with telemetry.command(link.url, key, queries, write=write) as record, self._map_errors(link, key):
            yield record

    @contextmanager
    def _map_errors(self, link: _Link | None = None, key: str = "") -> Iterator[None]:
        """Raise errors over *link* as ours; a read of the missing graph *key* is not an error."""
        try:
            yield
        except KGMemoryError:
            raise
        except Exception as error:
            if self.closed:  # during a query, which then fails in many ways
                raise DatabaseClosed(CLOSED) from error
            if isinstance(error, redis.ResponseError) and MISSING_GRAPH in str(error):
                self._absences[key] += 1
                return
            if isinstance(error, (*LOST_CONNECTION, *FORMER_PRIMARY)) and self._link is link:
                self._link = None  # the next query looks for the server again
            if isinstance(error, (*LOST_CONNECTION, redis.ResponseError)):
                raise translate_error(error, self._advice) from error
            raise

    def close(self) -> None:
        """Close the connections for good; `aclose` closes those of a running event loop."""
        self.closed = True
        with self._opening:
            link, self._link = self._link, None
            try:
                if link is not None:
                    link.close()
            finally:
                self._host.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop and the sync ones, for good."""
        self.closed = True
        link = self._link
        loop_client = link.loops.pop() if link is not None else None
        if loop_client is not None:
            await loop_client.aclose()
        await asyncio.to_thread(self.close)


class _Link:
    """The connections to one running server: a pool for threads, and one for each event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = FalkorDB(connection_pool=redis.BlockingConnectionPool.from_url(url, **_POOL))
        self.reads = PipelinedReads(CONNECTIONS)
        self.loops: PerLoop[_LoopClient] = PerLoop(partial(_LoopClient, url))

    def call(self, words: Sequence[str | int], **options: Any) -> Call:
        """Return the call of a command; *options* are those of `Call`."""
        return Call(partial(self.client.connection.execute_command, *words), partial(self._execute, words), **options)

    async def _execute(self, words: Sequence[str | int]) -> Any:
        client = await self.loops.get().client()
        return await client.connection.execute_command(*words)

    async def gather(self, key: str, queries: QueryBatch) -> list[Any]:
        """Return the answers to *queries* on the running event loop; see `PipelinedReads`."""
        loop_client = self.loops.get()
        client = await loop_client.client()
        return await loop_client.reads.gather(client.connection, key, queries)

    def close(self) -> None:
        self.client.connection.close()
        pool = getattr(self.client.connection, "connection_pool", None)
        if pool is not None:
            pool.disconnect()


class _LoopClient:
    """The async client of one event loop, made once by however many tasks ask for it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.reads = PipelinedReads(CONNECTIONS)
        self._lock = asyncio.Lock()
        self._generator: AsyncGenerator[AsyncFalkorDB, None] | None = None
        self._client: AsyncFalkorDB | None = None

    async def client(self) -> AsyncFalkorDB:
        async with self._lock:
            if self._client is None:
                self._generator = _yield_client(self._url)
                self._client = await anext(self._generator)
            return self._client

    async def aclose(self) -> None:
        async with self._lock:
            pool = getattr(self._client and self._client.connection, "connection_pool", None)
            if pool is not None:
                await pool.disconnect()
            if self._generator is not None:
                await self._generator.aclose()


async def _yield_client(url: str) -> AsyncGenerator[AsyncFalkorDB, None]:
    """Yield a client of the running event loop.

    It is a generator because a loop finalises its generators when it ends, and those without references: so sockets
    are closed on their own loop, and keep no loop alive.
    """

    def make() -> AsyncFalkorDB:
        return AsyncFalkorDB(connection_pool=redis.asyncio.BlockingConnectionPool.from_url(url, **_POOL))

    client = await asyncio.to_thread(make)  # the constructor probes the server with blocking calls
    try:
        yield client
    finally:
        pool = getattr(client.connection, "connection_pool", None)
        if pool is not None:
            await pool.disconnect(inuse_connections=False)


# No retries: redis-py would repeat a write that timed out although it was applied.
_POOL: dict[str, Any] = {
    "max_connections": CONNECTIONS,
    "timeout": None,
    "decode_responses": True,
    "socket_timeout": None,
    "socket_connect_timeout": 10,
    "retry": Retry(NoBackoff(), 0),
}
if "driver_info" in signature(AbstractConnection).parameters:
    # Else redis-py reads its own version from disk at each connection, on the event loop.
    _POOL["driver_info"] = None


def _redis_url(url: str) -> str:
    try:
        valid = isinstance(url, str) and url.startswith(SCHEMES) and urlsplit(url).port != 0
    except ValueError:  # the port is not a number, or there is no host
        valid = False
    if not valid:
        raise SettingsError(
            f"the URL must begin with one of {', '.join(SCHEMES)}, got {url!r}; use falkor://host:6379, falkors:// for "
            "TLS, or unix:///path, or leave it out for the embedded database in data_dir"
        )
    return url.replace("falkors://", "rediss://", 1).replace("falkor://", "redis://", 1)
