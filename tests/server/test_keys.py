"""Keys, scopes, namespaces, hosts and origins, over real HTTP."""

from urllib.parse import quote

import httpx
import pytest

from kg_memory.contrib.server.keys import KEYS
from kg_memory.contrib.server.service import Options
from kg_memory.errors import InputError
from tests.cli_home import home_of_the_module, result, run_here  # noqa: F401 - fixtures
from tests.server.conftest import Serving


def test_keys_are_optional_locally_until_the_first_is_created(client, offline):
    offline.add("I live in Oslo.", speaker="Ann", namespace="ann")
    anybody = client()
    stats = anybody.get("/v1/namespaces/ann/stats")
    assert (stats.status_code, stats.json()["episodes"]) == (200, 1)
    for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"X-Forwarded-For": "203.0.113.9"}):
        assert anybody.get("/v1/namespaces/ann/stats", headers=header).status_code in (401, 403, 421)
    reader = client("read")
    refused = anybody.get("/v1/namespaces/ann/stats")
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["request_id"] == refused.headers["x-request-id"]
    assert "kg-memory keys create" in refused.json()["detail"]
    assert reader.get("/v1/namespaces/ann/stats").status_code == 200


def test_revoked_key_is_refused_even_as_the_only_key(client, ring):
    reader = client("read")
    assert reader.get("/v1/namespaces/ann/stats").status_code == 200
    (key,) = ring.list()
    ring.revoke(key.id)
    assert reader.get("/v1/namespaces/ann/stats").status_code == 401
    assert client().get("/v1/namespaces/ann/stats").status_code == 401
    assert ring.list()[0].revoked_at
    with pytest.raises(InputError, match="not found"):
        ring.revoke("0" * 12)


def test_key_is_limited_to_its_scopes_and_namespaces(client):
    """A key allows the requests of its scopes, in its namespaces only.

    Features: D30.
    """
    team = client("read", namespaces=("team/*",))
    assert team.get("/v1/namespaces/team%2Fann/stats").status_code == 200
    names = ("ann", "nobody", "team", "xteam/ann")
    answers = [team.get(f"/v1/namespaces/{quote(name, safe='')}/stats") for name in names]
    assert {answer.status_code for answer in answers} == {403}
    details = {answer.json()["detail"].replace(repr(name), "") for name, answer in zip(names, answers, strict=True)}
    assert len(details) == 1, "refusals differ by the name alone"
    fact = {"subject": "Ann", "predicate": "LIKES", "object": "tea"}
    assert team.post("/v1/namespaces/team%2Fann/facts", json=fact).status_code == 403
    writer = client("write", namespaces=("team/*",))
    assert writer.post("/v1/namespaces/team%2Fann/facts", json=fact).status_code == 201
    assert writer.get("/v1/namespaces/team%2Fann/stats").status_code == 403
    facts = team.get("/v1/namespaces/team%2Fann/entities/Ann/facts").json()["items"]
    assert [one["objects"] for one in facts] == [["tea"]]


def test_key_ring_stores_only_hashes(client, ring, offline):
    key, secret = ring.create("agent", ["read"], ["ann"])
    stored = str(offline.driver.store.database.command("HGETALL", KEYS))
    assert key.id in stored
    assert secret[17:] not in stored
    assert ring.find(secret) == key
    for wrong in ("", "kgm_", secret[:-1], secret + "a", f"kgm_{key.id}_{'a' * 43}", "kgm_" + "0" * 12 + secret[16:]):
        assert ring.find(wrong) is None


def test_keys_command_creates_lists_and_revokes_keys(run):
    made = result(run, "keys", "create", "desk", "--scope", "review,read", "--namespaces", "support/*")
    assert made["scopes"] == ["read", "review"]
    assert made["secret"].startswith(f"kgm_{made['id']}_")
    code, out, err = run("keys", "create", "agent")
    assert code == 0
    assert out.startswith("kgm_")
    assert "only this once" in err
    assert run("keys", "revoke", made["id"])[0] == 0
    listed = result(run, "keys", "list")
    assert [(key["name"], bool(key["revoked_at"])) for key in listed] == [("agent", False), ("desk", True)]
    assert run("keys", "create")[0] == 1
    assert "scopes must be some of" in run("keys", "create", "x", "--scope", "root")[2]


def test_rate_limit_applies_to_each_key_separately(offline, ring, client):
    client("read")  # from now on the server requires keys
    with Serving(offline, Options(rate=2)) as running:
        secrets = [ring.create(name, ["read"])[1] for name in ("eager", "calm")]
        eager, calm = ({"X-API-Key": secret} for secret in secrets)
        url = f"{running.url}/v1/key"
        answers = [httpx.get(url, headers=eager)]
        while answers[-1].status_code == 200 and len(answers) < 200:  # a slow machine needs more requests
            answers.append(httpx.get(url, headers=eager))
        assert answers[-1].status_code == 429
        assert [answer.status_code for answer in answers[:8]] == [200] * 8
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert httpx.get(url, headers=calm).json()["name"] == "calm"


def test_hosts_and_origins_are_checked_and_logs_omit_keys(offline, ring, caplog):
    secret = ring.create("page", ["read"])[1]
    caplog.set_level("DEBUG")
    options = Options(hosts=("memory.example.com",), origins=("https://app.example.com",))
    with Serving(offline, options) as running:
        url, key = f"{running.url}/v1/key", {"Authorization": f"Bearer {secret}"}
        for host, status in (("memory.example.com", 200), ("evil.example", 421), ("[::1", 421), ("localhost:1", 200)):
            assert httpx.get(url, headers={**key, "Host": host}).status_code == status
        origins = {"https://app.example.com": 200, "https://evil.example": 403, "null": 403, "//[": 403}
        for origin, status in origins.items():
            assert httpx.get(url, headers={**key, "Origin": origin}).status_code == status
        asked = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "GET"}
        allowed = httpx.options(url, headers=asked).headers
        assert allowed["access-control-allow-origin"] == "https://app.example.com"
        assert httpx.get(url, headers={**key, "X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("kg_memory", "uvicorn"))]
    assert any("GET /v1/key -> 200" in line for line in ours)
    assert not any(secret in line for line in ours)
    offline.driver.store.database.command("DEL", KEYS)
