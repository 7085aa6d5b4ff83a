"""Each verb of Mem0, sync and async, on a real server."""

import hashlib

import pytest

from kg_memory.errors import InputError, MemoryPaused, ModelError
from tests.scripted import raising

UNKNOWN = "00000000-0000-5000-8000-000000000000"


def texts(answer):
    return [item["memory"] for item in answer["results"]]


def events(answer):
    return [(item["event"], item["memory"]) for item in answer["results"]]


def test_mem0_verbs_add_find_update_list_and_delete_memory(either):
    """A memory is added, found, updated, listed in its history and deleted.

    Features: F3.
    """
    [added] = either.add("I moved to Oslo", user_id="ann", metadata={"category": "homes"})["results"]
    assert (added["event"], added["memory"]) == ("ADD", "user lives in Oslo")
    [found] = either.search("Where does the user live?", filters={"user_id": "ann"})["results"]
    assert found["id"] == added["id"]
    assert 0 < found["score"] <= 1
    assert either.get_all(filters={"user_id": "ann"})["results"] == [either.get(added["id"])]

    assert either.update(added["id"], "I moved to Rome") == {"message": "Memory updated successfully!"}
    updated = either.get(added["id"])
    assert (updated["memory"], updated["metadata"]) == ("user lives in Rome", {"category": "homes"})
    assert texts(either.get_all(user_id="ann")) == ["user lives in Rome"], "the old text is no longer listed"
    rows = [(row["event"], row["old_memory"], row["new_memory"]) for row in either.history(added["id"])]
    assert rows == [("ADD", None, "user lives in Oslo"), ("UPDATE", "user lives in Oslo", "user lives in Rome")]

    deleted = either.delete(memory_id=updated["id"])
    assert deleted["message"] == "Memory deleted successfully!"
    assert set(deleted["deleted"]) == {added["id"], updated["id"]}
    assert either.get_all(user_id="ann") == {"results": []}, "the earlier fact does not become current again"
    assert either.get(added["id"]) is None
    assert either.history(added["id"]) == []


def test_mem0_item_has_the_keys_of_mem0(mem0):
    message = {"role": "user", "name": "Bo", "content": "I moved to Oslo"}
    given = {"user_id": 7, "agent_id": "support", "run_id": "r1", "app_id": "web"}
    [item] = mem0.add(message, **given, timestamp=1_700_000_000)["results"]
    assert item.pop("event") == "ADD"
    assert item == mem0.get(item["id"])
    assert item["hash"] == hashlib.md5(b"Bo lives in Oslo", usedforsecurity=False).hexdigest()
    assert item["metadata"] is None
    assert item["created_at"] == "2023-11-14T22:13:20+00:00"
    assert item["updated_at"] > item["created_at"]
    ids = {"user_id": "7", "agent_id": "support", "run_id": "r1", "app_id": "web", "actor_id": "Bo", "role": "user"}
    assert {name: item[name] for name in ids} == ids


def test_mem0_metadata_is_returned_unchanged(mem0):
    metadata = {"category": "food", "stars": 4.5, "vip": True, "tags": ["a", "b"], "来源": "微信"}
    metadata["deep"] = {"x": [1, None]}
    [item] = mem0.add("I moved to Oslo", user_id="ann", metadata={**metadata, "none": None, "user_id": "bo"})["results"]
    assert item["metadata"] == metadata
    assert item["user_id"] == "ann", "an id in the metadata does not move a memory"


def test_mem0_add_without_infer_stores_words_without_model(either, model):
    said = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": "周末和张伟打网球"},
        {"role": "assistant", "name": "Coach", "content": "Tennis on Sunday, then."},
    ]
    added = either.add(said, user_id="ann", infer=False, metadata={"category": "sport"})
    assert events(added) == [("ADD", "周末和张伟打网球"), ("ADD", "Tennis on Sunday, then.")]
    assert [item["role"] for item in added["results"]] == ["user", "assistant"]
    assert added["results"][1]["actor_id"] == "Coach"
    assert model.asked == [], "no model reads them"
    assert texts(either.search("网球", user_id="ann"))[0] == "周末和张伟打网球"
    again = either.add("Tennis on Sunday, then.", user_id="ann", infer=False)
    assert events(again) == [("ADD", "Tennis on Sunday, then.")]
    note = added["results"][0]["id"]
    either.update(note, text="周六和张伟打网球")
    assert either.get(note)["memory"] == "周六和张伟打网球"
    assert [row["old_memory"] for row in either.history(note)] == [None, "周末和张伟打网球"]


def test_mem0_add_without_infer_splits_long_text(mem0):
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 100 for n in range(12))
    parts = texts(mem0.add(text, user_id="ann", infer=False))
    assert len(parts) > 1
    assert all(len(part) <= 2000 for part in parts)
    assert " ".join(parts).split() == text.split(), "and nothing is lost"


def test_mem0_procedural_memory_stores_steps_word_for_word(mem0):
    steps = [{"role": "user", "content": "Open the page"}, {"role": "assistant", "content": "Opened. Title: Oslo"}]
    added = mem0.add(steps, agent_id="browser", memory_type="procedural_memory")
    assert texts(added) == ["Open the page", "Opened. Title: Oslo"]
    assert {item["memory_type"] for item in added["results"]} == {"procedural_memory"}
    kept = mem0.get_all(filters={"agent_id": "browser", "memory_type": "procedural_memory"})
    assert sorted(texts(kept)) == sorted(texts(added))


