"""The wire protocol of FalkorDB: format commands and parameters, parse answers, translate errors, batch reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from types import MappingProxyType, NoneType
from typing import Any, Literal

import redis
import redis.asyncio
from falkordb.helpers import quote_string, stringify_param_value

from kg_memory.errors import DatabaseForbidden, DatabaseUnavailable, EmbeddingMismatch, KGMemoryError, QueryError

Row = dict[str, Any]
"""The values of one result row, by column name."""
Params = Mapping[str, Any]
"""The parameters of a query, by name."""
QueryBatch = Sequence[tuple[str, Params]]


# Commands

# Eight digits keep the single precision of the database; more digits cost both sides time.
_DIGITS = "%.8g,"

_LITERALS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {str: quote_string, int: str, float: str, bool: str, NoneType: lambda _: "null"}
)
"""Writers of the most frequent types, looked up by type: a chain of isinstance checks takes half as long again."""


class EncodedVector(list[float]):
    """An embedding vector that caches its text form, because several queries of one search send the same vector."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        super().__init__(numbers)

    @cached_property
    def text(self) -> str:
        """The vector as query text, such as ``[0.25,1]``. It is cached: do not change the vector afterwards."""
        return f"[{(_DIGITS * len(self))[:-1] % tuple(self)}]"


def query_command(key: str, cypher: str, params: Params, *, write: bool = False) -> tuple[str, ...]:
    """Return the Redis command that runs *cypher* on the graph *key*, as words: ``("GRAPH.QUERY", key, ...)``."""
    return ("GRAPH.QUERY" if write else "GRAPH.RO_QUERY", key, prepend_parameters(cypher, params), "--compact")


def prepend_parameters(cypher: str, params: Params) -> str:
    """Return *cypher* with *params* before it, escaped as Cypher literals: ``CYPHER name="Ann" MATCH ...``."""
    if not params:
        return cypher
    assignments = " ".join(f"{name}={to_literal(value)}" for name, value in params.items())
    return f"CYPHER {assignments} {cypher}"


def to_literal(value: Any) -> str:
    """Return *value* as a Cypher literal: ``["Ann", None]`` gives ``["Ann",null]``."""
    write = _LITERALS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, EncodedVector):
        return value.text
    if isinstance(value, Mapping):
        return f"{{{','.join([_map_key(str(key)) + to_literal(item) for key, item in value.items()])}}}"
    return _list_literal(value) if isinstance(value, list | tuple) else str(stringify_param_value(value))


def _list_literal(values: Sequence[Any]) -> str:
    if values and {*map(type, values)} == {str}:
        text = '","'.join(values)
        if text.count('"') == 2 * (len(values) - 1) and "\\" not in text:  # ids, mostly: nothing to escape
            return f'["{text}"]'
    return f"[{','.join(map(to_literal, values))}]"


@lru_cache(maxsize=1024)
def _map_key(key: str) -> str:
    if not key or "`" in key:
        raise ValueError(f"a map key must not be empty or contain a backtick, got {key!r}; rename it")
    return f"`{key}`:"


REPLICATED_IN = 5.0
"""Seconds within which replicas must have a write that waits for them."""


def fill_pipeline(client: Any, commands: Iterable[Sequence[str | int]]) -> Any:
    """Return a redis-py pipeline of *client* in which *commands* are queued; it sends them over one connection."""
    pipeline = client.pipeline(transaction=False)
    for words in commands:
        pipeline.execute_command(*words)
    return pipeline


def settle_reply(replies: list[Any], replicas: int) -> Any:
    """Return the reply to the actual command among *replies* of a pipeline, or raise it if it is an error.

    Errors: also `DatabaseUnavailable` if fewer than *replicas* replicas stored the write.
    """
    reply = replies[-2 if replicas else -1]
    if isinstance(reply, Exception):
        raise reply
    if replicas and isinstance(replies[-1], Exception):
        raise replies[-1]
    if replicas and replies[-1] < replicas:
        raise DatabaseUnavailable(
            f"FalkorDB applied a write, but only {replies[-1]} of {replicas} replicas had it within "
            f"{REPLICATED_IN:g} s; check that the replicas run, or lower wait_replicas"
        )
    return reply


# Answers

# The type number and the raw value, as the server sends them.
_Cell = tuple[int, Any]
_INTEGER, _NUMBER = 3, 5
"""Values with a type number up to `_INTEGER` (null, string, integer) need no decoding."""


