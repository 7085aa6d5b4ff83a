"""Graphs made aside: copied or filled where no reader looks, and then at once in another's place.

Each belongs to a connection that bears its name. One that is killed lets go of it, and what it left is removed by the
next that works aside. FalkorDB 4.22.1: RENAME takes the place of a graph at once and outlives restarts; WATCH notices
every write to a graph; a copy needs the server to fork, which it cannot while it forks for something else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

import redis

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.connect import ADVICE, LOST, Database
from kg_memory.falkor.wire import translate_error

T = TypeVar("T")
PREFIX = "kg-aside:"
NO_FORK = "could not fork"
FORKS = 600
PAUSE = 0.05
"""How often it is tried to copy a graph, and the seconds between."""


class Aside:
    """A graph aside, by the key of its own, on a connection that nothing else uses."""

    def __init__(self, key: str, connection: Any) -> None:
        self.key = key
        self._connection = connection

    def copy(self, source: str) -> None:
        """Make it a copy of the graph *source*, as that is at one moment.

        Errors: `DatabaseUnavailable` where the server never comes to it.
        """
        for _ in range(FORKS):
            try:
                with _translated():
                    self._connection.execute_command("GRAPH.COPY", source, self.key)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                if NO_FORK not in str(error):
                    raise
                time.sleep(PAUSE)
            else:
                return
        raise DatabaseUnavailable("the server is busy writing its data to disk and copies no graph: try again later")

    def watch(self, key: str) -> None:
        """Notice from now on whether the graph *key* is written."""
        with _translated():
            self._connection.execute_command("WATCH", key)

    def unwritten(self) -> bool:
        """Tell whether what is watched was not written, and watch no more."""
        return self._executed() is not None

    def take_place(self, key: str) -> bool:
        """Put the graph in the place of *key*, unless that is watched and was written meanwhile; tell whether it was.

        Readers of *key* see all of the former one before, and all of this one after.
        """
        return self._executed("RENAME", self.key, key) is not None

    def _executed(self, *command: str) -> Any:
        with _translated():
            self._connection.execute_command("MULTI")
            if command:
                self._connection.execute_command(*command)
            return self._connection.execute_command("EXEC")


@contextmanager
def aside(database: Database) -> Iterator[Aside]:
    """Have a graph aside, which is removed in the end unless it took another's place."""
    with _translated():
        shared = database.client().connection
        connection = shared.client()
    name = PREFIX + uuid4().hex
    try:
        with _translated():
            connection.client_setname(name)
            for key in orphans(connection.execute_command("GRAPH.LIST"), connection.client_list()):
                connection.delete(key)
        yield Aside(name, connection)
    finally:
        with suppress(redis.RedisError, OSError):
            connection.execute_command("UNWATCH")
            connection.delete(name)
            connection.client_setname("")
        connection.close()


def at_one_moment(database: Database, key: str, take: Callable[[str], T]) -> T:
    """Return what *take* makes of the graph *key* as it is at one moment, while others may write it.

    It is called with the key; where somebody wrote meanwhile, once more with that of a copy: to copy a graph with
    vectors takes the server longer than to read it, and as much memory again.
    """
    with aside(database) as copy:
        copy.watch(key)
        taken = take(key)
        if not copy.unwritten():
            copy.copy(key)
            taken = take(copy.key)
    return taken


def orphans(graphs: Iterable[str], clients: Iterable[Mapping[str, str]]) -> list[str]:
    """Return which of *graphs* are aside and belong to none of *clients*: those of processes that were killed."""
    alive = {each["name"] for each in clients}
    return sorted(key for key in graphs if key.startswith(PREFIX) and key not in alive)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (*LOST, redis.ResponseError) as error:
        raise translate_error(error, lambda: ADVICE) from error
