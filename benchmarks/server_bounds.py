"""Test whether the largest requests that the server allows delay others, or exhaust its memory.

``python -m benchmarks.server_bounds`` (from the root of the repository) sends the worst allowed body or parameters to
each route and MCP tool, 20 at once, while other connections request ``/healthz`` and a plain search with another key.
It prints a row for each: the statuses, the slowest of these two in milliseconds, and the growth of the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from benchmarks.opening import kept, opened, write
from benchmarks.server import CITIES, served
from kg_memory.contrib.server.keys import KeyRing
from kg_memory.contrib.server.mcp.server import TOOLS
from kg_memory.contrib.server.parameters import FEW, FEW_OTHERS, SHORT, most_bytes
from kg_memory.validation import MOST_NAMESPACES

AT_ONCE = 20
PAUSE = 0.02
WARM_UP = 3.0
"""Seconds of plain searches before the first attack: the first search of a server imports modules and loads a model."""
SLOW = re.compile(r"episodes.save(_many)? valid|facts.add_many valid|data.import")
"""Attacks that fill the memory and its reader for minutes, and are run last."""
SPAWN = get_context("spawn")
NAMESPACE, OTHER = "bench", "other"
OTHERS = [f"{NAMESPACE}-{number}" for number in range(1, MOST_NAMESPACES)]
"""As many further namespaces as one search may read."""
ROOT = f"/v1/namespaces/{NAMESPACE}"
WORDS = "When did I move before ßßßß in 2019 and who ".split()
MCP = f"/v1/mcp?namespace={NAMESPACE}&profile=full"
JOINED = MCP + "".join(f"&recall_from={name}" for name in OTHERS)
"""The same for a session that searches as many namespaces as are allowed."""
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
SENSIBLE = dict.fromkeys("as_of believed_at at valid_at invalid_at expires_at since until during".split()) | {
    "by": None,
    "reason": "x" * 2000,
    "subject": "Person1",
    "object": [f"Person{number}" for number in range(20)],
    "span": None,
    "recipe": None,
    "template": None,
    "episodes": None,
    "center": [f"Person{number}" for number in range(20)],
    "choice": "accept",
    "recall_from": OTHERS,
}
"""Values without which a request would be rejected early; None leaves the field out."""
Attack = tuple[str, str, dict[str, Any]]


def long_text(length: int) -> str:
    """Return a question of about *length* characters."""
    return ((" ".join(WORDS) + " ") * (length // 40))[:length]


def worst_value(name: str, schema: dict[str, Any]) -> Any:
    """Return a long value that fits *schema*."""
    options = schema.get("anyOf") or [schema]
    kinds = {one.get("type"): one for one in options}
    if name in SENSIBLE:
        return SENSIBLE[name]
    if "array" in kinds:
        return [f"Person{number}" for number in range(1000)]
    if name == "where":
        return {"$or": [{"speaker": [f"s{number}" for number in range(20)]} for _ in range(24)]}
    if "string" in kinds and "enum" not in kinds["string"] and "format" not in kinds["string"]:
        return long_text(9_900)
    return schema.get("maximum") or schema.get("default")


def bodies(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield (kind, body) of bodies that are expensive for a route.

    The kinds: a valid one, the largest that does not wait for its turn, unknown fields, and nested lists.
    """
    root = path.removeprefix(ROOT)
    valid = {name: worst_value(name, one) for name, one in schema.get("properties", {}).items()}
    valid = {name: value for name, value in valid.items() if value is not None}
    if root in ("/episodes/batch", "/usage/estimate"):
        valid = {"episodes": [{"content": f"I like tea {number}. " * 300, "speaker": "Ann"} for number in range(1000)]}
    elif root == "/episodes":
        valid = {"content": long_text(990_000), "speaker": "Ann"}
        record = "[" + "[]," * 45_000 + "[]]"
        yield "record", json.dumps({"content": record, "kind": "json"}).encode()
    elif root == "/facts/batch":
        valid = {"rows": [{"subject": f"N{n}", "predicate": "LIKES", "object": f"O{n % 9}"} for n in range(1000)]}
    while len(json.dumps(valid)) > (most_bytes(path, 10_000_000) or 0):  # the longest that is allowed
        valid = {name: one[: len(one) // 2] if isinstance(one, str | list) else one for name, one in valid.items()}
    large = root in ("/episodes", "/episodes/batch", "/facts/batch", "/usage/estimate")
    yield "valid", json.dumps(valid).encode()
    if "question" in valid:
        unqueued = {"question": long_text(SHORT - 300), "limit": FEW, "recall_from": OTHERS[:FEW_OTHERS]}
        yield "unqueued", json.dumps({key: one for key, one in unqueued.items() if key in valid}).encode()
    for first in list(schema.get("properties", {"question": {}}))[:1]:
        yield "lists", f'{{"{first}": ['.encode() + b"[]," * (3_000_000 if large else 30_000) + b"[]]}"
    yield "unknown", json.dumps({f"f{number}": 1 for number in range(20_000 if large else 6_000)}).encode()


def attacks(description: dict[str, Any]) -> Iterator[tuple[str, Attack]]:
    """Yield (name, request) for each expensive request to the routes in an OpenAPI *description*."""
    schemas = description["components"]["schemas"]
    for path, methods in description["paths"].items():
        for method, about in methods.items():
            operation, content = about["operationId"], about.get("requestBody", {}).get("content", {})
            if operation in ("events", "server.health"):
                continue
            full = path.replace("{namespace}", NAMESPACE)
            for name, value in (("name", "Person1"), ("origin", "mem0"), ("entity_id", "Person1")):
                full = full.replace(f"{{{name}}}", value)
            full = full.replace("{", "").replace("}", "")
            query = {
                one["name"]: worst_query(one["name"], operation)
                for one in about.get("parameters", ())
                if one["in"] == "query" and worst_query(one["name"], operation) is not None
            }
            json_schema = content.get("application/json", {}).get("schema")
            if json_schema:
                schema = schemas[json_schema["$ref"].rpartition("/")[2]]
                for kind, body in bodies(full, schema):
                    how = {"content": body, "headers": {"Content-Type": "application/json"}, "params": query}
                    yield f"{operation} {kind}", (method.upper(), full, how)
            elif operation == "data.import_from":
                records = b"[" + b",".join(b'{"memory": "I like tea %d."}' % n for n in range(5000)) + b"]"
                yield f"{operation} records", (method.upper(), full, {"content": records})
                nested = b'{"results": [{"memory": [' + b"[]," * 6_000_000 + b"[]]}]}"
                yield f"{operation} lists", (method.upper(), full, {"content": nested})
            else:
                yield operation, (method.upper(), full, {"params": query})


def other_attacks() -> Iterator[tuple[str, Attack]]:
    """Yield (name, request) for each expensive request to undescribed routes and MCP tools."""
    for path in ("explorer/columns", "explorer/doubts?as_of=1&believed_at=1"):
        yield path.partition("?")[0], ("GET", f"{ROOT}/{path}", {})
    for name, tool in TOOLS.items():
        properties = tool.arguments.model_json_schema().get("properties", {})
        given = {key: worst_argument(key, one) for key, one in properties.items()}
        arguments = {key: value for key, value in given.items() if value is not None}
        for kind, sent in (("valid", arguments), ("unknown", {f"f{number}": 1 for number in range(20_000)})):
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": sent}}
            yield f"mcp {name} {kind}", ("POST", MCP, {"json": call})
            if name == "recall":
                yield f"mcp {name} {kind} joined", ("POST", JOINED, {"json": call})


def worst_query(name: str, operation: str) -> Any:
    """Return the most expensive value of a query parameter; None leaves it out."""
    most: dict[str, Any] = {"limit": 1000, "steps": 6, "depth": 6, "recall_from": OTHERS}
    most |= {"namespace": NAMESPACE, "name": "Person1", "target": "Person399"}
    if operation.startswith("graph"):
        most["limit"] = 10_000
    if name == "since" or (name == "like" and operation == "entities.list"):
        return "2020-01-01" if name == "since" else "person"
    return most.get(name, "x" * 100 if name == "first" else None)


def worst_argument(name: str, schema: dict[str, Any]) -> Any:
    """Return a long argument of an MCP tool; None leaves it out."""
    if name in ("name", "fact", "id", "first", "second", "since", "as_of", "believed_at", "at", "until"):
        return {"name": "Person1", "since": "2020", "first": "2020-01-01", "second": "now"}.get(name)
    return long_text(49_000) if "string" in json.dumps(schema) else None


def resident(pid: int) -> float:
    """Return the memory of a server in MB, with that of the process that reads for it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    statuses = [Path(f"/proc/{each}/status").read_text() for each in (pid, *children)]
    return sum(int(size) / 1024 for status in statuses for size in re.findall(r"VmRSS:\s+(\d+)", status))


def watch(url: str, secret: str, figures: Connection) -> None:
    """Request ``/healthz`` and a plain search in turns; send the slowest time of each (ms) over *figures* when asked.

    This runs in a separate process, so that the attacker's work is not measured.
    """
    search, slowest = f"/v1/namespaces/{OTHER}/search", [0.0, 0.0]
    with httpx.Client(base_url=url, timeout=600, headers={"X-API-Key": secret}) as client:
        asks = (("GET", "/healthz", None), ("POST", search, {"question": "Where does Ann live?"}))
        while True:
            for which, (method, path, body) in enumerate(asks):
                began = time.perf_counter()
                client.request(method, path, json=body).raise_for_status()
                slowest[which] = max(slowest[which], 1000 * (time.perf_counter() - began))
            if figures.poll(PAUSE):
                figures.recv()
                figures.send(slowest)
                slowest = [0.0, 0.0]


async def try_attack(url: str, pid: int, secret: str, attack: Attack) -> dict[str, Any]:
    """Return the statuses, seconds, largest answer and memory growth of one attack."""
    method, path, how = attack
    how = {**how, "headers": {**MCP_HEADERS, **how.get("headers", {}), "X-API-Key": secret}}
    before, statuses, sizes = resident(pid), Counter[str](), [0]

    async def send(client: httpx.AsyncClient) -> None:
        called = how if "json" not in how else {**how, "json": {**how["json"], "id": next(IDS)}}
        try:
            answer = await client.request(method, path, **called)
            statuses[str(answer.status_code)] += 1
            sizes.append(len(answer.content))
        except httpx.HTTPError as error:
            statuses[type(error).__name__] += 1

    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        began = time.perf_counter()
        peak = asyncio.create_task(watch_memory(pid, before))
        await asyncio.gather(*(send(client) for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - began
        peak.cancel()
    return {
        "statuses": dict(statuses),
        "seconds": round(seconds, 2),
        "answer_kb": round(max(sizes) / 1000),
        "grown_mb": round(max(PEAKS.pop(pid, 0), resident(pid) - before)),
    }


def begin_session(url: str, secret: str) -> None:
    """Start an MCP session, for later calls of tools."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bounds", "version": "1"}}
    MCP_HEADERS["X-API-Key"] = secret
    with httpx.Client(base_url=url, timeout=60) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        MCP_HEADERS["Mcp-Session-Id"] = client.post(MCP, json=body, headers=MCP_HEADERS).headers["mcp-session-id"]
        client.post(MCP, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=MCP_HEADERS)


