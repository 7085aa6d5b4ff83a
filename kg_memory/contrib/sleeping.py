"""Put idle namespaces to sleep (`Settings.sleep_after`): a dump of its graph replaces the graph in the same Redis key.

A sleeping namespace takes some 30 kB of memory in place of 5 MB. The next query wakes it: the server answers that the
key holds no graph, and the client restores the graph (`Database` does this) and repeats the query. As both are one
command on one key, no state lies between, whoever is killed.

A graph with over `MOST_VECTORS` vectors stays awake: `RESTORE` builds the vector indices on the server's main thread.
They cannot be dropped before and created after it: while an index is built, other queries miss nodes, and writes that
depend on these are lost.
"""

from __future__ import annotations

import atexit
import logging
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import redis

from kg_memory.errors import InputError, KGMemoryError, QueryError
from kg_memory.falkor import schema, wire
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.memory._verb import Engine
from kg_memory.memory.episodes import UNREAD
from kg_memory.runtime.effects import work
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error

logger = logging.getLogger("kg_memory")
MOST_VECTORS = 600
"""The most vectors of a graph that may sleep. To wake 500 vectors of 384 dimensions blocks the server for 35 ms."""
PASSES = 4
"""How often the namespaces are looked at in `Settings.sleep_after`, but at least once in `LONGEST_PAUSE`."""
LONGEST_PAUSE = 60.0
READINESS = """
MATCH (m:Meta {id: 'schema'})
OPTIONAL MATCH (e:Episode) WHERE NOT e.status IN ['done', 'skipped'] OR e.expires_at > 0
WITH m, count(e) AS pending
OPTIONAL MATCH (n) WHERE n.embedding IS NOT NULL
RETURN m.model AS model, pending, count(n) AS vectors
"""
ANY_UNREAD = """
MATCH (e:Episode) WHERE e.status IN $statuses
RETURN e.id AS id LIMIT 1
"""
# FalkorDB can crash or freeze, or lose properties, when a graph is replaced while a query on it runs. So no query
# may run on the server (it would block its client), or else no query may have begun on the graph for a minute.
SLEEP = """
if redis.call('TYPE', KEYS[1]).ok ~= 'graphdata' then return 0 end
local idle = tonumber(redis.pcall('OBJECT', 'IDLETIME', KEYS[1]))
local is_free = string.find(tostring(redis.pcall('INFO', 'clients')), 'blocked_clients:0', 1, true)
if not (is_free or idle and idle >= 60) then return 0 end
redis.call('SET', KEYS[1], redis.call('DUMP', KEYS[1]))
return 1
"""


def why_awake(database: Database, namespace: str) -> str:
    """Return why *namespace* cannot sleep, such as "it has unread episodes"; "" if it can, sleeps or does not exist."""
    for row in _ask_unnoticed(database, namespace, READINESS):
        if row["pending"]:
            return "it has episodes that are not read yet, or that expire"
        if row["model"] == schema.UNDER_WAY:
            return "it is being embedded anew"
        if row["vectors"] > MOST_VECTORS:
            return f"it has {row['vectors']:,} vectors, over {MOST_VECTORS}: to wake it would block the server"
    return ""


def sleep(database: Database, namespace: str) -> Flow[bool]:
    """Pack the graph of *namespace* into a compressed string; return whether it was unpacked before.

    Errors: `InputError` if that is not possible now.
    """
    return work(partial(_sleep, database, namespace))


def _sleep(database: Database, namespace: str) -> bool:
    key = graph_key(namespace)
    if database.command("TYPE", key, at=key) != "graphdata":
        return False
    with database.map_errors(key), database.client(key).pipeline() as transaction, suppress(redis.WatchError):
        transaction.watch(key)  # from here on, a write prevents the sleep
        if reason := why_awake(database, namespace):
            raise InputError(f"namespace {namespace!r} cannot sleep: {reason}")
        transaction.multi()
        transaction.eval(SLEEP, 1, key)
        if transaction.execute()[0]:
            return True
    raise InputError(f"namespace {namespace!r} cannot sleep: it is in use; try again when it is idle")


def has_unread(database: Database, namespace: str) -> bool:
    """Return whether *namespace* has unread episodes; this does not count as a use, so that `Sweeper` may pack it."""
    return bool(_ask_unnoticed(database, namespace, ANY_UNREAD, statuses=UNREAD))


def _ask_unnoticed(database: Database, namespace: str, cypher: str, **params: Any) -> list[wire.Row]:
    """Return the rows of a query that does not count as a use of the graph; [] if it sleeps or is missing."""
    key = graph_key(namespace)
    with suppress(wire.NamespaceAsleep), database.map_errors(key), database.client(key).client() as connection:
        with suppress(redis.exceptions.NoPermissionError):
            connection.client_no_touch("ON")
        try:
            return wire.decode_rows(connection.execute_command(*wire.query_command(key, cypher, params, write=False)))
        finally:
            with suppress(redis.RedisError):
                connection.client_no_touch("OFF")
    return []


class Sweeper:
    """Background thread that packs the graphs of namespaces that were not used for *after* seconds."""

    def __init__(self, engine: Engine, after: float) -> None:
        """Start the thread, which is also stopped when the process exits."""
        self._database, self._after = engine.driver.store.database, after
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kg-memory sweeper", daemon=True)
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; a namespace that is being put to sleep is finished first."""
        self._stopped.set()
        atexit.unregister(self.stop)
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(min(self._after / PASSES, LONGEST_PAUSE)):
            try:
                # Only once somebody uses the database: this would start an embedded server.
                for name in self._database.namespaces("awake", reachable=True) if self._database.generation else ():
                    key = graph_key(name)
                    idle = self._database.command("OBJECT", "IDLETIME", key, at=key)
                    if idle is not None and idle >= self._after and not self._stopped.is_set():
                        with suppress(InputError, QueryError):
                            _sleep(self._database, name)
            except KGMemoryError as error:
                logger.warning("could not put idle namespaces to sleep, retrying later: %s", describe_error(error))
