"""Shadow graphs: temporary graphs that readers do not see until one replaces another graph atomically.

Each shadow graph belongs to a connection of the same name. So the next process that needs a shadow graph can delete the
shadow graphs of killed processes. Facts about FalkorDB 4.22.1: RENAME replaces a graph atomically and survives
restarts; WATCH notices every write to a graph; GRAPH.COPY makes the server fork, which fails while it forks for
something else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

import redis

from kg_memory.errors import DatabaseUnavailable, QueryError
from kg_memory.falkor.connect import ADVICE, Database
from kg_memory.falkor.servers import LOST_CONNECTION, OPENING
from kg_memory.falkor.wire import translate_error

T = TypeVar("T")
PREFIX = "kg-aside:"
SAME_SLOT = "{{{key}}}"
"""The part of a key that puts it on the same cluster server as the graph *key*."""
CANNOT_FORK = "could not fork"
COPY_ATTEMPTS = 600
COPY_PAUSE = 0.05
LOST_AFTER = 60.0
"""Seconds without an answer after which a second copy is begun; the wait doubles with each further copy."""
LONGEST_WAIT = 600.0
"""Once one copy got no answer for longer than this many seconds, no other copy is begun."""


class ShadowGraph:
    """A graph under a temporary *key*, invisible to readers, and the database connection that owns it."""

    def __init__(self, key: str, connection: Any) -> None:
        self.key = key
        self.copies: list[str] = []
        """The keys of all copies that were begun; `key` is the last one that the server confirmed."""
        self._connection = connection

    def copy(self, source: str) -> None:
        """Copy the graph with the key *source* into this shadow graph, as a consistent snapshot (GRAPH.COPY)."""
        name, wait, refused = self.key, LOST_AFTER, 0
        while refused < COPY_ATTEMPTS:
            self.copies.append(name)
            try:
                with _map_errors(), closing(_pool_like(self._connection.connection_pool, socket_timeout=wait)) as pool:
                    client: Any = redis.Redis(connection_pool=pool)
                    client.execute_command("GRAPH.COPY", source, name)
            except DatabaseUnavailable as error:
                if not isinstance(error.__cause__, redis.TimeoutError):
                    raise
                if wait > LONGEST_WAIT:
                    raise DatabaseUnavailable(
                        "FalkorDB did not answer GRAPH.COPY; restart the server, then try again"
                    ) from error
                name, wait = f"{self.key}.{len(self.copies)}", 2 * wait
            except QueryError as error:
                if CANNOT_FORK not in str(error):
                    raise
                self.copies.pop()
                refused += 1
                time.sleep(COPY_PAUSE)
            else:
                self.key = name
                return
        raise DatabaseUnavailable("the server is busy writing its data to disk and cannot copy a graph; try later")

    def watch(self, key: str) -> None:
        """Begin to watch the graph *key* for writes (WATCH), so that `is_unchanged` and `replace` notice them."""
        with _map_errors():
            self._connection.execute_command("WATCH", key)

    def is_unchanged(self) -> bool:
        """Return whether no client has written to the graph since `watch` was called; then stop watching it."""
        return self._execute() is not None

    def replace(self, key: str) -> bool:
        """Replace the graph *key* by this one in one atomic rename; False if it is watched and was changed."""
        return self._execute("RENAME", self.key, key) is not None

    def _execute(self, *command: str) -> Any:
        with _map_errors():
            self._connection.execute_command("MULTI")
            if command:
                self._connection.execute_command(*command)
            return self._connection.execute_command("EXEC")


@contextmanager
def shadow_graph(database: Database, key: str) -> Iterator[ShadowGraph]:
    """Yield a new, empty `ShadowGraph` (temporary graph) on the server of the graph *key*; delete it at the end."""
    # This wakes the graph, and follows the graph if a cluster has moved it to another server.
    database.query(key, "RETURN 1", {}, write=False)
    with _map_errors():
        shared = database.client(key).connection_pool
        own = _pool_like(shared)
        connection: Any = redis.Redis(connection_pool=own, single_connection_client=True)
    owner = uuid4().hex
    name = PREFIX + SAME_SLOT.format(key=key) + owner
    shadow = ShadowGraph(name, connection)
    try:
        with _map_errors():
            connection.client_setname(PREFIX + owner)
            for orphan in orphans(connection.execute_command("GRAPH.LIST"), connection.client_list()):
                connection.delete(orphan)
        yield shadow
    finally:
        own.disconnect()
        # Not on the connection above: after Ctrl-C it may still wait for an answer, and the server may be frozen.
        brief = _pool_like(shared, socket_timeout=OPENING)
        with suppress(redis.RedisError, OSError), closing(brief):
            redis.Redis(connection_pool=brief).delete(name, *shadow.copies)


def _pool_like(pool: Any, **options: Any) -> Any:
    # *pool* itself has few connections: tasks that hold one and wait for another would block.
    return redis.ConnectionPool(connection_class=pool.connection_class, **{**pool.connection_kwargs, **options})


def read_snapshot(database: Database, key: str, take: Callable[[str], T]) -> T:
    """Return ``take(key)`` for a consistent state of the graph *key*: if it is written meanwhile, a copy is read."""
    with shadow_graph(database, key) as copy:
        copy.watch(key)
        result = take(key)
        if not copy.is_unchanged():  # copying is slower than reading, and needs as much memory as the graph
            copy.copy(key)
            result = take(copy.key)
    return result


def orphans(graphs: Iterable[str], clients: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the keys in *graphs* of temporary graphs that belong to killed processes, sorted."""
    names = {client["name"] for client in clients}
    shadows = (key for key in graphs if key.startswith(PREFIX))
    return sorted(key for key in shadows if PREFIX + key.rpartition("}")[2].partition(".")[0] not in names)


@contextmanager
def _map_errors() -> Iterator[None]:
    try:
        yield
    except (*LOST_CONNECTION, redis.ResponseError) as error:
        raise translate_error(error, lambda: ADVICE) from error
