"""The routes over real HTTP: add, search, list, decide, forget, export and import."""

import json
import time
from typing import Any

import httpx
import pytest

from kg_memory.contrib.server.service import Options
from kg_memory.falkor.connect import graph_key
from tests.server.conftest import Serving
from tests.waiting import until

NS = "/v1/namespaces/{}"


def read(client, location: str) -> dict[str, Any]:
    """Wait until the episode at *location* is read, and return it."""
    until(lambda: client.get(location).json()["status"] not in {"saved", "waiting", "working"})
    return client.get(location).json()


@pytest.fixture
def ann(client) -> tuple[Any, str]:
    """A client with all scopes, and the root of a namespace in which Ann moved."""
    admin, root = client("admin"), NS.format("ann")
    said = [
        {"content": "I live in Bergen.", "speaker": "Ann", "at": "2024-01-10"},
        {"content": "I moved to Oslo last week!", "speaker": "Ann", "at": "2024-05-14"},
    ]
    saved = admin.post(f"{root}/episodes/batch", json={"episodes": said})
    assert saved.status_code == 202
    assert read(admin, saved.headers["location"])["status"] == "done"
    return admin, root


def items(answer) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def test_episode_is_saved_at_once_and_read_in_background(client):
    writer, root = client("read", "write"), NS.format("team%2Fbob")
    body = {"content": "I work at Acme.", "speaker": "Bob"}
    first = writer.post(f"{root}/episodes", json=body, headers={"Idempotency-Key": "k1"})
    again = writer.post(f"{root}/episodes", json=body, headers={"Idempotency-Key": "k1"})
    assert (first.status_code, first.json()["new"], again.json()["new"]) == (202, True, False)
    assert first.headers["location"] == again.headers["location"] == f"{root}/episodes/{first.json()['episode']}"
    episode = read(writer, first.headers["location"])
    assert (episode["status"], episode["source_id"]) == ("done", "k1")
    other = writer.post(f"{root}/episodes", json={"content": "Other."}, headers={"Idempotency-Key": "k1"})
    assert (other.status_code, "another content" in other.json()["detail"]) == (422, True)
    assert writer.get(f"{root}/episodes/nothing").status_code == 404
    wrong = writer.post(f"{root}/episodes", json={"content": "x", "speakr": "Bob"}).json()
    assert wrong["errors"][0]["field"] == "body.speakr"
    misspelt = writer.get(f"{root}/facts?limt=1"), writer.post(f"{root}/search?limt=1", json={"question": "Acme?"})
    for answer in misspelt:
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.limt")


def test_search_and_context_answer_as_of_a_time(ann):
    admin, root = ann
    found = admin.post(f"{root}/search", json={"question": "Where does Ann live?"}).json()
    assert found["facts"][0]["objects"] == ["Oslo"]
    then = admin.post(f"{root}/search", json={"question": "Where does Ann live?", "as_of": "2024-02-01"}).json()
    assert then["facts"][0]["objects"] == ["Bergen"]
    context = admin.post(f"{root}/context", json={"question": "Where does Ann live?", "max_tokens": 300}).json()
    assert "Ann lives in Oslo" in context["text"]
    assert context["lines"]
    only = admin.post(f"{root}/search", json={"question": "Ann", "where": {"speaker": "Bob"}}).json()
    assert only["facts"] == []
    assert admin.post(f"{root}/search", json={"question": ""}).status_code == 422


