"""What the server keeps besides its graphs: streams and logs of queries, the append-only file, snapshots."""

from __future__ import annotations

import time
from typing import Any

from kg_memory.errors import DatabaseError, QueryError
from kg_memory.falkor.graph_swap import orphans
from kg_memory.runtime.effects import command, work
from kg_memory.runtime.flow import Flow

STREAM = "telemetry{{{}}}"
"""Where FalkorDB keeps the latest queries on a graph with their parameters, unless CMD_INFO is off."""
PAUSE, LONGEST_STREAM, LONGEST = 0.02, 3.0, 600.0
BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
LEFT = (
    "the text is still in the append-only file or the snapshots of the server until they are rewritten: forget with "
    "erase=True, or do BGREWRITEAOF and BGSAVE there"
)
REPLICAS = "the files of its replicas have the text until they are rewritten too: do BGREWRITEAOF and BGSAVE on each"


def swept(key: str, mark: str) -> Flow[None]:
    """Delete copies of graphs that a killed export left, and the stream of the latest queries on the graph *key*.

    The stream is deleted once the query with *mark* is in it.
    """
    for copy in orphans((yield from command("GRAPH.LIST")), (yield from command("CLIENT LIST"))):
        yield from command("DEL", copy)
    stream = STREAM.format(key)
    told = yield from _asked("GRAPH.CONFIG", "GET", "CMD_INFO")
    if told is None or told[1]:
        yield from command("GRAPH.RO_QUERY", key, f'CYPHER mark="{mark}" RETURN $mark')
        since = time.monotonic()
        while time.monotonic() - since < LONGEST_STREAM and (yield from command("EXISTS", key)):
            if mark in str((yield from command("XREVRANGE", stream, "+", "-", "COUNT", 50))):
                break
            yield from work(lambda: time.sleep(PAUSE))
    yield from command("DEL", stream)


def erased(key: str) -> Flow[tuple[bool, str]]:
    """Have the server rewrite its files without what is gone; tell whether it did, and else what to do."""
    try:
        yield from _asked("GRAPH.SLOWLOG", key, "RESET")
        yield from command("SLOWLOG", "RESET")
        state = yield from _idle()
        if state["aof_enabled"]:
            state = yield from _rewritten("BGREWRITEAOF")
        if (yield from _snapshots()):
            state = yield from _rewritten("BGSAVE")
        replicas = (yield from command("INFO", "replication")).get("connected_slaves", 0)
    except DatabaseError as error:
        return False, f"{LEFT} ({error})"
    done = state.get("aof_last_bgrewrite_status") == "ok" and state.get("rdb_last_bgsave_status") == "ok"
    return (True, "") if done and not replicas else (False, REPLICAS if done else LEFT)


def _rewritten(how: str) -> Flow[dict[str, Any]]:
    yield from command(how)
    state = yield from _idle()
    return state


def _idle() -> Flow[dict[str, Any]]:
    """Wait until the server rewrites nothing, and return the state of its files."""
    since = time.monotonic()
    while True:
        state: dict[str, Any] = yield from command("INFO", "persistence")
        if not any(state.get(name) for name in BUSY):
            return state
        if time.monotonic() - since > LONGEST:
            raise QueryError(f"the server has rewritten its files for {LONGEST:.0f} s: look at its log")
        yield from work(lambda: time.sleep(PAUSE))


def _snapshots() -> Flow[bool]:
    """Tell whether the server makes snapshots, or does not say."""
    told = yield from _asked("CONFIG", "GET", "save")
    return not isinstance(told, dict) or bool(told.get("save"))


def _asked(*words: str) -> Flow[Any]:
    """Return the reply to a command that a server may not allow, or not know: then none."""
    try:
        reply = yield from command(*words)
    except QueryError:
        return None
    return reply
