"""The MCP server over HTTP: the same keys, and a namespace that the model cannot choose."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from kg_memory import GraphMemory
from kg_memory.contrib.server.keys import KEYS, KeyRing
from kg_memory.falkor.connect import graph_key
from tests.cli_home import home_of_the_module  # noqa: F401 - a fixture
from tests.server.conftest import Serving, state_dispute
from tests.server.test_mcp import BOTH, use
from tests.server.test_running import free_port, serve  # noqa: F401 - a fixture

Connect = Callable[..., Any]


@pytest.fixture(name="connect")
def connect_with_key(serving: Serving, ring: KeyRing, offline: GraphMemory) -> Iterator[Connect]:
    """Return a function that connects with a key of *scopes* for *namespaces*; delete the keys at the end."""

    @asynccontextmanager
    async def connected(
        *scopes: str, namespaces: tuple[str, ...] = ("*",), reads: tuple[str, ...] = (), query: str = "", **options: Any
    ) -> Any:
        secret = ring.create("test", scopes, namespaces, reads)[1] if scopes else ""
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        async with httpx2.AsyncClient(headers=headers, timeout=300) as http:
            transport = streamable_http_client(f"{serving.url}/v1/mcp{query}", http_client=http)
            async with Client(transport, read_timeout_seconds=3000, **options) as client:
                yield client

    yield connected
    offline.driver.store.database.command("DEL", KEYS)


def answering(**content: Any) -> tuple[list[str], Any]:
    """Return a list of questions to the user, and a callback that answers each form with *content*."""
    asked: list[str] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content=content) if content else ElicitResult(action="decline")

    return asked, answer


@BOTH
async def test_mcp_http_key_sets_namespace_and_tools(connect, offline, mode):
    name = f"team/{mode}"
    async with connect("read", "write", namespaces=(name,), mode=mode) as client:
        added = await use(client, "remember", content="Ann works at Acme.")
        assert (await use(client, "status"))["namespace"] == name
        assert [tool.name for tool in (await client.list_tools()).tools][-1] == "status"
        assert "forget" not in {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("recall", {"question": "Acme", "namespace": "bob"})
        assert refused.is_error
    assert [episode.id for episode in offline.episodes.list(namespace=name)] == [added["episode"]]
    async with connect("read", query="?namespace=bob&profile=read-only", mode=mode) as client:
        assert (await use(client, "recall", question="Acme"))["facts"] == []
        assert {tool.annotations.read_only_hint for tool in (await client.list_tools()).tools} == {True}


@pytest.mark.parametrize(
    ("scopes", "namespaces", "query", "status"),
    [
        ((), ("*",), "", 401),
        (("read",), ("ann",), "?namespace=bob", 403),
        (("read",), ("*",), "", 422),
        (("read",), ("ann",), "?profile=all", 422),
    ],
)
def test_mcp_http_refuses_requests_without_access(serving, ring, client, scopes, namespaces, query, status):
    ring.create("another", ["read"])
    answer = client(*scopes, namespaces=namespaces).post(f"/v1/mcp{query}", json={})
    assert answer.status_code == status
    assert answer.json()["detail"]


@BOTH
async def test_mcp_http_forgets_only_after_user_confirms(connect, offline, mode):
    name = f"forget {mode}"
    scopes, where = ("read", "write", "forget"), {"namespaces": (name,), "mode": mode}
    async with connect(*scopes, **where) as client:
        told = await use(client, "remember", content="Ann lives in Oslo.")
        id_ = f"episode:{told['episode']}"
        plan = await client.call_tool("forget", {"id": id_})
        assert "cannot ask its user" in plan.content[0].text
        assert plan.structured_content["episodes"] == [told["episode"]]
    for content, gone in (({}, False), ({"forget": False}, False), ({"forget": True}, True)):
        asked, answer = answering(**content)
        async with connect(*scopes, **where, elicitation_callback=answer) as client:
            receipt = await use(client, "forget", id=id_)
        assert len(asked) == 1
        assert "Ann lives in Oslo." in asked[0]
        assert receipt["forgotten"] is gone
    assert offline.episodes.list(namespace=name) == []
    assert offline.driver.store.database.query(graph_key(name), "MATCH (d:Fact) RETURN d", {}, write=False) == []


@BOTH
async def test_mcp_http_session_ends_with_revoked_key(connect, ring, mode):
    name = f"revoked {mode}"
    ring.create("another", ["read"])  # without any key, local requests are answered
    async with connect("read", "write", namespaces=(name,), mode=mode) as client:
        await use(client, "remember", content="Ann lives in Bergen.")
        (key,) = [key for key in ring.list() if key.namespaces == (name,)]
        ring.revoke(key.id)
        with pytest.raises((MCPError, httpx2.HTTPStatusError)):
            await use(client, "history", name="Ann")


@BOTH
async def test_mcp_http_user_decides_review(connect, offline, mode):
    name = f"review {mode}"
    await asyncio.to_thread(state_dispute, offline, name)
    waiting = offline.reviews.list(namespace=name)
    assert waiting
    asked, answer = answering(choice="accept", reason="she told me")
    async with connect("read", "review", namespaces=(name,), mode=mode, elicitation_callback=answer) as client:
        decided = await use(client, "review")
        assert decided["decision"] == "accept"
        assert asked[0].startswith("Does ")
    (review,) = [one for one in offline.reviews.list(namespace=name, decided=True) if one.id == waiting[0].id]
    assert review.decisions[-1].reason == "she told me"


@BOTH
async def test_mcp_http_client_does_not_delay_shutdown(home, port, mode):
    """The server ends the streams of its clients when it is told to stop."""
    with serve(port) as process:
        async with Client(f"http://127.0.0.1:{port}/v1/mcp", mode=mode, read_timeout_seconds=300) as client:
            await client.list_tools()
            process.terminate()
            began = time.monotonic()
            await asyncio.to_thread(process.wait, 60)
            assert time.monotonic() - began < 10
