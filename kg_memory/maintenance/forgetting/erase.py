"""Erase the copies of forgotten text that exist outside the graph.

The database server has copies in its query logs, append-only file and snapshots. This process has some in caches, and
LangGraph in checkpoints.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kg_memory.errors import DatabaseError, QueryError
from kg_memory.falkor.graph_swap import PREFIX, orphans
from kg_memory.falkor.rows import Row
from kg_memory.falkor.schema import ITEMS
from kg_memory.runtime.caches import clear_caches
from kg_memory.runtime.effects import Call, command, work
from kg_memory.runtime.flow import Flow

STREAM = "telemetry{{{}}}"
"""The key of the stream where FalkorDB logs the latest queries on a graph with parameters, unless CMD_INFO is off."""
PAUSE, LONGEST_STREAM, LONGEST = 0.02, 10.0, 600.0
_REPLICA = re.compile(r"slave\d+")
BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
ADVICE = (
    "the deleted text stays in the server's append-only file and snapshots until they are rewritten: forget with "
    "erase=True, or run BGREWRITEAOF and BGSAVE on the server"
)
ADVICE_FOR_REPLICAS = (
    "the deleted text stays in the files of the replicas until these are rewritten: run BGREWRITEAOF and BGSAVE on each"
)
ADVICE_FOR_STALE_REPLICAS = (
    "some replicas have not received the deletion and may still serve the deleted text: reconnect them or stop them "
    "for good, then forget again; these are"
)
CAUGHT_UP_IN = 5.0
"""Seconds that a replica has to receive the deletion."""
LOST_REPLICA = "a replica that was connected before"


@dataclass(frozen=True, slots=True)
class Erasure:
    """Whether the database server's files are free of deleted data (`done`), or else *advice* to the user."""

    done: bool = False
    advice: str = ADVICE


def erase_leftovers(key: str, mark: str, *, rewrite: bool) -> Flow[Erasure]:
    """Delete copies of deleted data outside the graph *key*, such as the query log; return whether none is left."""
    try:
        yield from _delete_stream(key, mark)
        graphs = yield from command("GRAPH.LIST", at=key)
        yield from _delete_copies(graphs, key)
        if not rewrite:
            return Erasure()
        yield from _try_command(key, "GRAPH.SLOWLOG", key, "RESET")
        for graph in (graph for graph in graphs if graph.startswith(ITEMS.prefix)):
            yield from _delete_stream(graph, mark)
            yield from _try_command(graph, "GRAPH.SLOWLOG", graph, "RESET")
        return (yield from _rewrite_files(key))
    except DatabaseError as error:  # the caller must still write the audit log
        return Erasure(advice=f"{ADVICE} ({error})")


def find_stale_replicas(key: str) -> Flow[list[str]]:
    """Return the addresses of the database replicas that lack the latest writes: ``["10.0.0.2:6379"]``.

    A disconnected replica is listed as "replica_url" (the one in the settings) or as `LOST_REPLICA`.
    """
    now = yield from _try_command(key, "INFO", "replication")
    if not isinstance(now, dict):
        return []
    since = time.monotonic()
    while True:
        behind, lost = yield from _list_replicas(key, now["master_replid"], now["master_repl_offset"])
        if not behind or time.monotonic() - since > CAUGHT_UP_IN:
            return behind + lost
        yield from work(lambda: time.sleep(PAUSE))


def _list_replicas(key: str, history: str, offset: int) -> Flow[tuple[list[str], list[str]]]:
    """Return the replicas that lack the latest writes, and the disconnected ones: ``(["10.0.0.2:6379"], [])``."""
    state: Row = yield from command("INFO", "replication", at=key)
    replicas = [value for name, value in state.items() if _REPLICA.fullmatch(name)]
    behind = [f"{replica['ip']}:{replica['port']}" for replica in replicas if replica["offset"] < offset]
    lost = [LOST_REPLICA] if state.get("repl_backlog_active") and not replicas else []
    try:
        own: Row | None = yield from command("INFO", "replication", at=key, replica=True)
    except DatabaseError:
        return behind, ["replica_url"]
    if own is not None and (own["master_replid"] != history or own["master_repl_offset"] < offset):
        return (["replica_url"], []) if own.get("master_link_status") == "up" else (behind, ["replica_url"])
    return behind, lost


