"""Answers of the database in its compact form as rows: much faster than by the client's own reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from types import MappingProxyType, NoneType
from typing import Any, Protocol

import redis
import redis.asyncio
from falkordb.helpers import quote_string, stringify_param_value

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch, KGMemoryError, QueryError

Cell = tuple[int, Any]
"""A type, and what was sent."""
INTEGER, NUMBER = 3, 5
"""Types up to integers, null and strings, are what they are sent as."""


def decode_rows(answer: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of an *answer*: columns, rows of cells, figures.

    Errors: the one that ended the query; `TypeError` for a node or a relation.
    """
    for part in (answer[0], answer[-1]):
        if isinstance(part, Exception):
            raise part
    if len(answer) == 1:
        return []
    names = [name for _, name in answer[0]]
    try:
        return [_decode_map(names, cells) for cells in answer[1]]
    except KeyError as type_:
        raise TypeError(
            f"a query returned a value of type {type_}: have it return the properties that are wanted"
        ) from None


# Both do for themselves what most cells need: a call for each would take as long again.
def _decode_map(names: Sequence[str], cells: Sequence[Cell]) -> dict[str, Any]:
    return {
        name: sent if type_ <= INTEGER else float(sent) if type_ == NUMBER else _READ[type_](sent)
        for name, (type_, sent) in zip(names, cells, strict=True)
    }


def _decode_list(cells: Iterable[Cell]) -> list[Any]:
    return [
        sent if type_ <= INTEGER else float(sent) if type_ == NUMBER else _READ[type_](sent) for type_, sent in cells
    ]


_READ: Mapping[int, Callable[[Any], Any]] = {
    4: lambda sent: sent in ("true", True),
    6: _decode_list,
    10: lambda sent: _decode_map(sent[::2], sent[1::2]),
    12: lambda sent: [float(each) for each in sent],
}
"""How booleans, lists, maps and vectors are read; no node, relation or path is ever returned."""


DIGIT_FORMAT = "%.8g,"
"""Eight digits err less than the single precision that the database keeps; more cost both sides time."""

_PLAIN: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {str: quote_string, int: str, float: str, bool: str, NoneType: lambda _: "null"}
)
"""How most values are written; asked one kind after another what they are, they would take half as long again."""