def test_fact_pages_are_stable_while_facts_are_added(ann):
    admin, root = ann
    whole = items(admin.get(f"{root}/facts"))
    assert {fact["objects"][0] for fact in whole} == {"Oslo", "Bergen"}
    first = admin.get(f"{root}/facts", params={"limit": 1}).json()
    admin.post(f"{root}/facts", json={"subject": "Ann", "predicate": "LIKES", "object": "tea"})
    second = admin.get(f"{root}/facts", params={"limit": 1, "cursor": first["next"]}).json()
    assert [first["items"][0]["id"], second["items"][0]["id"]] == [fact["id"] for fact in whole]
    assert second["next"] is None
    assert len(items(admin.get(f"{root}/facts"))) == 3
    assert items(admin.get(f"{root}/facts", params={"where": '{"predicate": "likes"}'}))[0]["objects"] == ["tea"]
    assert len(items(admin.get(f"{root}/facts", params={"about": "Oslo"}))) == 1
    for cursor in ("x", "W10=", "WzAsIG51bGxd", "WyJ4IiwgbnVsbF0="):
        assert admin.get(f"{root}/facts", params={"cursor": cursor}).status_code == 422
    assert admin.get(f"{root}/facts", params={"where": "{"}).status_code == 422


def test_fact_and_entity_routes_return_all_details(ann):
    admin, root = ann
    facts = {fact["objects"][0]: fact for fact in items(admin.get(f"{root}/entities/Ann/facts"))}
    id_ = facts["Bergen"]["id"]
    why = admin.get(f"{root}/facts/{id_}/explain").json()
    assert [fact["objects"] for fact in why["evolution"]] == [["Bergen"], ["Oslo"]]
    assert items(admin.get(f"{root}/facts/{id_}/sources"))[0]["quote"].startswith("I live in Bergen")
    history = items(admin.get(f"{root}/entities/Ann/history", params={"predicate": "lives in"}))
    assert [fact["objects"][0] for fact in history] == ["Oslo", "Bergen"]
    assert items(admin.get(f"{root}/changes", params={"since": "2024-01-01"}))
    around = admin.get(f"{root}/entities/Ann/around", params={"steps": 1, "as_of": "2024-02-01"}).json()
    assert {entity["name"] for entity in around["entities"]} == {"Ann", "Bergen"}
    for path in ("facts/nothing", "facts/nothing/explain", "entities/Nobody"):
        assert admin.get(f"{root}/{path}").status_code == 404
    unknown = admin.post(f"{root}/facts/nothing/retract").json()["detail"]
    assert "`GET /v1/namespaces/{namespace}/facts` shows the ids" in unknown
    wrong = admin.post(f"{root}/episodes", json={"content": "x", "at": "32 May"}).json()
    assert wrong["detail"] == "body.at: must be a time, such as 2024-05-14 or 2024-05-14T09:30:00Z"


def test_profile_accepts_schema_but_no_file(ann, tmp_path):
    admin, root = ann
    profile = admin.get(f"{root}/profile", params={"name": "Ann"}).json()
    assert profile["topics"][0]["name"] == "contact"
    assert "- residence: " in profile["text"]
    schema = {"home": {"sub_topics": {"town": {"predicates": ["lives in"]}}}}
    own = {"name": "Ann", "schema": json.dumps(schema), "strict": True, "only_topics": ["home"]}
    [home] = admin.get(f"{root}/profile", params=own).json()["topics"]
    lives = {"where": json.dumps({"predicate": "LIVES_IN"}), "as_of": "now"}
    [fact] = items(admin.get(f"{root}/facts", params=lives))
    assert [slot["facts"] for slot in home["sub_topics"][0]["slots"]] == [[fact["id"]]]
    (tmp_path / "own.json").write_text(json.dumps(schema))
    for wrong in (json.dumps(str(tmp_path / "own.json")), str(tmp_path / "own.json"), "[]", "{"):
        refused = admin.get(f"{root}/profile", params={"name": "Ann", "schema": wrong})
        assert (refused.status_code, "schema must be" in refused.json()["detail"]) == (422, True)
    assert admin.get(f"{root}/profile").status_code == 422