def _delete_stream(key: str, mark: str) -> Flow[None]:
    """Delete the log of recent queries on the graph *key*."""
    stream = STREAM.format(key)
    setting = yield from _try_command(key, "GRAPH.CONFIG", "GET", "CMD_INFO")
    if setting is None or setting[1]:
        yield from command("GRAPH.RO_QUERY", key, f'CYPHER mark="{mark}" RETURN $mark', at=key)
        since = time.monotonic()
        while time.monotonic() - since < LONGEST_STREAM and (yield from command("EXISTS", key, at=key)):
            if mark in str((yield from command("XREVRANGE", stream, "+", "-", "COUNT", 50, at=key))):
                break
            yield from work(lambda: time.sleep(PAUSE))
    yield from command("DEL", stream, at=key)


def drop_stream(key: str) -> Flow[None]:
    """Delete FalkorDB's log of recent queries on the graph *key*, because query parameters contain user text."""
    yield from _try_command(key, "DEL", STREAM.format(key))


def _delete_copies(graphs: Sequence[str], key: str) -> Flow[None]:
    """Delete temporary copies of graphs that are left on the server because an export process was killed."""
    if any(graph.startswith(PREFIX) for graph in graphs):
        for copy in orphans(graphs, (yield from command("CLIENT LIST", at=key))):
            yield from command("DEL", copy, at=copy)


def _rewrite_files(key: str) -> Flow[Erasure]:
    """Make the server of the graph *key* write its append-only file and snapshot anew, without deleted data."""
    yield from command("SLOWLOG", "RESET", at=key)
    state = yield from _wait_until_idle(key)
    if state["aof_enabled"]:
        state = yield from _rewrite(key, "BGREWRITEAOF")
    if (yield from _makes_snapshots(key)):
        state = yield from _rewrite(key, "BGSAVE")
    replicas = (yield from command("INFO", "replication", at=key)).get("connected_slaves", 0)
    if state.get("aof_last_bgrewrite_status") != "ok" or state.get("rdb_last_bgsave_status") != "ok":
        return Erasure()
    return Erasure(advice=ADVICE_FOR_REPLICAS) if replicas else Erasure(done=True, advice="")


def _rewrite(key: str, how: str) -> Flow[Row]:
    yield from command(how, at=key)
    return (yield from _wait_until_idle(key))


def _wait_until_idle(key: str) -> Flow[Row]:
    since = time.monotonic()
    while True:
        state: Row = yield from command("INFO", "persistence", at=key)
        if not any(state.get(name) for name in BUSY):
            return state
        if time.monotonic() - since > LONGEST:
            raise QueryError(f"the server did not finish rewriting its files within {LONGEST:.0f} s: check its log")
        yield from work(lambda: time.sleep(PAUSE))


def _makes_snapshots(key: str) -> Flow[bool]:
    setting = yield from _try_command(key, "CONFIG", "GET", "save")
    # A server that hides its configuration may make snapshots.
    return not isinstance(setting, dict) or bool(setting.get("save"))


def _try_command(key: str, *words: str) -> Flow[Any]:
    try:
        return (yield from command(*words, at=key))
    except QueryError:
        return None


# This process


def clear_all_caches() -> int:
    """Clear all caches of this process that may contain stored text or vectors; return their number."""
    re.purge()  # cached patterns may contain names of people
    functions = find_cached_functions()
    for function in functions:
        function.cache_clear()
    return clear_caches() + len(functions)


def find_cached_functions() -> list[Any]:
    """Return the functions of this package with a bounded ``lru_cache``, to clear it: it may contain forgotten text."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("kg_memory") and module]
    return [value for module in modules for value in vars(module).values() if _is_bounded_cache(value)]


def _is_bounded_cache(value: Any) -> bool:
    parameters = getattr(value, "cache_parameters", None)
    return callable(parameters) and parameters()["maxsize"] is not None


# Checkpoints


class Checkpointer(Protocol):
    """Protocol of a LangGraph checkpointer: the methods that delete all checkpoints of a conversation."""

    def delete_thread(self, thread_id: str) -> Any: ...

    async def adelete_thread(self, thread_id: str) -> Any: ...


def delete_checkpoints(checkpointer: Checkpointer, threads: Iterable[str]) -> Flow[None]:
    """Delete all checkpoints of the conversations *threads* (their thread ids) from a LangGraph checkpointer."""
    for thread in threads:
        yield Call(partial(checkpointer.delete_thread, thread), partial(checkpointer.adelete_thread, thread))
