"""The cost of a request is limited before work starts: by its key, its size, its values and its turn."""

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kg_memory.contrib.server import answers, endpoints, gate, limits
from kg_memory.contrib.server.gate import LARGE, LARGE_AT_ONCE, MOST_VALUES, MOST_VALUES_OF_SMALL, RequestGate
from kg_memory.contrib.server.keys import ApiKey
from kg_memory.contrib.server.limits import Job, Jobs
from kg_memory.contrib.server.mcp.tool import LAUNCHED, LONGEST_CONTENT
from kg_memory.contrib.server.parameters import SMALL
from kg_memory.contrib.server.problems import MOST_ERRORS, ProblemError
from kg_memory.contrib.server.service import Options
from kg_memory.falkor.schema import MEMORY
from kg_memory.maintenance.transfer.records import FORMAT
from tests.server.conftest import Serving
from tests.waiting import until

SMALL_ANSWER = 20_000
ROOT = "/v1/namespaces/ann"
HOSTILE = {
    "integers": lambda names: {name: [1] * 20_000 for name in names},
    "lists": lambda names: {name: [[]] * 20_000 for name in names},
    "texts": lambda names: dict.fromkeys(names, "x" * 90000),
    "objects": lambda names: {name: {f"k{number}": [] for number in range(8_000)} for name in names},
    "unknown": lambda _: {f"field{number}": 1 for number in range(6_000)},
    "long name": lambda _: {"x" * 90_000: 1},
}


