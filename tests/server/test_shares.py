"""Limits of each key, jumps of the clock, statuses of errors, and local requests."""

import gzip
import json
import time
from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest
from redis import exceptions
from starlette.requests import Request

from kg_memory import GraphMemory, errors
from kg_memory.contrib.server.access import is_local
from kg_memory.contrib.server.problems import STATUSES
from kg_memory.contrib.server.service import Options
from kg_memory.falkor.wire import translate_error
from kg_memory.runtime import driver
from tests.server.conftest import Serving
from tests.waiting import until

HOUR = 3_600_000_000
PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INIT = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def small(offline: GraphMemory) -> Iterator[Serving]:
    options = Options(max_streams=4, max_streams_of_key=2, max_sessions_of_key=2, session_seconds=2, rate=10_000)
    with Serving(offline, options) as running:
        yield running


def test_streams_of_one_key_are_limited(client, small):
    greedy, admin = (client(scope, base_url=small.url) for scope in ("read", "admin"))
    path = "/v1/namespaces/streams/events"
    with greedy.stream("GET", path) as first, greedy.stream("GET", path) as second:
        assert (first.status_code, second.status_code) == (200, 200)
        refused = greedy.get(path)
        assert refused.status_code == 429
        assert "at most 2 streams" in refused.json()["detail"]
        with admin.stream("GET", path) as other:
            assert other.status_code == 200
            assert next(other.iter_text())

    def status() -> int:
        with greedy.stream("GET", path) as again:
            return again.status_code

    until(lambda: status() == 200)  # the server notices the closed streams


def begin(http: httpx.Client) -> httpx.Response:
    return http.post("/v1/mcp?namespace=mcp", json=INIT, headers=ACCEPT)


def test_mcp_sessions_of_one_key_are_limited(client, small):
    greedy, admin = (client(scope, base_url=small.url) for scope in ("read", "admin"))
    assert [begin(greedy).status_code for _ in range(3)] == [200, 200, 429]
    assert "at most 2 sessions" in begin(greedy).json()["detail"]
    assert begin(admin).status_code == 200
    until(lambda: begin(greedy).status_code != 429)  # idle sessions end


@pytest.mark.parametrize("packed", [False, True])
def test_import_over_http_refuses_items(client, offline, tmp_path, packed):
    offline.add("I live in Oslo.", speaker="Ann", namespace="papers")
    file = tmp_path / "memory.jsonl"
    offline.data.export(file, namespace="papers")
    first, *rest = file.read_text().splitlines(keepends=True)
    forged = "".join([json.dumps({**json.loads(first), "holds": "items"}) + "\n", *rest]).encode()
    body = gzip.compress(forged) if packed else forged
    answer = client("admin").post("/v1/namespaces/papers/import?replace=true", content=body)
    assert answer.status_code == 422
    assert "must hold a memory, got 'items'" in answer.json()["detail"]
    assert offline.episodes.list(namespace="papers")


def subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("kg_memory"):
            yield one
        yield from subclasses(one)


def test_errors_have_a_status_and_database_errors_have_503():
    for kind in {*subclasses(errors.KGMemoryError)}:
        status = next((status for base, status in STATUSES if issubclass(kind, base)), None)
        assert status is not None, kind
        assert not issubclass(kind, errors.DatabaseError) or status == 503, kind


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
        exceptions.ResponseError("MASTERDOWN Link with MASTER is down"),
        exceptions.ResponseError("Max pending queries exceeded"),
        exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        exceptions.ReadOnlyError("You can't write against a read only replica."),
        exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    ],
)
def test_write_refusals_of_database_become_unavailable(error):
    translated = translate_error(error, lambda: "start it")
    assert isinstance(translated, errors.DatabaseUnavailable)
    assert str(error) in str(translated)


def test_answer_503_contains_the_reason(client, offline, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise errors.DatabaseStartError("the disk is full; free some space")

    http = client("admin")
    monkeypatch.setattr(type(offline.driver), "_to_calls", fail)
    for answer in (http.get("/v1/namespaces/x/facts"), http.post("/v1/namespaces/x/episodes", json={"content": "A."})):
        assert (answer.status_code, "disk is full" in answer.text) == (503, True)
        assert answer.headers["retry-after"]


def test_clock_jump_hides_no_facts_or_episodes(client, offline, monkeypatch):
    http, root = client("admin"), "/v1/namespaces/jump"
    real = time.time_ns
    fact = {"subject": "Ann", "predicate": "KNOWS"}
    monkeypatch.setattr(driver.time, "time_ns", lambda: real() + 24 * HOUR * 1000)
    http.post(f"{root}/facts", json={**fact, "object": "Bob"})
    monkeypatch.setattr(driver.time, "time_ns", real)
    http.post(f"{root}/facts", json={**fact, "object": "Cid"})
    http.post(f"{root}/episodes", json={"content": "I live in Bergen.", "speaker": "Ann"})
    listed = http.get(f"{root}/facts").json()["items"]
    assert {name for item in listed for name in item["objects"]} >= {"Bob", "Cid"}
    episodes = http.get(f"{root}/episodes").json()["items"]
    ahead = [one for one in episodes if one["at"] > time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))]
    assert len(ahead) == 1, "only the fact added while the clock was ahead"
    moment = http.get("/explorer/moment", params={"text": "now"}).json()["at"]
    assert moment * 1000 > real() // 1000 + HOUR, "the page shows the same time as the lists"


@pytest.mark.parametrize(
    ("client_host", "headers", "trusts", "local"),
    [
        ("127.0.0.1", {}, False, True),
        ("203.0.113.9", {}, False, False),
        ("203.0.113.9", {"x-forwarded-for": "127.0.0.1"}, False, False),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, False, False),
        ("127.0.0.1", {}, True, False),
        ("127.0.0.1", {"x-forwarded-for": "203.0.113.9"}, True, False),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1, 203.0.113.9"}, True, False),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, True, True),
        ("203.0.113.9", {"x-forwarded-for": "127.0.0.1"}, True, False),
    ],
)
def test_request_is_local_by_socket_unless_proxy_is_trusted(client_host, headers, trusts, local):
    options = SimpleNamespace(state=SimpleNamespace(service=SimpleNamespace(options=Options(trust_proxy=trusts))))
    sent = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": sent, "app": options}
    assert is_local(Request({**scope, "client": (client_host, 1), "scheme": "http"})) is local


def test_server_behind_proxy_requires_a_key(offline):
    with Serving(offline, Options(trust_proxy=True)) as proxied:
        assert httpx.get(f"{proxied.url}/v1/namespaces").status_code == 401
        near = {"X-Forwarded-For": "127.0.0.1"}
        assert httpx.get(f"{proxied.url}/v1/namespaces", headers=near).status_code == 200