def test_mem0_update_without_fact_stores_the_text(mem0, memory):
    [added] = mem0.add("I moved to Oslo", user_id="ann")["results"]
    mem0.update(added["id"], data="likes to play tennis on weekends")
    assert texts(mem0.get_all(user_id="ann")) == ["likes to play tennis on weekends"]
    assert [row["event"] for row in mem0.history(added["id"])] == ["ADD", "UPDATE"]
    namespace = mem0.namespace_of(user_id="ann")
    [review] = memory.reviews.list(decided=True, namespace=namespace)
    memory.reviews.undo(review.id, namespace=namespace)
    assert "user lives in Oslo" in texts(mem0.get_all(user_id="ann")), "an update can be undone in its review"


def test_mem0_update_with_same_text_changes_nothing(mem0):
    [added] = mem0.add("I moved to Oslo", user_id="ann")["results"]
    mem0.update(added["id"], added["memory"])
    assert [row["event"] for row in mem0.history(added["id"])] == ["ADD"]


def test_mem0_history_shows_retracted_memory_as_deleted(mem0, memory):
    [added] = mem0.add("I moved to Oslo", user_id="ann")["results"]
    memory.facts.retract(added["id"], by="Bo", namespace=mem0.namespace_of(user_id="ann"))
    assert mem0.get(added["id"]) is None
    rows = [(row["event"], row["is_deleted"], row["actor_id"]) for row in mem0.history(added["id"])]
    assert rows == [("ADD", False, "user"), ("DELETE", True, "Bo")]
    with pytest.raises(InputError, match="is no longer believed"):
        mem0.update(added["id"], "I moved to Rome")


def test_mem0_add_stores_unreadable_message_and_raises(mem0, model, memory):
    model.rules["facts"] = raising(ModelError("no answer"))
    with pytest.raises(ModelError, match=r"1 of 1 messages could not be read .* they are stored"):
        mem0.add("I moved to Oslo", user_id="ann")
    del model.rules["facts"]
    model.rules |= type(model)().rules
    memory.episodes.retry(namespace=mem0.namespace_of(user_id="ann"))
    assert texts(mem0.get_all(user_id="ann")) == ["user lives in Oslo"]


def test_mem0_add_raises_in_paused_namespace(either, memory):
    either.add("I moved to Oslo", user_id="ann")
    memory.pause(namespace=either.namespace_of(user_id="ann"))
    for infer in (True, False):
        with pytest.raises(MemoryPaused):
            either.add("I moved to Rome", user_id="ann", infer=infer)
    assert texts(either.get_all(user_id="ann")) == ["user lives in Oslo"]
    assert texts(either.add("I moved to Rome", user_id="bo")) == ["user lives in Rome"], "others go on"


HOSTILE = {
    "no scope": (lambda m: m.add("I moved to Oslo"), "at least one of user_id, agent_id and run_id"),
    "a blank id": (lambda m: m.add("I moved to Oslo", user_id="  "), "user_id must be a text without spaces"),
    "an id with a blank": (lambda m: m.get_all(user_id="a b"), "user_id must be a text without spaces"),
    "an id that is no text": (lambda m: m.add("I moved to Oslo", user_id=["ann"]), "user_id must be a text"),
    "no messages": (lambda m: m.add([], user_id="ann"), "messages must have at least one message"),
    "a number": (lambda m: m.add(7, user_id="ann"), "messages must be a text, or a dict"),
    "no role": (lambda m: m.add([{"content": "hi"}], user_id="ann"), "messages must be a text, or a dict"),
    "no metadata": (lambda m: m.add("I moved to Oslo", user_id="ann", metadata=[1]), "metadata must be a dict"),
    "metadata that is no JSON": (
        lambda m: m.add("I moved to Oslo", user_id="ann", metadata={"x": {"y": object()}}),
        "metadata must be plain JSON",
    ),
    "a prompt": (lambda m: m.add("I moved to Oslo", user_id="ann", prompt="x"), "set custom_instructions"),
    "an unknown type": (lambda m: m.add("hi", user_id="ann", memory_type="x"), "memory_type must be"),
    "no date": (lambda m: m.add("hi", user_id="ann", expiration_date="soon"), "expiration_date must be a date"),
    "no time": (lambda m: m.add("hi", user_id="ann", timestamp="soon"), "unknown time format"),
    "no words": (lambda m: m.search(" ", user_id="ann"), "query must be a non-empty string"),
    "a threshold": (lambda m: m.search("x", user_id="ann", threshold=2), "threshold must be a number from 0 to 1"),
    "a negative number": (lambda m: m.get_all(user_id="ann", top_k=-1), "top_k must be a whole number from 0"),
    "no text": (lambda m: m.update(UNKNOWN, metadata={"a": 1}), "text must be set"),
    "an unknown id to update": (lambda m: m.update(UNKNOWN, "x"), "memory .* not found"),
    "an unknown id to delete": (lambda m: m.delete(UNKNOWN), "memory .* not found"),
    "no id": (lambda m: m.get(""), "memory_id must be a non-empty string"),
    "nothing to delete": (lambda m: m.delete_all(), "user_id, agent_id or run_id"),
}


@pytest.mark.parametrize(("ask", "told"), HOSTILE.values(), ids=HOSTILE.keys())
def test_mem0_verbs_raise_for_bad_input(mem0, ask, told):
    with pytest.raises(InputError, match=told):
        ask(mem0)
    assert mem0.graph.data.namespaces() == [] or mem0.get_all(user_id="ann") == {"results": []}
