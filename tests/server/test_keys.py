"""Keys, scopes, namespaces, hosts and origins, over real HTTP."""

from __future__ import annotations

import pytest

from kg_memory.errors import InputError
from kg_memory.server.keys import KEYS
from tests.cli_home import home_of_the_module, result, run_here  # noqa: F401 - fixtures


def test_without_any_key_only_this_machine_is_answered_and_with_one_nobody_without_it(client, offline):
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


def test_a_revoked_key_opens_nothing_even_if_it_was_the_only_one(client, ring):
    reader = client("read")
    assert reader.get("/v1/namespaces/ann/stats").status_code == 200
    (key,) = ring.list()
    ring.revoke(key.id)
    assert reader.get("/v1/namespaces/ann/stats").status_code == 401
    assert client().get("/v1/namespaces/ann/stats").status_code == 401
    assert ring.list()[0].revoked_at
    with pytest.raises(InputError, match="no key has the id"):
        ring.revoke("0" * 12)


def test_a_key_does_what_its_scopes_say_in_its_namespaces_alone(client):
    team = client("read", namespaces=("team/*",))
    assert team.get("/v1/namespaces/team%2Fann/stats").status_code == 200
    answers = [team.get(f"/v1/namespaces/{name}/stats") for name in ("ann", "nobody", "team", "xteam%2Fann")]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.json()["detail"] for answer in answers}) == 1, "the same, whether the namespace holds anything"
    fact = {"subject": "Ann", "predicate": "LIKES", "object": "tea"}
    assert team.post("/v1/namespaces/team%2Fann/facts", json=fact).status_code == 403
    writer = client("write", namespaces=("team/*",))
    assert writer.post("/v1/namespaces/team%2Fann/facts", json=fact).status_code == 201
    assert writer.get("/v1/namespaces/team%2Fann/stats").status_code == 403
    facts = team.get("/v1/namespaces/team%2Fann/entities/Ann/facts").json()["items"]
    assert [one["objects"] for one in facts] == [["tea"]]


def test_only_hashes_of_keys_are_stored(client, ring, offline):
    key, secret = ring.create("agent", ["read"], ["ann"])
    stored = str(offline.driver.store.database.command("HGETALL", KEYS))
    assert key.id in stored
    assert secret.rpartition("_")[2] not in stored
    assert ring.find(secret) == key
    for wrong in ("", "kgm_", secret[:-1], secret + "a", f"kgm_{key.id}_{'a' * 43}", "kgm_" + "0" * 12 + secret[16:]):
        assert ring.find(wrong) is None


def test_keys_are_made_listed_and_revoked_by_the_command(run):
    made = result(run, "keys", "create", "desk", "--scope", "review,read", "--namespaces", "support/*")
    assert made["scopes"] == ["read", "review"]
    assert made["secret"].startswith(f"kgm_{made['id']}_")
    code, out, err = run("keys", "create", "agent")
    assert code == 0
    assert out.startswith("kgm_")
    assert "only now" in err
    assert run("keys", "revoke", made["id"])[0] == 0
    listed = result(run, "keys", "list")
    assert [(key["name"], bool(key["revoked_at"])) for key in listed] == [("agent", False), ("desk", True)]
    assert run("keys", "create")[0] == 1
    assert "scopes must be some of" in run("keys", "create", "x", "--scope", "root")[2]