def operations(client: httpx.Client) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the method, the path and the description of each operation."""
    return [
        (method.upper(), path.replace("{namespace}", "ann").replace("{", "").replace("}", ""), about)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method, about in methods.items()
    ]


async def test_preview_reads_long_texts_off_the_event_loop(offline, monkeypatch):
    """The worst text that the MCP tool `judge` accepts stopped all requests for half a second."""
    threads = []

    def step(draft, settings):
        threads.append((len(draft.episode.content), threading.get_ident()))
        yield from ()
        return {}

    monkeypatch.setattr("kg_memory.contrib.preview.PREVIEWED", (step,))
    await offline.episodes.apreview("I like tea. " * 4000, speaker="Ann", namespace="ann")
    assert [(length > 40_000, thread == threading.get_ident()) for length, thread in threads] == [(True, False)]


@pytest.mark.parametrize("kind", HOSTILE)
def test_wrong_bodies_get_short_answers_on_every_route(client, kind):
    admin = client("admin")
    schemas = admin.get("/openapi.json").json()["components"]["schemas"]
    for method, path, about in operations(admin):
        content = about.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            continue
        for name in schemas[content["schema"]["$ref"].rpartition("/")[2]]["properties"]:
            answer = admin.request(method, path, json=HOSTILE[kind]([name]))
            assert answer.status_code < 500, (path, name, answer.text[:300])
            assert len(answer.content) < SMALL_ANSWER, (path, name)
            assert len(answer.json().get("errors") or ()) <= MOST_ERRORS


def test_batch_rows_are_validated_up_to_the_first_errors(client):
    admin = client("admin")
    cases = {
        "/episodes/batch": {"episodes": [{"content": "x", "labels": {"a": [[]] * 20}}] * 1000},
        "/facts/batch": {"rows": [1] * 1000},
        "/usage/estimate": {"episodes": [[]] * 1000},
        "/facts/x/retract": {"reason": 1, **{f"f{number}": 1 for number in range(40)}},
    }
    for path, body in cases.items():
        answer = admin.post(ROOT + path, json=body)
        assert answer.status_code == 422, path
        assert len(answer.json()["errors"]) <= MOST_ERRORS
        assert len(answer.content) < SMALL_ANSWER
    assert "40 errors" in answer.json()["detail"]


def test_body_size_is_limited_by_route_and_by_values(client):
    admin = client("admin")
    question = {"question": "Where?", "where": {"speaker": ["x" * 1000] * 150}}
    assert admin.post(f"{ROOT}/search", json=question).status_code == 413
    assert admin.post(f"{ROOT}/episodes", json={"content": "I like tea. " * 20_000}).status_code == 202
    many = admin.post(f"{ROOT}/facts/batch", json={"rows": [[]] * (MOST_VALUES + 1)})
    assert (many.status_code, "values" in many.json()["detail"]) == (413, True)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "facts", "arguments": {}}}
    call["params"]["arguments"] = dict.fromkeys(map(str, range(MOST_VALUES_OF_SMALL)), 1)
    assert admin.post("/v1/mcp?namespace=ann", json=call).status_code == 413
    quoted = {"content": json.dumps({"a": [1] * 60_000}), "kind": "text"}
    assert admin.post(f"{ROOT}/episodes", json=quoted).status_code == 202, "commas in a text are no values"
    assert admin.get(f"{ROOT}/facts", params={"where": "x" * 40_000}).status_code == 431
    assert admin.post(f"{ROOT}/episodes/batch", json={"episodes": [{"content": "x"}] * 1001}).status_code == 422
    large = admin.post(f"{ROOT}/episodes", json={"content": "x" * 10_000_001})
    assert (large.status_code, large.json()["type"]) == (413, "about:blank")
    for send in (partial(admin.post, f"{ROOT}/episodes"), partial(admin.patch, f"{ROOT}/predicates/a%2Fimport")):
        assert send(content=(b"x" * 1_000_000 for _ in range(20))).status_code == 413


class Turn:
    """Replaces the lock of large requests: each request that waits for it is refused."""

    async def __aenter__(self) -> None:
        raise ProblemError(503, "in turn")

    async def __aexit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("method", "path", "how", "waits"),
    [
        ("GET", "/facts", {"params": {"limit": 1000}}, True),
        ("GET", "/facts", {}, False),
        ("GET", "/episodes", {"params": {"limit": 1000}}, True),
        ("GET", "/reports/handoff", {"params": {"limit": 1000}}, True),
        ("POST", "/search", {"json": {"question": "Where is Ann?", "recall_from": ["a", "b"]}}, False),
        ("POST", "/search", {"json": {"question": "Where is Ann?", "recall_from": ["a", "b", "c"]}}, True),
        ("POST", "/search", {"json": {"question": "Where is Ann?", "limit": 1000}}, True),
        ("POST", "/search", {"json": {"question": "Where is Ann? " * 500}}, True),
        ("POST", "/context", {"json": {"question": "Where?", "center": ["x"] * 900}}, True),
    ],
)
def test_large_requests_wait_in_turn(client, serving, monkeypatch, method, path, how, waits):
    monkeypatch.setattr(serving.service, "large", Turn())
    answer = client("admin").request(method, ROOT + path, **how)
    assert (answer.status_code == 503) is waits, answer.text


async def test_large_bodies_wait_and_are_refused_by_route_and_size(monkeypatch):
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.2)
    sent = {
        ("/v1/namespaces/ann/facts/batch", LARGE + 1): 429,
        ("/v1/namespaces/ann/facts/batch", LARGE): 200,
        ("/v1/mcp", LARGE + 1): 200,
        ("/v1/mcp", SMALL + 1): 429,
    }
    let_go = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if Headers(scope=scope).get("held"):
            await let_go.wait()
        await Response()(scope, receive, send)

    guard = SimpleNamespace(authenticate=AsyncMock())
    gated = RequestGate(app, paths=("/v1/",), service=SimpleNamespace(options=Options(), guard=guard))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gated), base_url="http://127.0.0.1") as client:
        post = partial(client.post, headers={"held": "1"}, content=b" " * (LARGE + 1))
        holding = [asyncio.create_task(post("/v1/namespaces/ann/facts/batch")) for _ in range(LARGE_AT_ONCE)]
        await asyncio.sleep(0.05)
        got = {one: (await client.post(one[0], content=b" " * one[1])).status_code for one in sent}
        let_go.set()
        await asyncio.gather(*holding)
    assert got == sent


async def test_body_of_a_rejected_request_is_read_in_pieces_and_dropped():
    pieces = [{"type": "http.request", "body": b"x" * 9, "more_body": more} for more in (True, True, False)]
    receive, send = AsyncMock(side_effect=pieces), AsyncMock()
    guard = SimpleNamespace(authenticate=AsyncMock(side_effect=ProblemError(401, "no key")))
    gated = RequestGate(AsyncMock(), paths=("/v1/",), service=SimpleNamespace(options=Options(), guard=guard))
    head = [(b"host", b"127.0.0.1"), (b"content-length", b"%d" % (gate.DROPPED + 1))]
    scope = {"type": "http", "method": "POST", "path": f"{ROOT}/episodes", "query_string": b"", "headers": head}
    await gated(scope, receive, send)
    assert (receive.await_count, send.await_args_list[0].args[0]["status"]) == (3, 401)


def test_page_of_long_texts_ends_early_and_next_has_the_rest(client, monkeypatch):
    for module in (answers, endpoints):
        monkeypatch.setattr(module, "MOST_CHARACTERS", 1000)
    admin, path = client("admin"), "/v1/namespaces/long/episodes"
    episodes = [{"content": f"{number} " + "x" * 400, "at": f"2024-01-{number:02}"} for number in range(1, 11)]
    assert admin.post(f"{path}/batch", json={"episodes": episodes}).status_code == 202
    sizes, days, cursor = [], [], None
    while True:
        page = admin.get(path, params={"limit": 7, **({"cursor": cursor} if cursor else {})}).json()
        sizes.append(len(page["items"]))
        days += [item["at"][:10] for item in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert sizes == [3, 3, 3, 1]
    assert days == [f"2024-01-{number:02}" for number in range(10, 0, -1)]


def test_parallel_imports_of_one_key_are_limited(client, serving, ring):
    admin = client("admin")
    host, port = httpx.URL(serving.url).host, httpx.URL(serving.url).port
    head = (
        f"POST {ROOT}/import HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 90000\r\n"
        f"Authorization: {admin.headers['authorization']}\r\n\r\nabc"
    )
    held = serving.service.shares._all
    with ExitStack() as stack:
        for number in range(1, limits.AT_ONCE // 2 + 1):
            begun = stack.enter_context(socket.create_connection((host, port), timeout=120))
            begun.sendall(head.encode())
            until(lambda: held[limits.IMPORTS] == number)  # noqa: B023 - it is called at once
        refused = admin.post(f"{ROOT}/import", content=b"abc")
        assert (refused.status_code, "imports" in refused.json()["detail"]) == (429, True)
    until(lambda: held[limits.IMPORTS] == 0)
    assert admin.post(f"{ROOT}/import", content=b"abc").status_code == 422


def ask_without_body(url: str, method: str, path: str, headers: str = "") -> int:
    """Return the status of a request that announces a body and sends none."""
    host, port = httpx.URL(url).host, httpx.URL(url).port
    with socket.create_connection((host, port), timeout=120) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n{headers}"
        connection.sendall(f"{head}Content-Length: 90000\r\n\r\n".encode())
        return int(connection.recv(200).split()[1])


def test_keys_are_checked_before_the_body_on_every_route(client, serving):
    admin = client("admin")
    paths = [(method, path) for method, path, _ in operations(admin) if path.startswith(("/v1", "/api/graph"))]
    assert len(paths) > 60
    for method, path in [*paths, ("POST", "/v1/mcp?namespace=ann"), ("POST", "/v1/nothing")]:
        assert ask_without_body(serving.url, method, path) == 401, path
        assert ask_without_body(serving.url, method, path, "X-API-Key: kgm_0\r\n") == 401, path


def test_wrong_keys_use_the_rate_of_their_address(offline, client, ring):
    client("read")
    with Serving(offline, Options(rate=0.1)) as running:
        url, right = f"{running.url}{ROOT}/search", {"X-API-Key": ring.create("right", ["read"])[1]}
        answers = [httpx.post(url, headers={"X-API-Key": f"kgm_{number}"}) for number in range(5)]
        assert (answers[0].status_code, answers[1].status_code) == (401, 429)
        refused = [answer for answer in answers if answer.status_code == 429]
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert httpx.post(url, headers=right, json={"question": "Ann"}).status_code == 200


def test_namespace_length_is_limited_on_every_route(client):
    admin, long = client("admin"), "x" * 1001
    for method, path, _ in operations(admin):
        if not path.startswith(("/v1/namespaces/ann", "/api/graph")):
            continue
        named = path.replace("/ann", f"/{long}") if path.startswith("/v1") else f"{path}?namespace={long}"
        answer = admin.request(method, named, json={} if method != "GET" else None)
        assert answer.status_code == 422, path
        assert "1000 characters" in answer.text or answer.json()["errors"], path
        assert len(answer.content) < SMALL_ANSWER
    assert admin.post(f"/v1/mcp?namespace={long}", json={}).status_code == 422


@pytest.mark.parametrize(
    ("pattern", "namespace", "reaches"),
    [
        ("*", "", True),
        ("team/*", "team/ann", True),
        ("team/*", "team", False),
        ("org/*/user/*/x", "org/1/user/2/x", True),
        ("org/*/user/*/x", "org/user/x", False),
        ("a*a", "a", False),
        ("*ab*b", "abb", True),
        ("*ab*b", "ab", False),
        ("a**b", "a\nb", True),
        ("a", "ab", False),
        ("org/*/user/*/x", "org/" + "/user/" * 100_000 + "y", False),
        ("*a*b*c", "a" * 300_000, False),
        ("*a" * 50 + "c", "a" * 300_000, False),
        ("*" * 50 + "c", "a" * 300_000, False),
    ],
)
def test_key_patterns_match_in_linear_time(pattern, namespace, reaches):
    key = LAUNCHED.model_copy(update={"namespaces": (pattern,)})
    began = time.process_time()
    assert ApiKey.reaches(key, namespace) is reaches
    assert time.process_time() - began < 1


class Client:
    """A client of the server: its request, until it disconnects."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.request = Request({"type": "http"}, self._receive)

    async def _receive(self) -> dict[str, str]:
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_jobs_are_shared_refused_and_stopped_with_clients(monkeypatch):
    monkeypatch.setattr(limits, "WAIT", 0.05)
    all_jobs, go, started = Jobs(), asyncio.Event(), []
    clients = [Client() for _ in range(8)]

    async def call(job: Job) -> str:
        started.append(job)
        await go.wait()
        return f"result {len(started)}"

    def ask(number: int, namespace: str, asked: str) -> asyncio.Task[str]:
        return asyncio.create_task(all_jobs.run(clients[number].request, namespace, asked, call, cancel=True))

    first, second = ask(0, "ann", "refresh"), ask(1, "ann", "refresh")
    with pytest.raises(ProblemError) as refused:
        await ask(2, "ann", "full refresh")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    others = [ask(number, f"other {number}", "refresh") for number in (3, 4, 5)]
    with pytest.raises(ProblemError):
        await ask(6, "one too many", "refresh")
    clients[0].left.set()
    with pytest.raises(ClientDisconnect):
        await first
    assert not started[0].stopped.is_set(), "another client waits for it"
    clients[3].left.set()
    with pytest.raises(ClientDisconnect):
        await others[0]
    assert started[1].stopped.is_set()
    with pytest.raises(limits.StoppedError):
        started[1].check(1, 2)
    last = ask(7, "other 3", "refresh")
    await asyncio.sleep(0)
    go.set()
    assert await second == await last == "result 5"
    assert [await other for other in others[1:]] == ["result 5"] * 2
    assert len(started) == 5


