"""Reading commands that the server works on at once: it takes those of one connection one after another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

import redis
import redis.asyncio

from kg_memory.falkor.parameters import query_command
from kg_memory.falkor.queries import Asked

LANES = 4
"""Over how many connections the queries of one reading go, at most."""
_NOTHING = object()


class Lanes:
    """Lets some readings at a time take several of a pool's *connections*.

    Where no more may, a reading goes over one: so none waits for another that waits too, and under load, when the
    server's threads all have work, nothing is gained by more.
    """

    def __init__(self, connections: int) -> None:
        self._room = threading.Semaphore(connections // LANES)

    def answers(self, client: redis.Redis, key: str, queries: Asked) -> list[Any]:
        """Return what reading *queries* on the graph *key* answer, in order, an error as a value.

        Errors: redis-py's, where the server is lost.
        """
        pool = getattr(client, "connection_pool", None)
        if pool is None:  # as a cluster's client has none
            together: list[Any] = _together(client.pipeline(transaction=False), key, queries).execute(
                raise_on_error=False
            )
            return together
        if len(queries) < 2 or not self._room.acquire(blocking=False):
            return _side_by_side(pool, key, [queries])
        try:
            return _side_by_side(pool, key, _lanes(queries))
        finally:
            self._room.release()

    async def aanswers(self, client: redis.asyncio.Redis, key: str, queries: Asked) -> list[Any]:
        """`answers` on the running event loop."""
        if len(queries) < 2 or not self._room.acquire(blocking=False):
            pipeline = _together(client.pipeline(transaction=False), key, queries)
            together: list[Any] = await pipeline.execute(raise_on_error=False)
            return together
        try:
            pipelines = (_together(client.pipeline(transaction=False), key, lane) for lane in _lanes(queries))
            ended = await asyncio.gather(
                *(pipeline.execute(raise_on_error=False) for pipeline in pipelines), return_exceptions=True
            )
        finally:
            self._room.release()
        for each in ended:
            if isinstance(each, BaseException):
                raise each
        return _in_order(ended)


def _together(pipeline: Any, key: str, queries: Asked) -> Any:
    for cypher, params in queries:
        pipeline.execute_command(*query_command(key, cypher, params))
    return pipeline


def _side_by_side(pool: redis.ConnectionPool, key: str, lanes: Sequence[Asked]) -> list[Any]:
    """Return the answers of *lanes*; each is written out when it is sent, while the server works on those before it."""
    taken: list[Any] = []
    try:
        for lane in lanes:
            connection: Any = pool.get_connection()
            taken.append(connection)
            commands = [query_command(key, cypher, params) for cypher, params in lane]
            connection.send_packed_command(connection.pack_commands(commands))
        return _in_order([[_answer(connection) for _ in lane] for connection, lane in zip(taken, lanes, strict=True)])
    except BaseException:
        for connection in taken:  # or the next command on it would get an answer that is still to come
            connection.disconnect()
        raise
    finally:
        for connection in taken:
            pool.release(connection)


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


def _lanes(queries: Asked) -> list[Asked]:
    count = min(LANES, len(queries))
    return [queries[place::count] for place in range(count)]


def _in_order(lanes: Sequence[Any]) -> list[Any]:
    """Return the answers of *lanes* in the order of the queries that were dealt out to them."""
    answers = chain.from_iterable(zip_longest(*lanes, fillvalue=_NOTHING))
    return [each for each in answers if each is not _NOTHING]
