"""``langgraph dev`` serves the HTTP API, the graphs and the docs, and requires the same keys for all."""

import httpx
import pytest
from langgraph_sdk import get_sync_client
from mcp import Client

from kg_memory import Settings
from kg_memory.contrib.server.keys import KEYS, KeyRing
from kg_memory.memory.open import database


@pytest.fixture
def web(server):
    with httpx.Client(base_url=server.url, timeout=300) as opened:
        yield opened


def test_server_answers_routes_of_api_graphs_and_docs(web, client):
    assert web.get("/v1/namespaces/team/stats").json()["episodes"] == 4
    assert web.get("/api/graph/global", params={"namespace": "team"}).json()["elements"]["edges"]
    saved = web.post("/v1/namespaces/api/episodes", json={"content": "I live in Oslo.", "speaker": "Ann"})
    assert saved.status_code == 202
    assert web.get("/v1/namespaces/api/nothing").status_code == 404
    paths = web.get("/openapi.json").json()["paths"]
    assert {"/v1/namespaces/{namespace}/search", "/api/graph/{entity_id}", "/threads", "/runs/stream"} <= paths.keys()
    assert web.get("/docs").status_code == web.get("/ok").status_code == web.get("/info").status_code == 200
    assert len(client.assistants.search(limit=20)) == 5
    found = client.runs.wait(None, "retrieval", input={"question": "Where does Ann live?", "namespace": "team"})
    assert "Oslo" in found["context"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_client_remembers_and_recalls(server, web, mode):
    async with Client(f"{server.url}/v1/mcp?namespace=mcp-{mode}", mode=mode, read_timeout_seconds=300) as client:
        told = await client.call_tool("remember", {"content": "Ann lives in Oslo."})
        assert not told.is_error
        recalled = await client.call_tool("recall", {"question": "Where does Ann live?"})
        assert "Oslo" in recalled.content[0].text
    assert web.get(f"/v1/namespaces/mcp-{mode}/stats").json()["episodes"] == 1


def test_api_and_graphs_require_a_key_once_one_exists(server, web):
    opened = database(Settings(data_dir=server.data, idle_seconds=1), None)
    try:
        secret = KeyRing(opened).create("test", ["read"], ["team"])[1]
        calls = (("GET", "/v1/namespaces/team/stats", None), ("POST", "/assistants/search", {"limit": 1}))
        for header in ({}, {"Authorization": "Bearer kgm_wrong"}, {"X-API-Key": secret[:-1]}):
            assert {web.request(how, path, json=body, headers=header).status_code for how, path, body in calls} == {401}
        for header in ({"Authorization": f"Bearer {secret}"}, {"X-API-Key": secret}):
            assert {web.request(how, path, json=body, headers=header).status_code for how, path, body in calls} == {200}
        assert web.get("/v1/namespaces/ann/stats", headers={"X-API-Key": secret}).status_code == 403
        assert web.post("/v1/mcp?namespace=team", json={}).status_code == 401
        assert web.post("/v1/mcp?namespace=ann", json={}, headers={"X-API-Key": secret}).status_code == 403
        assert get_sync_client(url=server.url, api_key=secret).assistants.search(limit=1)
        assert web.get("/ok").status_code == 200
    finally:
        opened.command("DEL", KEYS)
        opened.close()