async def test_expensive_routes_run_once_at_a_time(client, offline):
    client("admin")
    known = [{"subject": f"P{number}", "predicate": "KNOWS", "object": f"P{number // 2}"} for number in range(1, 200)]
    offline.facts.add_many(known, namespace="busy")
    root = "/v1/namespaces/busy"
    calls = [
        ("POST", f"{root}/communities/refresh", {"json": {"full": True}}),
        ("GET", f"{root}/export", {}),
        ("GET", f"{root}/entities/P1/path?target=P150&steps=6", {}),
        ("GET", f"{root}/explorer/columns", {}),
        ("GET", f"{root}/explorer/doubts?as_of=1&believed_at=1", {}),
    ]
    admin = client("admin")
    async with httpx.AsyncClient(base_url=admin.base_url, headers=admin.headers, timeout=300) as one:
        answers = await asyncio.gather(*(one.request(method, path, **how) for method, path, how in calls * 6))
    assert {answer.status_code for answer in answers} <= {200, 429}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 429)
    assert sum(answer.status_code == 200 for answer in answers) >= len(calls)


@pytest.mark.parametrize(
    ("origin", "body", "problem"),
    [
        ("mem0", b'{"results": [{"memory": ' + b"[" + b"[]," * 400_000 + b"[]]}]}", "values"),
        ("letta", b'{"agents": [' + b"{}," * 400_000 + b"{}]}", "values"),
        ("letta", b"[" * 100_000, "deep"),
        ("zep", b'{"nodes": [1]}', "record"),
        ("csv", b"\xff\xfe", "file"),
    ],
)
def test_imports_are_limited_and_hide_temporary_paths(client, origin, body, problem):
    answer = client("admin").post(f"{ROOT}/import/{origin}", content=body, timeout=300)
    assert (answer.status_code, problem in answer.json()["detail"]) == (422, True), answer.text
    assert "/tmp" not in answer.text
    assert "import" not in answer.json()["detail"].partition(":")[0]


def test_import_refuses_huge_lines_of_own_format(client):
    about = {"format": FORMAT, "schema": MEMORY.version, "namespace": "x", "embeddings": False, "meta": {}}
    body = json.dumps({"record": "kg-memory", **about}).encode()
    body += b'\n{"record": "Entity", "properties": {"aliases": [' + b"1," * 400_000 + b"1]}}\n"
    answer = client("admin").post(f"{ROOT}/import?replace=true", content=body, timeout=300)
    assert answer.status_code == 422
    assert "/tmp" not in answer.text
    assert len(answer.content) < SMALL_ANSWER


def test_search_results_cut_long_contents(client, offline):
    offline.episodes.save([{"content": "I like tea. " * 2000, "speaker": "Ann"}], namespace="cut")
    reader = client("read")
    for verb in ("search", "context"):
        answer = reader.post(f"/v1/namespaces/cut/{verb}", json={"question": "tea"}).json()
        [episode] = answer.get("results", answer)["episodes"]
        assert (len(episode["content"]), episode["content"][-4:]) == (LONGEST_CONTENT + 4, " ...")
        assert len(reader.get(f"/v1/namespaces/cut/episodes/{episode['id']}").json()["content"]) == 24_000
