"""What the errors of redis and of the network mean, and what to do about each."""

from __future__ import annotations

from collections.abc import Callable

import redis

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch, KGMemoryError, QueryError

OTHER_DIMENSION = "Vector dimension mismatch"
TIMED_OUT = "Query timed out"
NO_WRITES = "MISCONF"
MOVED = (redis.ReadOnlyError,)
"""What a server says that was the primary before: the URL may lead to another one by now."""


def translation(error: Exception, advice: Callable[[], str]) -> KGMemoryError:
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
            return _refusal(said)
        case _:
            kind, meaning = "cannot be reached", advice()
    return DatabaseUnavailable(f"FalkorDB {kind} ({said}): {meaning}")


def _refusal(said: str) -> KGMemoryError:
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