def decode_rows(answer: Sequence[Any]) -> list[Row]:
    """Convert a query's reply in FalkorDB's compact form to a list of rows: ``[{"id": "f1"}, ...]``.

    Errors: the error that ended the query; `TypeError` for a column with a node, relation or path.
    """
    for part in (answer[0], answer[-1]):
        if isinstance(part, Exception):
            raise part
    if len(answer) == 1:
        return []
    names = [name for _, name in answer[0]]
    try:
        return [_decode_map(names, cells) for cells in answer[1]]  # much faster than falkordb-py
    except KeyError as type_:
        raise TypeError(f"a column has the unsupported type {type_}; return properties, not nodes") from None


# Both functions decode the frequent types inline: one more call for each cell would double the time.
def _decode_map(names: Sequence[str], cells: Sequence[_Cell]) -> Row:
    return {
        name: value if type_ <= _INTEGER else float(value) if type_ == _NUMBER else _DECODERS[type_](value)
        for name, (type_, value) in zip(names, cells, strict=True)
    }


def _decode_list(cells: Iterable[_Cell]) -> list[Any]:
    return [
        value if type_ <= _INTEGER else float(value) if type_ == _NUMBER else _DECODERS[type_](value)
        for type_, value in cells
    ]


_DECODERS: Mapping[int, Callable[[Any], Any]] = {
    4: lambda value: value in ("true", True),
    6: _decode_list,
    10: lambda value: _decode_map(value[::2], value[1::2]),
    12: lambda value: [float(number) for number in value],
}
"""Decoders of booleans, lists, maps and vectors, by type number; our queries return no nodes, relations or paths."""


# Errors

FORMER_PRIMARY = (redis.ReadOnlyError, redis.exceptions.ClusterDownError)
"""Errors of a server that is no longer the primary, or is cut off from its cluster: look for the primary again."""
_OTHER_DIMENSION = "Vector dimension mismatch"
_TIMED_OUT = "Query timed out"
_NO_WRITES = "MISCONF"
_ASLEEP = ("WRONGTYPE", "Encountered a non-graph value", "Encountered different graph value")
_BUSY = ("MASTERDOWN", "NOREPLICAS", "BUSY ", "Max pending queries exceeded")


WAKE = """
if redis.call('TYPE', KEYS[1]).ok == 'string' then
  redis.call('RESTORE', KEYS[1], 0, redis.call('GET', KEYS[1]), 'REPLACE')
end
"""
"""Wakes a graph: while a namespace sleeps, the key of its graph holds the dumped graph as a string."""
State = Literal["awake", "asleep"]


def list_graphs(client: Any, prefix: str, state: State | None) -> list[str]:
    """Return the keys of the server's graphs in *state* (None: in any) that begin with *prefix*."""
    awake = () if state == "asleep" else client.execute_command("GRAPH.LIST")
    asleep = () if state == "awake" else client.scan_iter(f"{prefix}*", 1000, "STRING")
    return [key for key in chain(awake, asleep) if key.startswith(prefix)]


class NamespaceAsleep(DatabaseUnavailable):
    """The graph of a namespace is asleep, or woke up during the query, which did nothing and can be repeated."""


def translate_error(error: Exception, advice: Callable[[], str]) -> KGMemoryError:
    """Convert *error*, a redis-py or network error, to a `KGMemoryError` with a message for users."""
    message = str(error)
    match error:
        case redis.AuthenticationError():
            state, remedy = "refuses this user", "check name and password in the URL, user:password@host:6379"
        case redis.BusyLoadingError():
            state, remedy = "is loading its data", "try again in a moment"
        case redis.exceptions.NoPermissionError():
            remedy = "grant the rights that docs/operations.md lists"
            return DatabaseForbidden(f"FalkorDB refused this user a command ({message}); {remedy}")
        case redis.OutOfMemoryError():
            state, remedy = "is out of memory and accepts no writes", "raise its maxmemory, then try again"
        case redis.ReadOnlyError():
            state, remedy = "is a replica and accepts no writes", "set url to its primary, and replica_url to this one"
        case redis.exceptions.AskError():
            state, remedy = "has moved the graph to another server of the cluster", "try again"
        case redis.exceptions.ClusterDownError() | redis.exceptions.TryAgainError():
            state, remedy = "is a cluster that does not serve this graph at present", "try again after the failover"
        case redis.ResponseError():
            return _translate_refusal(message)
        case _:
            state, remedy = "cannot be reached", advice()
    return DatabaseUnavailable(f"FalkorDB {state} ({message}); {remedy}")


