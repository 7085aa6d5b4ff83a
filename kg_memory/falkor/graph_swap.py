"""Shadow graphs: filled or copied where no reader looks, and then swapped in for another graph at once.

Each belongs to a connection that bears its name, so that the next user of a shadow graph removes those of processes
that were killed. FalkorDB 4.22.1: RENAME replaces a graph at once and outlives restarts; WATCH notices every write to a
graph; GRAPH.COPY needs the server to fork, which it cannot do while it forks for something else.
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
"""The part of a name that puts it on the same server of a cluster as the graph *key*."""
CANNOT_FORK = "could not fork"
COPY_ATTEMPTS = 600
COPY_PAUSE = 0.05
LOST_AFTER = 60.0
"""Seconds without an answer after which another copy is begun; then twice as many."""
LONGEST_WAIT = 600.0
"""Seconds without an answer to one copy after which no other is begun."""


class ShadowGraph:
    """A graph that no reader looks at, and the connection that owns it."""

    def __init__(self, key: str, connection: Any) -> None:
        self.key = key
        self.copies: list[str] = []
        """The names of the copies that were begun: `key` is the last of them once it was answered."""
        self._connection = connection

    def copy(self, source: str) -> None:
        """Make it a copy of the graph *source* at one moment.

        FalkorDB loses the answer to one copy in some thousand, and does not tell whether a copy still goes on. Where no
        answer comes in time, another copy is begun, and waited for twice as long.

        Errors: `DatabaseUnavailable` when the server stays too busy, or does not answer.
        """
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
        raise DatabaseUnavailable("the server is busy writing its data to disk and copies no graph; try again later")

    def watch(self, key: str) -> None:
        """Notice writes to the graph *key* from now on."""
        with _map_errors():
            self._connection.execute_command("WATCH", key)

    def is_unchanged(self) -> bool:
        """Return whether the watched graph was not written, and stop watching."""
        return self._execute() is not None

    def replace(self, key: str) -> bool:
        """Replace the graph *key*, unless it is watched and was written; return whether it was replaced.

        Readers of *key* see the whole former graph before, and the whole of this one after.
        """
        return self._execute("RENAME", self.key, key) is not None

    def _execute(self, *command: str) -> Any:
        with _map_errors():
            self._connection.execute_command("MULTI")
            if command:
                self._connection.execute_command(*command)
            return self._connection.execute_command("EXEC")


@contextmanager
def shadow_graph(database: Database, key: str) -> Iterator[ShadowGraph]:
    """Yield a shadow graph beside the graph *key*, and remove it at the end unless it replaced another graph."""
    database.command("EXISTS", key, at=key)  # finds the server to which a cluster may have moved it
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
        # Not by the connection above: after Ctrl-C it may wait for an answer, and the server may answer nobody.
        brief = _pool_like(shared, socket_timeout=OPENING)
        with suppress(redis.RedisError, OSError), closing(brief):
            redis.Redis(connection_pool=brief).delete(name, *shadow.copies)


def _pool_like(pool: Any, **options: Any) -> Any:
    """Return a pool of connections like those of *pool* and with *options*.

    *pool* has few: who held one of them and waited for another could wait for ever, for others who do the same.
    """
    return redis.ConnectionPool(connection_class=pool.connection_class, **{**pool.connection_kwargs, **options})


def read_snapshot(database: Database, key: str, take: Callable[[str], T]) -> T:
    """Return the result of *take* for the graph *key* as it is at one moment, while others may write it.

    *take* gets the key, and is called again with the key of a copy if somebody wrote meanwhile. A copy at once would
    take longer for a graph with vectors than to read it, and as much memory again.
    """
    with shadow_graph(database, key) as copy:
        copy.watch(key)
        result = take(key)
        if not copy.is_unchanged():
            copy.copy(key)
            result = take(copy.key)
    return result


def orphans(graphs: Iterable[str], clients: Iterable[Mapping[str, str]]) -> list[str]:
    """Return which of *graphs* are shadow graphs that belong to none of *clients*: their process was killed."""
    names = {client["name"] for client in clients}
    shadows = (key for key in graphs if key.startswith(PREFIX))
    return sorted(key for key in shadows if PREFIX + key.rpartition("}")[2].partition(".")[0] not in names)


@contextmanager
def _map_errors() -> Iterator[None]:
    try:
        yield
    except (*LOST_CONNECTION, redis.ResponseError) as error:
        raise translate_error(error, lambda: ADVICE) from error
