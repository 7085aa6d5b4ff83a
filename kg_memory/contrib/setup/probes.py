"""``kg-memory doctor --server URL``: try on a server, in a scratch graph, all that kg-memory depends on.

The probes, the rights and the settings are in ``probes.toml``, which describes its format.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from kg_memory.contrib.setup.doctor import Check, attempt
from kg_memory.errors import DatabaseForbidden, DatabaseUnavailable, KGMemoryError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.graph_swap import shadow_graph
from kg_memory.falkor.schema import INDEX_STATES, WAIT, index_lock, vector_index
from kg_memory.maintenance.forgetting.erase import STREAM
from kg_memory.memory.open import NamedServer
from kg_memory.text import read_table

TABLE = read_table(__package__, "probes.toml")
PARAMETERS: dict[str, Any] = {**TABLE["parameters"], "numbers": list(range(20_000)), "long": "wörd " * 200_000}
PATIENCE = 60.0
"""Seconds for one query."""
INDEXED_IN = 10.0
"""Seconds for an index of a few nodes."""
CLIENTS = 4
_WRITES = ("CREATE", "MERGE", "SET ", "DELETE", "DROP")


def check_server(url: str) -> Iterator[Check]:
    """Check version, rights and settings of the server at *url*, run all probes there, and yield the results."""
    key = f"kg-doctor:{uuid4().hex}"
    with closing(Database(NamedServer(url), timeout=PATIENCE)) as database:
        for what, look in (("server", _version), ("rights", _check_rights)):
            yield (check := attempt(what, partial(look, database, key)))
            if check.state == "wrong":
                return
        yield from _check_settings(database, key)
        for place, probe in enumerate(TABLE["probe"]):
            try:
                found = _run_probe(database, key, probe)
            except DatabaseForbidden as error:
                yield Check(probe["name"], "note", "not run: this user may not", str(error))
                continue
            except DatabaseUnavailable as error:
                left = len(TABLE["probe"]) - place - 1
                yield Check(probe["name"], "wrong", f"no answer; {left} probes not run", f"{probe['breaks']}: {error}")
                return
            finally:
                with suppress(KGMemoryError):
                    database.command("DEL", key, at=key)
                    database.command("DEL", STREAM.format(key), at=key)
            yield Check(
                probe["name"], "wrong" if found else "ok", found or "as expected", probe["breaks"] if found else ""
            )


def _version(database: Database, _: str) -> Check:
    [address, version] = next(iter(database.versions().items()))
    return Check("server", "ok", f"FalkorDB {version // 10000}.{version // 100 % 100}.{version % 100} at {address}")


def _check_rights(database: Database, key: str) -> Check:
    refused = list[str]()
    for command in TABLE["rights"]["commands"]:
        try:
            database.command(*shlex.split(command.replace("$key", key)), at=key)
        except DatabaseForbidden as error:
            refused.append((str(error).partition("'")[2].partition("'")[0] or command.split()[0]).lower())
        except KGMemoryError:  # WRONGTYPE, or the like: allowed
            continue
    if refused:
        mend = f"grant this user {' '.join(f'+{name}' for name in refused)} and the keys ~kg*, see docs/operations.md"
        return Check("rights", "wrong", f"refused: {', '.join(refused)}", mend)
    return Check("rights", "ok", "to add and search")


def _check_settings(database: Database, key: str) -> Iterator[Check]:
    """Yield a check of the server's settings for each group with unfit values, or one if all are fit.

    If the user may not read the settings, a single check says so.
    """
    try:
        values: dict[str, Any] = dict(database.command("GRAPH.CONFIG", "GET", "*", at=key))
        memory: Mapping[str, Any] = database.command("INFO", "memory", at=key)
    except KGMemoryError as error:
        yield Check("settings", "note", "not readable", f"{error}; or have the administrator run this command")
        return
    limit = int(memory["maxmemory"])
    if limit:
        values |= {"maxmemory_policy": memory["maxmemory_policy"], "free_memory": limit - int(memory["used_memory"])}
    all_fit = True
    for setting in TABLE["settings"]:
        fit, least = setting.get("fit"), setting.get("least", math.inf)
        wrong = {name: values[name] for name in setting["names"] if values.get(name, fit) != fit}
        unfit = [f"{name} {now}" for name, now in wrong.items() if not (isinstance(now, int) and now >= least)]
        if unfit:
            all_fit = False
            yield Check(setting["about"], setting["state"], ", ".join(unfit), setting["mend"])
    if all_fit:
        yield Check("settings", "ok", "as recommended")


def _run_probe(database: Database, key: str, probe: Mapping[str, Any]) -> str:
    """Run *probe*, a test of the server, in a new graph *key*; return ``""`` if it passes, else the failure as text."""
    database.query(key, "RETURN 1", {}, write=True)
    rows: list[list[Any]] = []
    for step in probe["steps"]:
        query, refused = step.removeprefix("fails: "), step.startswith("fails: ")
        try:
            rows = _run_step(database, key, query)
        except (DatabaseForbidden, DatabaseUnavailable):
            raise
        except KGMemoryError as error:
            if not refused or probe["error"] not in str(error):
                return str(error)
        else:
            if refused:
                return f"not refused: {query}"
    expected = probe["expected"]
    if isinstance(expected, int):
        return "" if len(rows) == expected else f"{len(rows)} rows, expected {expected}"
    return "" if _to_comparable(rows) == _to_comparable(expected) else f"{rows}, expected {expected}"


def _run_step(database: Database, key: str, step: str) -> list[list[Any]]:
    """Run one *step* of a test on the graph *key*, wait until its indices are built, and return the rows."""
    rows: list[list[Any]] = []
    if step.startswith("-- "):
        STEPS[step.removeprefix("-- ")](database, key)
    elif step.startswith("redis: "):
        database.command(*shlex.split(step.removeprefix("redis: ").replace("$key", key)), at=key)
    else:
        params = {name: value for name, value in PARAMETERS.items() if f"${name}" in step}
        write = any(word in step for word in _WRITES)
        rows = [list(row.values()) for row in database.query(key, step, params, write=write)]
    until = time.monotonic() + INDEXED_IN
    while any(row["status"] != "OPERATIONAL" for row in database.query(key, INDEX_STATES, {}, write=False)):
        if time.monotonic() > until:
            break
        time.sleep(WAIT)
    return rows


def _to_comparable(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list):
        return [_to_comparable(each) for each in value]
    return _to_comparable(PARAMETERS[value[1:]]) if isinstance(value, str) and value[1:] in PARAMETERS else value


def _reload(database: Database, key: str) -> None:
    client = database.client(key)
    with database.map_errors(key):
        dump = client.dump(key)
        client.delete(key)
        client.restore(key, 0, dump)


def _copy(database: Database, key: str) -> None:
    with shadow_graph(database, key) as shadow:
        shadow.copy(key)
        shadow.replace(key)


def _watch(database: Database, key: str) -> None:
    with shadow_graph(database, key) as shadow:
        shadow.copy(key)
        shadow.watch(key)
        database.query(key, "MATCH (n:N) SET n.n = 2", {}, write=True)
        shadow.replace(key)


def _race(database: Database, key: str) -> None:
    merge = "UNWIND range(1, 30) AS id MERGE (n:N {id: id}) SET n.x = coalesce(n.x, 0) + 1"
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: database.query(key, merge, {}, write=True), range(CLIENTS)))


def _lock(database: Database, key: str) -> None:
    with index_lock(database, key):
        pass


STEPS: Mapping[str, Callable[[Database, str], object]] = {
    "reload": _reload,
    "copy": _copy,
    "watch": _watch,
    "race": _race,
    "lock": _lock,
    "vectors": lambda database, key: database.query(key, vector_index("V", 4), {}, write=True),
}
"""The steps that are no query, by name."""