def test_decisions_are_signed_with_name_of_key(client):
    admin, root = client("admin"), NS.format("decided")
    for name in ("Ann Smith", "Annie"):
        admin.post(f"{root}/facts", json={"subject": name, "predicate": "LIKES", "object": "tea"})
    fact, _ = items(admin.get(f"{root}/facts"))
    retract = f"{root}/facts/{fact['id']}/retract"
    assert client("read", "write").post(retract).status_code == 403
    review = admin.post(retract, json={"reason": "not so"}).json()
    [decision] = review["decisions"]
    assert (review["kind"], decision["by"], decision["reason"]) == ("retracted", "test", "not so")
    assert len(items(admin.get(f"{root}/facts"))) == 1
    admin.post(f"{root}/reviews/{review['id']}/undo", json={})
    replaced = admin.post(f"{root}/facts/{fact['id']}/replace", json={"with_text": "Ann lives in Bergen."})
    assert (replaced.status_code, replaced.json()["pending"]["objects"]) == (201, ["Bergen"])
    [merged] = items(admin.post(f"{root}/entities/Ann%20Smith/merge", json={"others": ["Annie"]}))
    assert (merged["kind"], merged["by"]) == ("merge", "test")
    assert admin.post(f"{root}/identities/{merged['id']}/undo", json={}).json()["state"] == "undone"
    assert admin.post(f"{root}/entities/Nobody/merge", json={"others": ["Annie"]}).status_code == 404


def test_graph_routes_return_graph_as_of_a_time(ann):
    """The API returns the whole graph, the graph as of a time, and the neighbours of an entity.

    Features: D12, D17.
    """
    admin, _ = ann
    whole = admin.get("/api/graph/global", params={"namespace": "ann"}).json()["elements"]
    labels = {node["data"]["id"]: node["data"]["label"] for node in whole["nodes"]}
    edges = {(labels[edge["data"]["source"]], labels[edge["data"]["target"]]) for edge in whole["edges"]}
    assert {("Ann", "Oslo"), ("Ann", "Bergen")} <= edges
    assert max(node["data"]["mention_count"] for node in whole["nodes"]) >= 2
    then = admin.get("/api/graph/global", params={"namespace": "ann", "as_of": "2024-02-01"}).json()["elements"]
    assert [edge["data"]["sentence"] for edge in then["edges"]] == ["Ann lives in Bergen"]
    (id_,) = (id_ for id_, label in labels.items() if label == "Ann")
    near = admin.get(f"/api/graph/{id_}", params={"namespace": "ann", "depth": 1}).json()["elements"]
    assert "Ann" in {node["data"]["label"] for node in near["nodes"]}
    assert admin.get("/api/graph/nothing", params={"namespace": "ann"}).status_code == 404


def test_forget_returns_plan_and_requires_its_hash(ann):
    admin, root = ann
    plan = admin.post(f"{root}/forget", json={"speaker": "Ann"}).json()
    assert plan["receipt"]["dry_run"]
    assert len(plan["receipt"]["episodes"]) == 2
    admin.post(f"{root}/facts", json={"subject": "Ann", "predicate": "SAW", "object": "Rome", "source": "x"})
    body = {"speaker": "Ann", "confirm": plan["plan"]}
    assert admin.post(f"{root}/forget", json={**body, "confirm": "0" * 64}).status_code == 409
    saved = admin.post(f"{root}/episodes", json={"content": "I like tea.", "speaker": "Ann"})
    read(admin, saved.headers["location"])
    assert admin.post(f"{root}/forget", json=body).status_code == 409, "a new episode would be deleted"
    body["confirm"] = admin.post(f"{root}/forget", json={"speaker": "Ann"}).json()["plan"]
    receipt = admin.post(f"{root}/forget", json=body).json()["receipt"]
    assert (len(receipt["episodes"]), receipt["residue"], receipt["texts"], receipt["by"]) == (3, [], {}, "test")
    assert admin.post(f"{root}/forget", json={"speaker": "Ann"}).status_code == 404
    assert items(admin.get(f"{root}/audit"))[0]["kind"] == "speaker"


