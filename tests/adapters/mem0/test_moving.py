"""An export of Mem0 is imported into the namespaces of `Memory`, and works like memories added here."""

import json
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib.importers.records import NO_FACT, STILL_HELD
from kg_memory.contrib.mem0 import Memory
from kg_memory.errors import InputError

OSLO = {
    "id": "m1", "memory": "Lives in Oslo", "hash": "x", "score": None, "created_at": "2024-01-01T10:00:00Z",
    "updated_at": "2024-01-01T10:00:00Z", "user_id": "alice", "agent_id": "support", "run_id": "r1",
    "metadata": {"category": "home", "flat": {"floor": 2}}, "categories": ["places"], "attributes": {"a": 1},
}  # fmt: skip
TEA = {"id": "m2", "memory": "User likes tea", "created_at": "2024-01-01T10:00:00Z", "user_id": "alice"}
NUTS = {**TEA, "id": "m3", "memory": "Allergic to nuts", "expiration_date": "2030-12-31"}


@pytest.fixture
def moved(opened: Any, collection: str) -> Memory:
    """Mem0's verbs over a memory that reads by rules."""
    return Memory(graph=opened("offline", "offline"), collection=collection)


def load(moved: Memory, path: Path, *records: dict[str, Any]) -> Any:
    path.write_text(json.dumps({"results": records}), "utf-8")
    return moved.graph.data.import_from("mem0", path, namespace=moved.namespace_of(user_id="alice"))


def memories(moved: Memory) -> set[str]:
    return {item["memory"] for item in moved.get_all(user_id="alice")["results"]}


def test_mem0_add_ends_imported_fact(moved, tmp_path):
    load(moved, tmp_path / "m.json", OSLO, TEA)
    assert memories(moved) == {"user lives in Oslo", "user likes tea"}
    [event] = moved.add("I moved to Porto.", user_id="alice")["results"]
    assert (event["event"], event["previous_memory"]) == ("UPDATE", "user lives in Oslo")
    assert memories(moved) == {"user lives in Porto", "user likes tea"}


def test_mem0_import_keeps_ids_and_metadata_and_counts_the_rest(moved, tmp_path):
    done = load(moved, tmp_path / "m.json", OSLO, TEA, NUTS)
    assert done.left_out == {"values of the field 'attributes'": 1}
    found = moved.get_all(filters={"user_id": "alice", "agent_id": "support", "run_id": "r1", "category": "home"})
    [oslo] = found["results"]
    assert oslo["metadata"] == {"category": "home", "categories": ["places"], "flat": {"floor": 2}, "mem0_id": "m1"}
    assert (oslo["run_id"], oslo["agent_id"], oslo["role"]) == ("r1", "support", "user")
    [nuts] = moved.get_all(filters={"user_id": "alice", "mem0_id": "m3"})["results"]
    assert (nuts["memory"], nuts["expiration_date"]) == ("user is allergic to nuts", "2030-12-31")
    done = load(moved, tmp_path / "m.json", {**TEA, "id": "m4", "metadata": {"deep": {"x": "y" * 1000}, "ok": 1}})
    assert done.left_out == {"metadata too long for a label": 1}
    [tea] = moved.get_all(filters={"user_id": "alice", "mem0_id": "m4"})["results"]
    assert tea["metadata"]["ok"] == 1


def test_mem0_import_of_updated_record_replaces_old_fact(moved, tmp_path):
    path = tmp_path / "m.json"
    load(moved, path, OSLO, TEA, {**TEA, "id": "m4", "memory": "User likes chess"})
    changed = {**TEA, "memory": "User likes coffee", "updated_at": "2024-03-01T10:00:00Z"}
    for _ in range(2):
        done = load(moved, path, OSLO, changed, {**TEA, "id": "m4", "memory": "User likes chess"})
        assert memories(moved) == {"user lives in Oslo", "user likes coffee", "user likes chess"}
    assert done.repeated == 3
    then = moved.get_all(user_id="alice", as_of="2024-02-01")["results"]
    assert "user likes tea" in {item["memory"] for item in then}


def test_mem0_import_counts_sentence_without_fact(moved, tmp_path):
    done = load(moved, tmp_path / "m.json", TEA, {**TEA, "id": "m5", "memory": "Hmm, well."})
    assert (done.records, done.left_out) == ({"message": 2, "fact": 1}, {NO_FACT: 1})
    assert load(moved, tmp_path / "m.json", TEA).left_out == {}


def test_mem0_import_of_changed_record_ends_missing_facts(moved, tmp_path):
    """A changed record that states no fact at all ends none."""
    path = tmp_path / "m.json"
    load(moved, path, {**TEA, "memory": "Likes hiking and dislikes crowded beaches"})
    assert memories(moved) == {"user likes hiking", "user dislikes crowded beaches"}
    done = load(moved, path, {**TEA, "memory": "Likes hiking", "updated_at": "2024-03-01T10:00:00Z"})
    assert (done.left_out, memories(moved)) == ({}, {"user likes hiking"})
    done = load(moved, path, {**TEA, "memory": "Hmm, well.", "updated_at": "2024-04-01T10:00:00Z"})
    assert (done.left_out, memories(moved)) == ({STILL_HELD: 1, NO_FACT: 1}, {"user likes hiking"})


def test_mem0_import_refuses_changed_text_of_same_version(moved, tmp_path):
    path = tmp_path / "m.json"
    load(moved, path, TEA)
    with pytest.raises(InputError, match=r"m.json, record 2: source_id 'm2' is already stored with another content"):
        load(moved, path, OSLO, {**TEA, "memory": "User likes wine"})


def test_mem0_wrong_argument_error_names_the_called_verb(moved):
    with pytest.raises(TypeError, match=r"^search\(\) got an unexpected keyword argument 'users'"):
        moved.search("tea", users="alice")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^GraphMemory\.search\(\) got an unexpected keyword argument 'users'"):
        moved.graph.search("tea", users="alice")  # type: ignore[call-arg]
