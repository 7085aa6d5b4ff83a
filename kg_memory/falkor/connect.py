"""One FalkorDB, embedded or a server: queries on namespace graphs, sync and async."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from falkordb import FalkorDB
from falkordb.asyncio import FalkorDB as AsyncFalkorDB
from redis.backoff import NoBackoff
from redis.retry import Retry

from kg_memory.errors import (
    DatabaseUnavailable,
    DatabaseVersionError,
    EmbeddingMismatch,
    QueryError,
    SettingsError,
)
from kg_memory.falkor.binaries import OLDEST_MODULE

Row = dict[str, Any]

KEY_PREFIX = "kg:"
LONGEST_KEY = 512
SCHEMES = ("falkor://", "falkors://", "unix://")
CONNECTIONS = 16
NO_GRAPH = "empty key"
OTHER_DIMENSION = "Vector dimension mismatch"


def graph_key(namespace: str) -> str:
    """Return the Redis key of *namespace*'s graph: any Unicode string has one of its own."""
    encoded = quote(namespace, safe="@.-_~", errors="surrogatepass")
    if len(encoded) > LONGEST_KEY:
        encoded = "#" + hashlib.sha256(encoded.encode()).hexdigest()
    return KEY_PREFIX + encoded


class Host(Protocol):
    """Where the server is."""

    def url(self) -> str:
        """Return the server's URL, starting an embedded server where there is none."""

    def close(self) -> None:
        """Stop using the server."""