def test_export_and_import_stream_a_namespace(ann):
    admin, root = ann
    file = admin.get(f"{root}/export", params={"embeddings": False})
    assert file.headers["content-type"] == "application/x-ndjson"
    assert json.loads(file.content.splitlines()[0])["format"]
    copy = NS.format("copy")
    assert admin.post(f"{copy}/import", content=file.content).json()["namespace"] == "copy"
    assert admin.post(f"{copy}/import", content=file.content).status_code == 422, "the namespace is not empty"
    assert admin.post(f"{copy}/import?replace=true", content=file.content).json()["replaced"]
    assert admin.post(f"{copy}/import?replace=true", content=b"nonsense").status_code == 422
    assert items(admin.get(f"{copy}/entities/Ann/facts"))
    assert {"ann", "copy"} <= set(items(admin.get("/v1/namespaces")))


def test_import_of_other_memories_is_read(client):
    admin, moved = client("admin"), NS.format("moved")
    rows = b"subject,predicate,object\nAnn,LIVES_IN,Oslo\n"
    assert admin.post(f"{moved}/import/csv", content=rows).json()["records"] == {"declared fact": 1}
    said = [{"id": "1", "memory": "Ann likes tea.", "user_id": "ann", "created_at": "2024-01-01T00:00:00Z"}]
    assert admin.post(f"{moved}/import/mem0", content=json.dumps(said).encode()).json()["records"] == {"message": 1}
    message = next(each for each in items(admin.get(f"{moved}/episodes")) if each["content"] == "Ann likes tea.")
    assert read(admin, f"{moved}/episodes/{message['id']}")["status"] == "done"
    assert {fact["sentence"] for fact in items(admin.get(f"{moved}/facts"))} == {"Ann lives in Oslo", "Ann likes tea"}
    assert "csv" in admin.post(f"{moved}/import/nowhere", content=rows).json()["detail"]
    assert client("read", "write").post(f"{moved}/import/csv", content=rows).status_code == 403


def test_unchanged_answer_returns_304(ann):
    admin, root = ann
    first = admin.get(f"{root}/entities")
    again = admin.get(f"{root}/entities", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    admin.post(f"{root}/facts", json={"subject": "Zoe", "predicate": "LIKES", "object": "tea"})
    assert admin.get(f"{root}/entities", headers={"If-None-Match": first.headers["etag"]}).status_code == 200


def test_server_start_reads_episodes_left_by_another(offline):
    url = f"{NS.format('left')}/episodes"
    with Serving(offline, Options(read=False)) as saving, httpx.Client(base_url=saving.url) as one:
        location = one.post(url, json={"content": "I live in Oslo.", "speaker": "Ann"}).headers["location"]
        time.sleep(0.5)
        assert one.get(location).json()["status"] == "saved"
        database = offline.driver.store.database
        database.query(graph_key("left"), "MATCH (e:Episode) SET e.status = 'failed'", {}, write=True)
        [marked] = one.post(f"{url}/retry").json()["items"]
        assert (marked["status"], one.get(location).json()["status"]) == ("saved", "saved"), "others read it"
        assert one.post(f"{url}/retry", json={"skipped": True}).status_code == 422
    with Serving(offline, Options()) as reading, httpx.Client(base_url=reading.url) as other:
        assert read(other, location)["status"] == "done"


def test_namespaces_are_listed_by_state(client, offline):
    admin = client("admin")
    offline.facts.add("Ann", "KNOWS", "Bob", namespace="sleeper")
    offline.data.sleep(namespace="sleeper")
    asleep, awake = (items(admin.get(f"/v1/namespaces?state={state}")) for state in ("asleep", "awake"))
    assert (asleep, "sleeper" in awake) == (["sleeper"], False)
    assert admin.get("/v1/namespaces?state=ill").status_code == 422
    assert admin.get("/v1/namespaces/sleeper/facts").json()["items"]
    assert "sleeper" in admin.get("/v1/namespaces?state=awake").json()["items"]
