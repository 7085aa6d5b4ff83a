"""Optional arguments of MCP tools, queries and bodies that are null, "" or "null" are left out."""

import copy
import re
from typing import Any

from tests.server.test_mcp import launch_in_namespace  # noqa: F401 - a fixture

LEFT_OUT = (None, "", "null", "None")
NS = "/v1/namespaces/left-out"
LOOKS: dict[str, dict[str, Any]] = {
    "recall": {"question": "Where does Ann live?"},
    "facts": {"name": "Ann"},
    "history": {"name": "Ann"},
    "changes": {"since": "2024"},
    "judge": {"content": "I live in Rome."},
    "compare": {"first": "2024-03", "second": "2100"},
    "review": {},
}
"""The MCP tools with optional arguments that only read, each with its required arguments."""


SAID = {"content": "Ann lives in Oslo.", "at": "2024-02-01"}


def url_of(path: str) -> str:
    """Return *path* with a value in each of its placeholders."""
    return re.sub(r"\{\w+\}", "Ann", path.replace("{namespace}", "left-out"))


async def test_mcp_tools_accept_null_for_optional_arguments(launch):
    tried = 0
    async with launch("--profile", "full") as client:
        assert not (await client.call_tool("remember", SAID)).is_error
        for tool in (await client.list_tools()).tools:
            given = LOOKS.get(tool.name, {})
            schema = tool.input_schema
            if tool.name in LOOKS:
                expected = await client.call_tool(tool.name, given)
                assert not expected.is_error, expected.content
                for name in schema["properties"].keys() - set(schema.get("required", ())):
                    for value in LEFT_OUT:
                        answer = await client.call_tool(tool.name, {**given, name: value})
                        assert answer.content == expected.content, (tool.name, name, value)
                        tried += 1
        assert tried >= 10 * len(LEFT_OUT)
        for value in LEFT_OUT:
            added = await client.call_tool("remember", {"content": "null", "at": value})
            assert not added.is_error, added.content
        gone = {"id": f"episode:{added.structured_content['episode']}", "reason": None}
        assert not (await client.call_tool("forget", gone)).is_error


async def test_mcp_tools_convert_types_of_arguments(launch):
    async with launch() as client:
        assert not (await client.call_tool("remember", SAID)).is_error
        for given in ({"limit": "5"}, {"as_of": 2030}, {"limit": 5.0}):
            result = await client.call_tool("recall", {"question": "Where does Ann live?", **given})
            assert "Ann lives in Oslo" in str(result.content[0]), given


def test_queries_accept_null_for_optional_parameters(client, offline):
    offline.add("I live in Oslo.", speaker="Ann", at="2024-02-01", namespace="left-out")
    http, tried = client("read", "write", "review", "forget", "admin"), 0
    for path, operations in http.get("/openapi.json").json()["paths"].items():
        parameters = operations.get("get", {}).get("parameters", [])
        if "/events" in path or not any(one["in"] == "query" for one in parameters):
            continue
        url = url_of(path)
        given = {one["name"]: "Ann" for one in parameters if one["in"] == "query" and one["required"]}
        given |= {"since": "2024"} if "since" in given else {}
        given |= {"namespace": "left-out"} if "/api/" in path else {}
        expected = http.get(url, params=given)
        for name in (one["name"] for one in parameters if one["in"] == "query" and one["name"] not in given):
            for value in ("", "null"):
                answer = http.get(url, params={**given, name: value})
                assert answer.status_code == expected.status_code, (url, name, value, answer.text)
                tried += 1
    assert tried > 100


def test_bodies_accept_null_for_optional_fields(client):
    http, tried = client("read", "write", "review", "forget", "admin"), 0
    document = http.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method in operations.keys() - {"get"}:
            content = operations[method].get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or not path.startswith("/v1/"):
                continue
            schema = content["schema"]
            for part in (schema, *schema.get("anyOf", ())):
                schema = document["components"]["schemas"].get(part.get("$ref", "").rpartition("/")[2], schema)
            given = copy.deepcopy(schema.get("examples", [{}])[0])
            url = url_of(path)
            expected = http.request(method, url, json=given).status_code
            for name in schema.get("properties", {}).keys() - set(schema.get("required", ())) - given.keys():
                for value in LEFT_OUT:
                    answer = http.request(method, url, json={**given, name: value})
                    assert answer.status_code == expected, (method, url, name, value, answer.text)
                    tried += 1
    assert tried > 200


def test_bodies_accept_null_text_for_required_fields(client, offline):
    """Required texts "null" are ordinary values; numbers and booleans may be texts."""
    http = client("read", "write")
    said = {"content": "null", "speaker": "null", "at": "", "labels": None, "trust": "0.5"}
    assert http.post(f"{NS}-kept/episodes", json=said).status_code == 202
    batch = {"episodes": [{"content": "none", "speaker": None, "trust": "null"}]}
    assert http.post(f"{NS}-kept/episodes/batch", json=batch).status_code == 202
    stored = {one.content: (one.speaker, one.trust) for one in offline.episodes.list(namespace="left-out-kept")}
    assert stored == {"null": (None, 0.5), "none": (None, 1.0)}
    offline.add("I live in Oslo.", speaker="Ann", namespace="left-out-kept")
    asked = {"question": "Ann", "center": "Ann", "explain": "true", "limit": "5", "during": "none", "where": "null"}
    found = http.post(f"{NS}-kept/search", json=asked)
    assert found.status_code == 200, found.text
    refused = http.post(f"{NS}-kept/search", json={"question": None})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body.question")