class Database:
    """Connections to one FalkorDB server.

    The *host* is asked for its URL at the first query, and again after the server went away.
    """

    def __init__(self, host: Host, *, allow_old: bool = False) -> None:
        self._host = host
        self._allow_old = allow_old
        self._lock = threading.Lock()
        self._client: FalkorDB | None = None
        self._aclients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncFalkorDB] = WeakKeyDictionary()
        self.generation = 0
        """Grows with each new connection to a server: what was known of its graphs may be stale."""

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        """Run *cypher* on the graph *key* and return its rows; a missing graph has none to read.

        Errors: `DatabaseUnavailable`, `QueryError`, `EmbeddingMismatch` for a vector of another dimension.
        """
        with self._translated():
            graph = self.client().select_graph(key)
            result = (graph.query if write else graph.ro_query)(cypher, dict(params))
            return _rows(result)
        return []

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]:
        """`query` on the running event loop."""
        client = await self._aclient()
        with self._translated():
            graph = client.select_graph(key)
            result = await (graph.query if write else graph.ro_query)(cypher, dict(params))
            return _rows(result)
        return []

    def constrain(self, key: str, label: str, name: str) -> None:
        """Make *name* unique among the nodes with *label*; a range index on it must exist."""
        with self._translated():
            arguments = ("UNIQUE", "NODE", label, "PROPERTIES", 1, name)
            self.client().execute_command("GRAPH.CONSTRAINT", "CREATE", key, *arguments)

    def explain(self, key: str, cypher: str, params: Mapping[str, Any]) -> str:
        """Return the execution plan of *cypher* as text."""
        with self._translated():
            return str(self.client().select_graph(key).explain(cypher, dict(params)))
        return ""

    def namespaces(self) -> list[str]:
        """Return the namespaces that have a graph, sorted; one with a very long name as its hash."""
        with self._translated():
            keys = self.client().list_graphs()
            names = (key.removeprefix(KEY_PREFIX) for key in keys if key.startswith(KEY_PREFIX))
            return sorted(unquote(name, errors="surrogatepass") for name in names)
        return []

    def delete(self, key: str) -> None:
        """Delete the graph *key* and everything in it."""
        with self._translated():
            self.client().select_graph(key).delete()

    def client(self) -> FalkorDB:
        """Return the connected sync client, connecting first where there is none."""
        with self._lock:
            if self._client is None:
                with self._translated(locked=True):
                    url = _redis_url(self._host.url())
                    pool = redis.BlockingConnectionPool.from_url(url, **_POOL)
                    self._client = FalkorDB(connection_pool=pool)
                    self._url = url
                    self.generation += 1
                    self._check_version(self._client)
            return self._client

    async def _aclient(self) -> AsyncFalkorDB:
        loop = asyncio.get_running_loop()
        client = self._aclients.get(loop)
        if client is None:
            # Both constructors probe the server with blocking calls: never on the event loop.
            await asyncio.to_thread(self.client)
            with self._translated():
                client = await asyncio.to_thread(self._open_async)
                self._aclients[loop] = client
        if client is None:
            raise DatabaseUnavailable("no connection to FalkorDB: check that the server runs, then try again")
        return client

    def _open_async(self) -> AsyncFalkorDB:
        return AsyncFalkorDB(connection_pool=redis.asyncio.BlockingConnectionPool.from_url(self._url, **_POOL))

    def _check_version(self, client: FalkorDB) -> None:
        modules = client.connection.execute_command("MODULE", "LIST")
        versions = [int(each["ver"]) for each in modules if each["name"] == "graph"]
        if not versions:
            self._client = None
            raise DatabaseVersionError(
                "the server has no FalkorDB module: start one with `docker run falkordb/falkordb`"
            )
        if versions[0] < OLDEST_MODULE and not self._allow_old:
            self._client = None
            raise DatabaseVersionError(
                f"the server's FalkorDB is version {versions[0]}, below {OLDEST_MODULE} (4.22.1), and may lose data at "
                "a restart: upgrade it, or set allow_old_falkordb to use it all the same"
            )

    @contextmanager
    def _translated(self, *, locked: bool = False) -> Iterator[None]:
        """Turn redis errors into ours; a read of a missing graph is not an error."""
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self._forget(locked=locked)
            raise DatabaseUnavailable(
                f"FalkorDB cannot be reached ({error}): check that the server runs and the URL is right, then try again"
            ) from error
        except redis.ResponseError as error:
            if NO_GRAPH in str(error):
                return
            if str(error).startswith("LOADING"):
                raise DatabaseUnavailable("FalkorDB is loading its data: try again in a moment") from error
            if OTHER_DIMENSION in str(error):
                raise EmbeddingMismatch(
                    f"the graph was built with another setting of the embedding model ({error}): open it with that "
                    "one, or run `kg-memory reembed` to change it"
                ) from error
            raise QueryError(f"FalkorDB refused a query: {error}") from error

    def _forget(self, *, locked: bool) -> None:
        """Drop the connections, so that the next query looks for the server again."""
        if locked:
            self._client = None
        else:
            with self._lock:
                self._client = None
        self._aclients = WeakKeyDictionary()

    def close(self) -> None:
        """Close the sync connections; those of a running event loop are closed by `aclose`."""
        with self._lock:
            if self._client is not None:
                self._client.connection.close()
                pool = getattr(self._client.connection, "connection_pool", None)
                if pool is not None:
                    pool.disconnect()
                self._client = None
            self._host.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and the sync ones."""
        client = self._aclients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.connection.aclose()
            pool = getattr(client.connection, "connection_pool", None)
            if pool is not None:
                await pool.disconnect()
        await asyncio.to_thread(self.close)


# No retries: a write that timed out may have been applied, and redis-py would apply it again.
_POOL: dict[str, Any] = {
    "max_connections": CONNECTIONS,
    "timeout": None,
    "decode_responses": True,
    "socket_timeout": None,
    "socket_connect_timeout": 10,
    "retry": Retry(NoBackoff(), 0),
}


def _redis_url(url: str) -> str:
    try:
        known = url.startswith(SCHEMES) and urlsplit(url).port != 0
    except ValueError:  # the port is no number, or the host is none
        known = False
    if not known:
        raise SettingsError(
            f"{url!r} is not a FalkorDB URL: use falkor://host:6379, falkors:// for TLS, or unix:///path"
        )
    return url.replace("falkors://", "rediss://", 1).replace("falkor://", "redis://", 1)


def _rows(result: Any) -> list[Row]:
    names = [name for _, name in result.header]
    return [dict(zip(names, row, strict=True)) for row in result.result_set]