def try_watched(url: str, pid: int, secret: str, attack: Attack, watcher: Connection) -> dict[str, Any]:
    """Return the figures of one attack, with the slowest times of other requests."""
    watcher.send("start")
    watcher.recv()
    row = asyncio.run(try_attack(url, pid, secret, attack))
    time.sleep(0.2)
    watcher.send("stop")
    health, search = watcher.recv()
    return row | {"health_ms": round(health), "search_ms": round(search)}


PEAKS: dict[int, float] = {}
IDS = count(1)
"""Ids of MCP requests, by which answers are assigned to requests."""


async def watch_memory(pid: int, before: float) -> None:
    """Record the largest growth of a process's memory in `PEAKS`, until cancelled."""
    while True:
        PEAKS[pid] = max(PEAKS.get(pid, 0), resident(pid) - before)
        await asyncio.sleep(PAUSE)


def main() -> None:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=2000)
    parser.add_argument("--only", default="", help="only attacks whose names match this regular expression")
    parser.add_argument("--folder", type=Path, help="keep the database here")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    chosen = parser.parse_args()
    rows = [
        {"subject": f"Person{n % 400}", "predicate": "KNOWS", "object": f"Person{(n * 7 + 1) % 400}"}
        if n % 2
        else {"subject": f"Person{n % 400}", "predicate": "LIVES_IN", "object": CITIES[n % len(CITIES)]}
        for n in range(chosen.facts)
    ]
    with kept(chosen.folder) as folder, opened(folder) as memory:
        memory.facts.add_many(rows, namespace=NAMESPACE)
        for name in OTHERS:
            memory.facts.add_many(rows[: chosen.facts // 10], namespace=name)
        memory.facts.add_many([{"subject": "Ann", "predicate": "LIVES_IN", "object": "Oslo"}], namespace=OTHER)
        ring = KeyRing(memory.driver.store.database)
        _, attacker = ring.create("attacker", ["admin"], [NAMESPACE, *OTHERS])
        _, other = ring.create("other", ["read"], [OTHER])
        figures: dict[str, Any] = {}
        with served(folder) as (port, pid):
            url = f"http://127.0.0.1:{port}"
            description = httpx.get(f"{url}/openapi.json").json()
            watcher, figures_of_watcher = SPAWN.Pipe()
            watching = SPAWN.Process(target=watch, args=(url, other, figures_of_watcher), daemon=True)
            watching.start()
            print(f"{'attack':<34}{'seconds':>8}{'health':>8}{'search':>8}{'answer kB':>10}{'MB':>6}  statuses")
            begin_session(url, attacker)
            time.sleep(WARM_UP)
            slow_last = sorted(chain(attacks(description), other_attacks()), key=lambda one: bool(SLOW.match(one[0])))
            for name, attack in slow_last:
                if not re.search(chosen.only, name):
                    continue
                row = figures[name] = try_watched(url, pid, attacker, attack, watcher)
                print(
                    f"{name:<34}{row['seconds']:>8}{row['health_ms']:>8}{row['search_ms']:>8}{row['answer_kb']:>10}"
                    f"{row['grown_mb']:>6}  {row['statuses']}",
                    flush=True,
                )
            watching.terminate()
        write(figures, chosen.out)


if __name__ == "__main__":
    main()