def _translate_refusal(message: str) -> KGMemoryError:
    """Convert *message*, the text of an error reply by the database, to a `KGMemoryError`."""
    if _OTHER_DIMENSION in message:
        return EmbeddingMismatch(
            f"the graph holds vectors of another dimension ({message}); open it with the embedding model that "
            "made them, or run `kg-memory reembed` to embed it with another one"
        )
    if message.startswith(_NO_WRITES):
        return DatabaseUnavailable(
            f"FalkorDB accepts no writes ({message}); free some space on its disk; it then recovers by itself"
        )
    if message.startswith(_ASLEEP):
        return NamespaceAsleep(f"the namespace is asleep ({message}); ask the primary server, which wakes it")
    if message.startswith(_BUSY):
        return DatabaseUnavailable(f"FalkorDB does not serve at present ({message}); try again in a moment")
    if _TIMED_OUT in message:
        return QueryError(
            f"FalkorDB ended a query that took too long ({message}), and wrote nothing of it; raise TIMEOUT_DEFAULT "
            "and TIMEOUT_MAX of the server (GRAPH.CONFIG SET), then try again"
        )
    return QueryError(f"FalkorDB refused a query: {message}")


# Reads at once

LANES = 4
"""The most connections that the queries of one batch use; the server runs the queries of one connection in turn."""
_MISSING = object()


class PipelinedReads:
    """Runs a batch of read queries in parallel over several connections of a pool."""

    def __init__(self, connections: int) -> None:
        self._batches = threading.Semaphore(connections // LANES)

    def run(self, client: redis.Redis, key: str, queries: QueryBatch) -> list[Any]:
        """Run *queries* on the graph *key*; return the answers in order: for a failed query, its error.

        Errors: redis-py's, if the server is lost.
        """
        with self._deal(queries) as lanes:
            return _run_lanes(client.connection_pool, key, lanes)

    async def gather(self, client: redis.asyncio.Redis, key: str, queries: QueryBatch) -> list[Any]:
        """Run *queries* on the graph *key* like `run`, but on the running event loop; return the answers in order."""
        with self._deal(queries) as lanes:
            commands = ((query_command(key, *query) for query in lane) for lane in lanes)
            pipelines = [fill_pipeline(client, each) for each in commands]
            if len(pipelines) == 1:  # a task would take half as long again
                answers: list[Any] = await pipelines[0].execute(raise_on_error=False)
                return answers
            running = [pipeline.execute(raise_on_error=False) for pipeline in pipelines]
            lanes_of_answers = await asyncio.gather(*running, return_exceptions=True)
        for lane in lanes_of_answers:
            if isinstance(lane, BaseException):
                raise lane
        return _interleave(lanes_of_answers)

    @contextmanager
    def _deal(self, queries: QueryBatch) -> Iterator[list[QueryBatch]]:
        """Yield *queries* split into a list for each connection, to run in parallel: ``[a, b, c] -> [[a, c], [b]]``."""
        if len(queries) < 2 or not self._batches.acquire(blocking=False):
            yield [queries]
            return
        try:
            count = min(LANES, len(queries))
            yield [queries[place::count] for place in range(count)]
        finally:
            self._batches.release()


def _run_lanes(pool: redis.ConnectionPool, key: str, lanes: Sequence[QueryBatch]) -> list[Any]:
    """Send each list in *lanes* over a connection of its own; return all answers, merged by `_interleave`."""
    connections: list[Any] = []
    try:
        for lane in lanes:
            connection: Any = pool.get_connection()
            connections.append(connection)
            commands = [query_command(key, cypher, params) for cypher, params in lane]
            connection.send_packed_command(connection.pack_commands(commands))  # runs while the next is built
        each = zip(connections, lanes, strict=True)
        return _interleave([[_read_answer(connection) for _ in lane] for connection, lane in each])
    except BaseException:
        for connection in connections:  # else the next command on it would read an outstanding answer
            connection.disconnect()
        raise
    finally:
        for connection in connections:
            pool.release(connection)


def _read_answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


def _interleave(lanes: Sequence[Any]) -> list[Any]:
    """Merge *lanes* by taking an item from each in turn: ``[[1, 3], [2]] -> [1, 2, 3]``."""
    answers = chain.from_iterable(zip_longest(*lanes, fillvalue=_MISSING))
    return [answer for answer in answers if answer is not _MISSING]
