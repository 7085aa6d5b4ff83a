"""Erase what is kept of forgotten messages besides the graph.

The server keeps streams and logs of queries, an append-only file and snapshots; this process caches; and a LangGraph
checkpointer that is given has checkpoints.
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
"""The stream of the latest queries on a graph with their parameters, which FalkorDB keeps unless CMD_INFO is off."""
PAUSE, LONGEST_STREAM, LONGEST = 0.02, 10.0, 600.0
_REPLICA = re.compile(r"slave\d+")
BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
ADVICE = (
    "the text is still in the append-only file or the snapshots of the server until they are rewritten: forget with "
    "erase=True, or do BGREWRITEAOF and BGSAVE there"
)
ADVICE_FOR_REPLICAS = (
    "the files of its replicas have the text until they are rewritten too: do BGREWRITEAOF and BGSAVE on each"
)
ADVICE_FOR_STALE_REPLICAS = (
    "replicas do not have the deletion and may serve what is forgotten: connect them again or stop them for good, and "
    "forget once more; these are"
)
CAUGHT_UP_IN = 5.0
"""Seconds in which a replica must have the deletion."""
LOST_REPLICA = "one that was connected before"


@dataclass(frozen=True, slots=True)
class Erasure:
    """Whether the files of the server are without what is gone; where they are not, `advice` says what to do."""

    done: bool = False
    advice: str = ADVICE


def erase_leftovers(key: str, mark: str, *, rewrite: bool) -> Flow[Erasure]:
    """Erase what the server of the graph *key* keeps of it besides: streams, copies, and with *rewrite* files too.

    The stream of the latest queries is deleted once the query with *mark* is in it. Files have those of stores too.
    """
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
    except DatabaseError as error:  # what was removed is entered into the log all the same
        return Erasure(advice=f"{ADVICE} ({error})")


def find_stale_replicas(key: str) -> Flow[list[str]]:
    """Return the replicas of the server of the graph *key* that do not have what was written until now.

    A replica that is lost shows if the settings name it; else the server remembers for an hour (``repl-backlog-ttl``)
    that it had any.
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
    """Return the replicas that are behind that *offset* of a *history* of writes, and those that are cut off."""
    state: Row = yield from command("INFO", "replication", at=key)
    replicas = [value for name, value in state.items() if _REPLICA.fullmatch(name)]
    behind = [f"{replica['ip']}:{replica['port']}" for replica in replicas if replica["offset"] < offset]
    lost = [LOST_REPLICA] if state.get("repl_backlog_active") and not replicas else []
    try:
        own: Row | None = yield from command("INFO", "replication", at=key, replica=True)
    except DatabaseError:
        return behind, ["replica_url"]
    if own is not None and (own["master_replid"] != history or own["master_repl_offset"] < offset):
        is_connected = own.get("master_link_status") == "up"
        return (["replica_url"], []) if is_connected else (behind, ["replica_url"])
    return behind, lost


def _delete_stream(key: str, mark: str) -> Flow[None]:
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
    """Delete the stream of the latest queries on the graph *key*, except those of the last moments.

    FalkorDB writes them there about a second later.
    """
    yield from _try_command(key, "DEL", STREAM.format(key))


def _delete_copies(graphs: Sequence[str], key: str) -> Flow[None]:
    """Delete those of *graphs* that are copies which a killed export left."""
    if any(graph.startswith(PREFIX) for graph in graphs):
        for copy in orphans(graphs, (yield from command("CLIENT LIST", at=key))):
            yield from command("DEL", copy, at=copy)


def _rewrite_files(key: str) -> Flow[Erasure]:
    """Have the server of the graph *key* rewrite its files without what is gone."""
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
    """Wait until the server rewrites nothing, and return the state of its files."""
    since = time.monotonic()
    while True:
        state: Row = yield from command("INFO", "persistence", at=key)
        if not any(state.get(name) for name in BUSY):
            return state
        if time.monotonic() - since > LONGEST:
            raise QueryError(f"the server has rewritten its files for {LONGEST:.0f} s: look at its log")
        yield from work(lambda: time.sleep(PAUSE))


def _makes_snapshots(key: str) -> Flow[bool]:
    """Return whether the server makes snapshots, or does not say."""
    setting = yield from _try_command(key, "CONFIG", "GET", "save")
    return not isinstance(setting, dict) or bool(setting.get("save"))


def _try_command(key: str, *words: str) -> Flow[Any]:
    """Return the reply to a command at the server of *key*, or ``None`` where it does not know or allow it."""
    try:
        reply = yield from command(*words, at=key)
    except QueryError:
        return None
    return reply


# This process


def clear_process_caches() -> Flow[int]:
    """Clear the vectors, scores, answers, words and buffers of this process, and return the number of these caches.

    Those of other processes last until they end.
    """
    return (yield from work(_clear))


def _clear() -> int:
    re.purge()  # patterns may have names
    functions = find_cached_functions()
    for function in functions:
        function.cache_clear()
    return clear_caches() + len(functions)


def find_cached_functions() -> list[Any]:
    """Return the functions of this package that cache results for a number of texts."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("kg_memory") and module]
    return [value for module in modules for value in vars(module).values() if _is_bounded_cache(value)]


def _is_bounded_cache(value: Any) -> bool:
    parameters = getattr(value, "cache_parameters", None)
    return callable(parameters) and parameters()["maxsize"] is not None


# Checkpoints


class Checkpointer(Protocol):
    """A LangGraph checkpointer: it deletes all checkpoints of a thread by its id."""

    def delete_thread(self, thread_id: str) -> Any: ...

    async def adelete_thread(self, thread_id: str) -> Any: ...


def delete_checkpoints(checkpointer: Checkpointer, threads: Iterable[str]) -> Flow[None]:
    """Delete the checkpoints of *threads*."""
    for thread in threads:
        yield Call(partial(checkpointer.delete_thread, thread), partial(checkpointer.adelete_thread, thread))
