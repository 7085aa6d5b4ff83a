"""Connect to FalkorDB, embedded or on a server, and query the graphs of namespaces, sync and async."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import redis

from kg_memory.errors import DatabaseClosed, DatabaseUnavailable, DatabaseVersionError, KGMemoryError
from kg_memory.falkor import wire
from kg_memory.falkor.servers import LOST_CONNECTION, RedisServer, Servers, find_servers, redis_urls, to_dict
from kg_memory.plugins import Host
from kg_memory.runtime.driver import CLOSED
from kg_memory.runtime.effects import Call, both, in_thread, work_on
from kg_memory.runtime.flow import Flow, run
from kg_memory.runtime.lifecycle import renew_in_children

log = logging.getLogger("kg_memory")
KEY_PREFIX = "kg:"
LONGEST_KEY = 512
MISSING_GRAPH = "empty key"
WRITES = frozenset(("GRAPH.QUERY", "GRAPH.DELETE", "SET", "DEL", "HSET", "HSETNX", "HDEL", "EVAL"))
REDIRECTIONS = 8
"""The most times that a query follows a graph which a cluster moves from one server to another."""
OLDEST_MODULE = 4_22_01
"""The oldest version of the FalkorDB module that does not lose data: 4.22.1."""
TRIED = (4,)
"""The major versions of FalkorDB with which kg-memory was tested."""
QUERY_PLANS = 64
"""The size of the server's cache of query plans, per graph. An agent that adds and searches in turns runs some 40
different queries; the default size of 25 would plan each of them again every time."""
ANSWERED_IN = 5.0
"""Timeout in seconds for a read from a replica, which may be frozen; after it, the primary is asked."""
ADVICE = "check that the server runs and the URL is right, then try again"


def graph_key(namespace: str, prefix: str = KEY_PREFIX) -> str:
    """Return the Redis key of the graph of *namespace*: ``kg:team`` for "team"; a very long name is hashed."""
    encoded = quote(namespace, safe="@.-_~", errors="surrogatepass")
    if len(encoded) > LONGEST_KEY:
        encoded = "#" + hashlib.sha256(encoded.encode()).hexdigest()
    return prefix + encoded


class Database:
    """A connection to a FalkorDB server or a Redis Cluster, opened at the first query and again after a loss.

    *timeout*: seconds; None means no limit. A write waits until *wait_replicas* replicas have it. Reads may use
    *replica*, a copy of *host*. A query unpacks a sleeping graph, unless `wakes` is False.
    """

    def __init__(
        self,
        host: Host,
        *,
        allow_old: bool = False,
        advice: Callable[[], str] = lambda: ADVICE,
        timeout: float | None = None,
        wait_replicas: int = 0,
        min_replicas: int | None = None,
        replica: Host | None = None,
    ) -> None:
        self._host = host
        self.replica = None if replica is None else Database(replica, allow_old=allow_old, timeout=ANSWERED_IN)
        self._timeout = timeout
        self.wait_replicas = wait_replicas
        self.min_replicas = wait_replicas if min_replicas is None else min_replicas
        self._advice = advice
        self._allow_old = allow_old
        self._opening = threading.Lock()
        """Held while the host starts, which may take minutes: never acquired on an event loop."""
        self._servers: Servers | None = None
        self._former: Servers | None = None
        """The servers of a cluster before one of them was lost; the others are still connected."""
        self._inherited: list[Servers | None] = []
        self.closed = False
        self.wakes = True
        self._absences: Counter[str] = Counter()
        self.generation = 0
        """Incremented whenever the servers are connected anew."""
        renew_in_children(self)

    def renew(self) -> None:
        """Drop the connections in a forked child process. They are not closed, as the parent still uses the sockets."""
        self._opening = threading.Lock()
        self._inherited += [self._servers, self._former]
        self._servers = self._former = None

    def change_counters(self, key: str) -> tuple[int, int]:
        """Return how often connections were opened, and how often the graph *key* was missing: ``(1, 0)``."""
        return self.generation, self._absences[key]

    def query_flow(self, key: str, cypher: str, params: wire.Params, *, write: bool) -> Flow[list[wire.Row]]:
        """Run *cypher* on the graph with the Redis key *key*; return the rows: none if a graph to read is missing.

        Errors: `DatabaseUnavailable`, `QueryError`, `EmbeddingMismatch` for a vector of another dimension.
        """
        values = sum(len(value) for value in params.values() if isinstance(value, list))
        words = yield from work_on(values, partial(wire.query_command, key, cypher, params, write=write))
        rows: list[wire.Row] | None = yield from self._route(
            key,
            lambda server, asking, replicas: server.call(
                words,
                asking=asking,
                replicas=replicas,
                read=wire.decode_rows,
                around=partial(self._map_errors, server, key),
            ),
            write=write,
        )
        return rows or []

    query, aquery = both(query_flow)

    def read_all_flow(self, key: str, queries: wire.QueryBatch) -> Flow[list[list[wire.Row]]]:
        """Run the read-only *queries* on the graph *key* in one batch; return a list of result rows for each query."""
        server = (yield from self.connect()).of(key)
        try:
            yield from self._check(server)
            rows: list[list[wire.Row]] = yield server.read_all(
                key,
                queries,
                read=lambda answers: [self._to_rows(server, key, answer) for answer in answers],
                around=partial(self._map_errors, server, key),
            )
        except DatabaseUnavailable as error:
            if not self._was_unsent(error):
                raise
            rows = []
            for cypher, params in queries:
                rows.append((yield from self.query_flow(key, cypher, params, write=False)))
        return rows

    read_all, aread_all = both(read_all_flow)

    def _to_rows(self, server: RedisServer, key: str, answer: Any) -> list[wire.Row]:
        with self._map_errors(server, key):
            if isinstance(answer, Exception):
                raise answer
            return wire.decode_rows(answer)
        return []

    def command_flow(self, *words: str | int, at: str = "") -> Flow[Any]:
        """Send a Redis command, such as ``"GRAPH.LIST"``, to the server that holds the key *at*; return the reply."""
        reply = yield from self._route(
            at,
            lambda server, asking, replicas: server.call(
                words, asking=asking, replicas=replicas, around=partial(self._map_errors, server)
            ),
            write=words[0] in WRITES,
        )
        return reply

    command, acommand = both(command_flow)

    def _route(self, key: str, call: Callable[[RedisServer, bool, int], Call], *, write: bool) -> Flow[Any]:
        """Send a command to the server that holds the graph *key*, and return the reply; follow redirections."""
        server, asking = (yield from self.connect()).of(key), False
        for _ in range(REDIRECTIONS):
            try:
                yield from self._check(server)
                replicas = (yield from self._count_replicas(server)) if write else 0
                return (yield call(server, asking, replicas))
            except DatabaseUnavailable as error:
                problem = error
            server, asking = yield from self._redirect(key, server, problem)
        raise DatabaseUnavailable(f"the graph {key!r} keeps moving between servers, or falling asleep; try again later")

    def _count_replicas(self, server: RedisServer) -> Flow[int]:
        """Return the number of replicas of *server* that a write must wait for."""
        if self.min_replicas >= self.wait_replicas:
            return self.wait_replicas
        replicas = yield from server.count_replicas(around=partial(self._map_errors, server))
        return max(self.min_replicas, min(self.wait_replicas, replicas))

    def _redirect(self, key: str, server: RedisServer, problem: DatabaseUnavailable) -> Flow[tuple[RedisServer, bool]]:
        """Return (the server that holds the graph *key* now, whether to send ASKING first), after *server* failed."""
        if not self._was_unsent(problem):
            raise problem
        cause = problem.__cause__
        servers = yield from self.connect()
        if isinstance(problem, wire.NamespaceAsleep):
            yield server.call(("EVAL", wire.WAKE, 1, key), around=partial(self._map_errors, server))
            return server, False
        if isinstance(cause, redis.exceptions.AskError):
            other = servers.at(cause.host, cause.port)
            if not isinstance(cause, redis.exceptions.MovedError):
                return other, True
            yield other.call(("CLUSTER", "SLOTS"), read=servers.learn, around=partial(self._map_errors, other))
            return other, False
        other = servers.of(key)
        if other.url == server.url:
            raise problem
        return other, False

    def _was_unsent(self, error: DatabaseUnavailable) -> bool:
        """Return whether *error* proves that no server ran the command: the graph slept, or a cluster refused it."""
        if isinstance(error, wire.NamespaceAsleep):
            return self.wakes
        servers = self._servers or self._former
        cause = error.__cause__
        return (servers is not None and servers.is_cluster) and (
            isinstance(cause, redis.exceptions.AskError)
            or (cause is not None and isinstance(cause.__context__, ConnectionRefusedError))
        )

    def map_errors(self, key: str = "") -> AbstractContextManager[None]:
        """Return a context manager that converts errors of redis and the network to `KGMemoryError`s."""
        servers = self._servers
        return self._map_errors(None if servers is None else servers.of(key))

    def explain(self, key: str, cypher: str, params: wire.Params) -> str:
        """Return the execution plan of *cypher* on the graph *key* as text (GRAPH.EXPLAIN)."""
        return "\n".join(self.command("GRAPH.EXPLAIN", key, wire.prepend_parameters(cypher, params), at=key) or ())

    def namespaces(self, state: wire.State | None = None, *, reachable: bool = False) -> list[str]:
        """Return the namespaces that have a graph, sorted; a very long name appears as its hash.

        Errors: `DatabaseUnavailable` if a server cannot be reached; with *reachable*, only if none can.
        """
        keys, problems = set[str](), list[DatabaseUnavailable]()
        for server in (servers := self._connect().all()):
            try:
                with self._map_errors(server):
                    keys.update(wire.list_graphs(server.client, KEY_PREFIX, state))
            except DatabaseUnavailable as error:
                problems.append(error)
        if problems and (not reachable or len(problems) == len(servers)):
            raise problems[0]
        return sorted(unquote(key.removeprefix(KEY_PREFIX), errors="surrogatepass") for key in keys)

    def replicas(self) -> dict[str, int]:
        """Return the number of replicas of each server by its address: ``{"host:6379": 1}``. Errors: as `query`."""
        counts = {}
        for server in self._connect().all():
            with self._map_errors(server):
                counts[server.address] = int(server.client.info("replication")["connected_slaves"])
        return counts

    def versions(self) -> dict[str, int]:
        """Return the version of FalkorDB on each server by its address: ``{"host:6379": 42201}`` for 4.22.1.

        Errors: `DatabaseVersionError` for a server without FalkorDB or with one that is too old; `DatabaseUnavailable`.
        """
        return {server.address: self._check_version(server) for server in self._connect().all()}

    def delete(self, key: str) -> None:
        """Delete the graph with the Redis key *key*, and everything in it."""
        self._absences[key] += 1
        self.query(key, "RETURN 1", {}, write=False)  # wakes it: GRAPH.DELETE does nothing to a sleeping graph
        self.command("GRAPH.DELETE", key, at=key)

    def client(self, key: str = "") -> Any:
        """Return the sync redis-py client of the server that holds *key*; connect to the server first if necessary."""
        return run(self._route(key, lambda server, *_: in_thread(lambda: server.client), write=False), Call.run)

    def name_beside(self, name: str, key: str) -> str:
        """Return *name* as a Redis key on the server of the graph *key*: in a cluster, with a hash tag, ``lock{3}``."""
        return self._connect().name_beside(name, key)

    def connect(self) -> Flow[Servers]:
        """Return the servers; connect to them first if necessary. On an event loop, this is done in a thread."""
        servers = self._servers
        if servers is None:
            servers = yield in_thread(self._connect)
        return servers

    def _check(self, server: RedisServer) -> Flow[None]:
        if not server.checked:
            yield in_thread(partial(self._check_version, server))

    def _connect(self) -> Servers:
        servers = self._servers
        if servers is not None:
            return servers
        if self.closed:
            raise DatabaseClosed(CLOSED)
        with self._opening:
            if self.closed:
                raise DatabaseClosed(CLOSED)
            return self._servers or self._open()

    def _open(self) -> Servers:
        """Connect to the servers at the URL of `_host`, and return them; connections still open are reused."""
        former = self._former
        with self._map_errors():
            urls = redis_urls(self._host.url(), self._timeout)
            if former is not None:
                urls = [*former.urls(), *urls]
            servers = find_servers(urls, former.connected() if former is not None else {})
        self._servers, self._former = servers, None
        self.generation += 1
        return servers

    def _check_version(self, server: RedisServer) -> int:
        """Return the server's FalkorDB version; raise `DatabaseVersionError` if it is missing or too old."""
        with self._map_errors(server):
            modules = list(map(to_dict, server.client.execute_command("MODULE", "LIST")))
        version = next((int(module["ver"]) for module in modules if module["name"] == "graph"), None)
        if version is None:
            raise DatabaseVersionError(
                f"the server {server.address} has no FalkorDB module; start one that has, such as "
                "`docker run -p 6379:6379 falkordb/falkordb:v4.22.1`"
            )
        if version < OLDEST_MODULE and not self._allow_old:
            raise DatabaseVersionError(
                f"FalkorDB on the server {server.address} is version {version}, older than {OLDEST_MODULE} (4.22.1), "
                "and may lose data at a restart; upgrade it, or set allow_old_falkordb to use it anyway"
            )
        if version // 1_00_00 not in TRIED and not server.checked:
            advice = "was never tried with kg-memory: run `kg-memory doctor --server URL` before you trust it with data"
            log.warning("FalkorDB %s on %s %s", version, server.address, advice)
        server.checked = True
        return version

    @contextmanager
    def _map_errors(self, server: RedisServer | None = None, key: str = "") -> Iterator[None]:
        """Context manager: raise redis and network errors as `KGMemoryError`s, but ignore a missing graph *key*."""
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
            if isinstance(error, (*LOST_CONNECTION, *wire.FORMER_PRIMARY)) and server is not None:
                self._lose(server)
            if isinstance(error, (*LOST_CONNECTION, redis.ResponseError)):
                raise wire.translate_error(error, self._advice) from error
            raise

    def _lose(self, server: RedisServer) -> None:
        """Drop the connections to *server* after a connection error; the next query looks for the servers again."""
        servers = self._servers
        if servers is not None and servers.drop(server):
            self._former = servers if servers.is_cluster else None
            self._servers = None

    def close(self) -> None:
        """Close all connections and the host; the database cannot be used again. On an event loop, call `aclose`."""
        self.closed = True
        if self.replica is not None:
            self.replica.close()
        with self._opening:
            servers = self._connected()
            self._servers = self._former = None
            try:
                for server in servers:
                    server.close()
            finally:
                self._host.close()

    async def aclose(self) -> None:
        """Close all connections, including those of the running event loop, and release the `Host` of the server."""
        self.closed = True
        if self.replica is not None:
            await self.replica.aclose()
        for server in self._connected():
            if (loop_client := server.loops.pop()) is not None:
                await loop_client.aclose()
        await asyncio.to_thread(self.close)

    def _connected(self) -> list[RedisServer]:
        servers = self._servers or self._former
        return [] if servers is None else list(servers.connected().values())