class EncodedVector(list[float]):
    """A vector with its text: four queries of one search send the same."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        super().__init__(numbers)

    @cached_property
    def text(self) -> str:
        """The vector as it is sent; it is not to be changed any more."""
        return f"[{(DIGIT_FORMAT * len(self))[:-1] % tuple(self)}]"


def query_command(key: str, cypher: str, params: Mapping[str, Any], *, write: bool = False) -> tuple[str, ...]:
    """Return the command that the client sends for a query on the graph *key*, to be answered in the compact form."""
    return ("GRAPH.QUERY" if write else "GRAPH.RO_QUERY", key, prepend_parameters(cypher, params), "--compact")


def prepend_parameters(cypher: str, params: Mapping[str, Any]) -> str:
    """Return *cypher* with *params* before it, where none of them can become a part of the query."""
    if not params:
        return cypher
    given = " ".join(f"{name}={literal(value)}" for name, value in params.items())
    return f"CYPHER {given} {cypher}"


def literal(value: Any) -> str:
    """Return *value* as Cypher writes it.

    Errors: `ValueError` for a map's key that Cypher cannot write.
    """
    write = _PLAIN.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, EncodedVector):
        return value.text
    if isinstance(value, Mapping):
        return f"{{{','.join([_map_key(str(key)) + literal(each) for key, each in value.items()])}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(literal, value))}]"
    return str(stringify_param_value(value))


@lru_cache(maxsize=1024)
def _map_key(key: str) -> str:
    """Return the *key* of a map as it is written before its value."""
    if not key or "`" in key:
        raise ValueError(f"{key!r} cannot be the key of a map in a query: give one with letters and without a backtick")
    return f"`{key}`:"


OTHER_DIMENSION = "Vector dimension mismatch"
TIMED_OUT = "Query timed out"
NO_WRITES = "MISCONF"
MOVED = (redis.ReadOnlyError,)
"""What a server says that was the primary before: the URL may lead to another one by now."""


def translate_error(error: Exception, advice: Callable[[], str]) -> KGMemoryError:
    """Return our error for one of redis or of the network; *advice* is what to do where no server is reached."""
    said = str(error)
    match error:
        case redis.AuthenticationError():
            kind, meaning = "refuses this user", "put the right name and password into the URL, user:password@host:6379"
        case redis.BusyLoadingError():
            kind, meaning = "is loading its data", "try again in a moment"
        case redis.OutOfMemoryError():
            kind, meaning = "is out of memory and takes no writes", "raise its maxmemory, then try again"
        case redis.ReadOnlyError():
            kind, meaning = "is a replica and takes no writes", "set url to its primary, and replica_url to this one"
        case redis.ResponseError() if said.startswith(NO_WRITES):
            kind, meaning = "takes no writes", "free some space on its disk: it then goes on by itself"
        case redis.ResponseError():
            return _translate_refusal(said)
        case _:
            kind, meaning = "cannot be reached", advice()
    return DatabaseUnavailable(f"FalkorDB {kind} ({said}): {meaning}")


def _translate_refusal(said: str) -> KGMemoryError:
    if OTHER_DIMENSION in said:
        return EmbeddingMismatch(
            f"the graph was built with another setting of the embedding model ({said}): open it with that "
            "one, or run `kg-memory reembed` to change it"
        )
    if TIMED_OUT in said:
        return QueryError(
            f"FalkorDB ended a query that took too long ({said}), and nothing of it was written: raise TIMEOUT_DEFAULT "
            "and TIMEOUT_MAX of the server (GRAPH.CONFIG SET), then try again"
        )
    return QueryError(f"FalkorDB refused a query: {said}")


Row = dict[str, Any]
"""The values of one row by column."""
QueryBatch = Sequence[tuple[str, Mapping[str, Any]]]
"""Queries with their parameters."""


class QueryRunner(Protocol):
    """Answers queries on graphs; see `kg_memory.falkor.connect.Database` for each verb."""

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]: ...

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]: ...

    def read_all(self, key: str, queries: QueryBatch) -> list[list[Row]]: ...

    async def aread_all(self, key: str, queries: QueryBatch) -> list[list[Row]]: ...


LANES = 4
"""Over how many connections the queries of one reading go, at most."""
_NOTHING = object()


class PipelinedReads:
    """Lets some readings at a time take several of a pool's *connections*.

    Where no more may, a reading goes over one: so none waits for another that waits too, and under load, when the
    server's threads all have work, nothing is gained by more.
    """

    def __init__(self, connections: int) -> None:
        self._room = threading.Semaphore(connections // LANES)

    def answers(self, client: redis.Redis, key: str, queries: QueryBatch) -> list[Any]:
        """Return what reading *queries* on the graph *key* answer, in order, an error as a value.

        Errors: redis-py's, where the server is lost.
        """
        pool = getattr(client, "connection_pool", None)
        if pool is None:  # as a cluster's client has none
            together: list[Any] = _queue_all(client.pipeline(transaction=False), key, queries).execute(
                raise_on_error=False
            )
            return together
        if len(queries) < 2 or not self._room.acquire(blocking=False):
            return _read_side_by_side(pool, key, [queries])
        try:
            return _read_side_by_side(pool, key, _deal(queries))
        finally:
            self._room.release()

    async def aanswers(self, client: redis.asyncio.Redis, key: str, queries: QueryBatch) -> list[Any]:
        """`answers` on the running event loop."""
        if len(queries) < 2 or not self._room.acquire(blocking=False):
            pipeline = _queue_all(client.pipeline(transaction=False), key, queries)
            together: list[Any] = await pipeline.execute(raise_on_error=False)
            return together
        try:
            pipelines = (_queue_all(client.pipeline(transaction=False), key, lane) for lane in _deal(queries))
            ended = await asyncio.gather(
                *(pipeline.execute(raise_on_error=False) for pipeline in pipelines), return_exceptions=True
            )
        finally:
            self._room.release()
        for each in ended:
            if isinstance(each, BaseException):
                raise each
        return _interleave(ended)


def _queue_all(pipeline: Any, key: str, queries: QueryBatch) -> Any:
    for cypher, params in queries:
        pipeline.execute_command(*query_command(key, cypher, params))
    return pipeline


def _read_side_by_side(pool: redis.ConnectionPool, key: str, lanes: Sequence[QueryBatch]) -> list[Any]:
    """Return the answers of *lanes*; each is written out when it is sent, while the server works on those before it."""
    taken: list[Any] = []
    try:
        for lane in lanes:
            connection: Any = pool.get_connection()
            taken.append(connection)
            commands = [query_command(key, cypher, params) for cypher, params in lane]
            connection.send_packed_command(connection.pack_commands(commands))
        return _interleave([[_answer(connection) for _ in lane] for connection, lane in zip(taken, lanes, strict=True)])
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


def _deal(queries: QueryBatch) -> list[QueryBatch]:
    count = min(LANES, len(queries))
    return [queries[place::count] for place in range(count)]


def _interleave(lanes: Sequence[Any]) -> list[Any]:
    """Return the answers of *lanes* in the order of the queries that were dealt out to them."""
    answers = chain.from_iterable(zip_longest(*lanes, fillvalue=_NOTHING))
    return [each for each in answers if each is not _NOTHING]
