"""Shadow graphs: filled or copied where no reader looks, and then swapped in for another graph at once.

Each belongs to a connection that bears its name, so that the next user of a shadow graph removes those of processes
that were killed. FalkorDB 4.22.1: RENAME replaces a graph at once and outlives restarts; WATCH notices every write to a
graph; GRAPH.COPY needs the server to fork, which it cannot do while it forks for something else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

import redis

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.connect import ADVICE, Database
from kg_memory.falkor.servers import LOST_CONNECTION
from kg_memory.falkor.wire import translate_error

T = TypeVar("T")
PREFIX = "kg-aside:"
SAME_SLOT = "{{{key}}}"
"""The part of a name that puts it on the same server of a cluster as the graph *key*."""
CANNOT_FORK = "could not fork"
COPY_ATTEMPTS = 600
COPY_PAUSE = 0.05
LOST_AFTER = 60
"""Seconds without an answer, and without a process that copies, after which an answer is taken for lost."""


class ShadowGraph:
    """A graph that no reader looks at, and the connection that owns it."""

    def __init__(self, key: str, connection: Any) -> None:
        self.key = key
        self._connection = connection

    def copy(self, source: str) -> None:
        """Make it a copy of the graph *source* at one moment.

        Errors: `DatabaseUnavailable` when the server stays too busy.
        """
        for _ in range(COPY_ATTEMPTS):
            try:
                with _map_errors():
                    if self._try_to_copy(source):
                        return
                    self._connection.delete(self.key)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                if CANNOT_FORK not in str(error):
                    raise
                time.sleep(COPY_PAUSE)
        raise DatabaseUnavailable("the server is busy writing its data to disk and copies no graph; try again later")

    def _try_to_copy(self, source: str) -> bool:
        """Copy the graph *source*; return False where FalkorDB lost the answer.

        It does so once in some thousand times: the copying process ended before the server had taken note of it. So
        no such process was ever seen.
        """
        pool = self._connection.connection_pool
        connection = pool.get_connection()
        answered = False
        try:
            connection.send_command("GRAPH.COPY", source, self.key)
            waited, begun = 0, False
            while not connection.can_read(timeout=1):
                begun = begun or self._forks()
                waited += 1
                if waited >= LOST_AFTER and not begun:
                    return False
            answered = True
            connection.read_response()
            return True
        finally:
            if not answered:
                connection.disconnect()  # or the next command on it would be given this one's answer
            pool.release(connection)

    def _forks(self) -> bool:
        """Return whether the server copies a graph, as far as it tells this user."""
        try:
            return bool(self._connection.info("persistence").get("module_fork_in_progress", 1))
        except redis.ResponseError:
            return True

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
        connection = database.client(key).client()
    owner = uuid4().hex
    name = PREFIX + SAME_SLOT.format(key=key) + owner
    try:
        with _map_errors():
            connection.client_setname(PREFIX + owner)
            for orphan in orphans(connection.execute_command("GRAPH.LIST"), connection.client_list()):
                connection.delete(orphan)
        yield ShadowGraph(name, connection)
    finally:
        with suppress(redis.RedisError, OSError):
            connection.execute_command("UNWATCH")
            connection.delete(name)
            connection.client_setname("")
        connection.close()


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
    return sorted(key for key in shadows if PREFIX + key.removeprefix(PREFIX).rpartition("}")[2] not in names)


@contextmanager
def _map_errors() -> Iterator[None]:
    try:
        yield
    except (*LOST_CONNECTION, redis.ResponseError) as error:
        raise translate_error(error, lambda: ADVICE) from error
