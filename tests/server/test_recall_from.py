"""Searches over several namespaces by HTTP, MCP and the command line: each namespace needs the right to read it."""

from __future__ import annotations

import json

import pytest

from kg_memory.cli import main
from tests.server.test_mcp_http import connect_with_key  # noqa: F401 - a fixture

QUESTION = {"question": "Where does Ann live, and where does she work?"}
LOOKALIKES = (
    "team", "team-", "team-re", "team-red2", "team-red/x", "Team-red", "team-red ", "team*", "team-rеd", "x/team-red",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def told(offline):
    """Ann's memory, her team's, and others with names like that of the team."""
    offline.add("Ann lives in Oslo.", speaker="Ann", namespace="ann")
    offline.add("Ann works at Acme.", speaker="Tom", namespace="team-red")
    for name in LOOKALIKES:
        offline.facts.add("Ann", "WORKS_AT", f"Leak {name}", namespace=name)
    return offline


@pytest.mark.parametrize(
    ("namespaces", "reads", "allowed"),
    [
        (["ann"], [], []),
        (["ann"], ["team-red"], ["team-red"]),
        (["ann"], ["team-r*d"], ["team-red", "team-rеd"]),
        (["ann", "team-red/*"], [], ["team-red/x"]),
        (["*"], [], ["team-red", *LOOKALIKES]),
    ],
    ids=["own", "one", "pattern", "two", "all"],
)
def test_a_search_reaches_what_the_key_allows_and_names_what_it_does_not(client, namespaces, reads, allowed):
    reader = client("read", namespaces=namespaces, reads=reads)
    for name in ("team-red", *LOOKALIKES):
        for verb, found in (("search", "facts"), ("context", "text")):
            answer = reader.post(f"/v1/namespaces/ann/{verb}", json={**QUESTION, "recall_from": [name]})
            if name in allowed:
                assert answer.status_code == 200
                text = json.dumps(answer.json()[found], ensure_ascii=False)
                assert ("Leak" in text) == (name in LOOKALIKES)
                assert not [other for other in LOOKALIKES if other != name and f'Leak {other}"' in text]
            else:
                assert answer.status_code == 403
                assert repr(name) in answer.json()["detail"]


def test_a_key_that_may_read_a_namespace_changes_nothing_there(client, offline):
    agent = client("read", "write", "review", "forget", namespaces=("ann",), reads=("team-red",))
    before = offline.stats(namespace="team-red")
    for path, body in (
        ("episodes", {"content": "Ann left."}),
        ("facts", {"subject": "Ann", "predicate": "LIKES", "object": "tea"}),
        ("forget", {"everything": True}),
    ):
        assert agent.post(f"/v1/namespaces/team-red/{path}", json=body).status_code == 403
    assert agent.post("/v1/namespaces/team-red/search", json=QUESTION).status_code == 200
    assert offline.stats(namespace="team-red") == before
    assert agent.get("/v1/namespaces").json()["items"] == ["ann", "team-red"]


async def test_mcp_recalls_from_what_its_url_names(connect, client):
    rights = {"namespaces": ("ann",), "reads": ("team-red",)}

    async def use(query):
        async with connect("read", "write", **rights, query=query) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            return tools, (await session.call_tool("recall", QUESTION)).structured_content["facts"]

    tools, facts = await use("?namespace=ann&recall_from=team-red")
    assert "remember" in tools
    expected = {("Ann lives in Oslo", "ann"), ("Ann works at Acme", "team-red")}
    assert {(fact["sentence"], fact["namespace"]) for fact in facts} == expected
    tools, facts = await use("?namespace=team-red")
    assert "remember" not in tools
    assert [fact["sentence"] for fact in facts] == ["Ann works at Acme"]
    refused = client("read", "write", **rights).post("/v1/mcp?namespace=ann&recall_from=team", json={})
    assert (refused.status_code, "'team'" in refused.json()["detail"]) == (403, True)


def test_command_line_recalls_from_more(offline, monkeypatch, capsys):
    monkeypatch.setenv("KG_MEMORY_DATA_DIR", str(offline.settings.data_dir))
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    asked = ("ask", QUESTION["question"], "-n", "ann", "--recall-from", "team-red")
    assert main([*asked, "--json"]) == 0
    assert {"ann", "team-red"} == {fact["namespace"] for fact in json.loads(capsys.readouterr().out)["facts"]}
    assert main([*asked, "--context"]) == 0
    assert "[team-red] Ann works at Acme" in capsys.readouterr().out
